// Unusual loop ids on the command line, and warnings about misspelled members of definitions.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { hello, Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const ids = ['summarize/v1', '_x', '@scope/name', 'notes.json', 'a@b', 'say hello', 'größe'];

verifies('definition.ids', 'a loop with any valid id runs and is shown, with and without a version', async () => {
  const loops = Object.fromEntries(ids.map((id, nth) => [`loop-${nth}`, tool(id, 'echo')]));
  const project = new Project(loops);
  const listed = await project.json<{ loops: { id: string }[] }>(['list']);
  expect(listed.loops.map(({ id }) => id).sort()).toEqual([...ids].sort());
  for (const id of ids) {
    const result = await project.json<TurnResult>(['run', id, '--input', '{"n": 1}']);
    expect(result, id).toMatchObject({ status: 'ok', loopId: id, output: { n: 1 } });
    const pinned = await project.json<TurnResult>(['run', `${id}@1.0.0`, '--input', '{}']);
    expect(pinned, id).toMatchObject({ status: 'ok', loopId: id, loopVersion: '1.0.0' });
  }
  const shown = await project.json<{ definition: { id: string } }>(['show', 'summarize/v1']);
  expect(shown.definition.id).toBe('summarize/v1');
  const missing = await project.run(['run', 'summarize/v1@9.0.0']);
  expect({ code: missing.code, stderr: missing.stderr }).toMatchObject({ code: 1 });
  expect(missing.stderr).toContain('"summarize/v1" exists as 1.0.0');
});

verifies(
  'definition.ids',
  'an existing definition file takes precedence over an id; ./ always denotes a file',
  async () => {
    const project = new Project({ notes: tool('lib/notes.json', 'echo'), plain: tool('lib/notes', 'echo') });
    const idOf = async (argument: string): Promise<string> =>
      (await project.json<TurnResult>(['run', argument])).loopId;
    expect(await idOf('lib/notes.json')).toBe('lib/notes.json');
    project.write('lib/notes.json', tool('from-the-file', 'echo'));
    project.write('lib/notes', 'no definition');
    expect(await idOf('lib/notes.json')).toBe('from-the-file');
    expect(await idOf('lib/notes.json@1.0.0')).toBe('lib/notes.json');
    expect(await idOf('lib/notes')).toBe('lib/notes');
    for (const file of ['./lib/gone.json', './lib/gone', 'lib/gone.json']) {
      const { code, stderr } = await project.run(['run', file]);
      expect({ file, code }).toEqual({ file, code: 64 });
      expect(stderr).toContain(`There is no file ${file}`);
    }
    const unknown = await project.run(['run', 'lib/gone']);
    expect(unknown.code).toBe(1);
    expect(unknown.stderr).toContain('LOOP_NOT_FOUND');
  },
);

verifies(
  'definition.near-miss',
  'check, list, show and run warn about a misspelled member with file, line and suggestion',
  async () => {
    const project = new Project({});
    const text = JSON.stringify({ ...hello, backend: { id: 'mock' } }, null, 2).replace('{', '{\n  "tools": [],');
    const file = project.write('loops/hello.json', text.replace('{', '{\n  "team": "x",'));
    const warning = 'is not a known key and is ignored; did you mean "tool"?';
    const findings = await project.json<{ ok: boolean; files: object[] }>(['check']);
    expect(findings).toMatchObject({ ok: true });
    expect(findings.files).toEqual([
      {
        file,
        ok: true,
        errors: [],
        warnings: [
          { path: '/team', line: 2, column: 3, reason: expect.stringContaining('ignored') },
          { path: '/tools', line: 3, column: 3, reason: warning },
        ],
      },
    ]);
    const checked = await project.run(['check']);
    expect({ code: checked.code }).toEqual({ code: 0 });
    expect(checked.stdout).toContain(`${file}:3:3: /tools: ${warning}`);
    for (const args of [['list'], ['show', 'hello'], ['run', 'hello', '--input', '{"name": "Ada"}']]) {
      for (const more of [[], ['--json']]) {
        const { code, stdout, stderr } = await project.run([...args, ...more]);
        expect({ args, code }).toEqual({ args, code: 0 });
        expect(stderr).toContain(`One key is ignored (see: rondo check):\n  warning: ${file}:3:3: /tools: ${warning}`);
        expect(stderr).not.toContain('/team');
        expect(stdout).not.toContain('did you mean');
      }
    }
  },
);

verifies(
  'definition.near-miss',
  'check rejects a misspelling of policy with file and line, and run refuses the loop',
  async () => {
    const project = new Project({});
    const file = project.write('loops/pay.json', { ...tool('pay', 'echo'), polcy: { approval: 'ask' } });
    const checked = await project.run(['check', '--json']);
    expect(checked.code).toBe(1);
    expect(JSON.parse(checked.stdout)).toMatchObject({
      ok: false,
      files: [{ file, ok: false, errors: [{ path: '/polcy', line: expect.any(Number), column: 3 }], warnings: [] }],
    });
    const ran = await project.run(['run', 'pay']);
    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('did you mean "policy"?');
  },
);
