// Verbs in processes of their own.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { verbs } from '../../src/surfaces/cli/verbs.js';
import { Project } from '../support/cli-project.js';
import { inLanes } from '../support/lanes.js';
import { verifies } from '../verifies.js';
import { type CommandLine, commandLines, oneForEachVerb, projectWithEveryLoop, verbOf } from './command-lines.js';

/** `dev` ends only when it is interrupted, so its own tests run it. `demo` takes seconds, and the gate runs it by itself. */
const OTHERS = ['demo', 'dev'];

verifies('cli.contract', 'every verb runs in a process of its own and ends it with its exit code', async () => {
  const project = projectWithEveryLoop();
  const lines: readonly CommandLine[] = [...oneForEachVerb(await commandLines(project)), ['worker --once', 0]];
  expect([...lines.map(verbOf), ...OTHERS].sort()).toEqual(verbs.map(({ name }) => name).sort());
  const ended = await inLanes(lines, async ([line]) => {
    const { code, signal } = await project.runProcess(line.split(' '), { input: 'Hello\n' });
    return [line, code ?? signal];
  });
  expect(ended).toEqual(lines);
});

verifies('cli.contract', 'a replay that does not match ends with exit code 3', async () => {
  const project = new Project();
  project.write('loops/sum.mjs', loopInCode("'one'"));
  const trust = ['--trust', 'loops'];
  const { turnId } = await project.jsonProcess<TurnResult>(['run', 'coded', ...trust]);
  expect(await project.jsonProcess(['replay', turnId, ...trust])).toEqual({ matches: true, calls: 1 });
  project.write('loops/sum.mjs', loopInCode("'two'"));
  const changed = await project.runProcess(['replay', turnId, '--now', '--json', ...trust]);
  expect(changed.code).toBe(3);
  expect(JSON.parse(changed.stdout)).toMatchObject({ matches: false, difference: expect.any(String) });
  expect((await project.runProcess(['replay', turnId, '--now', ...trust])).stderr).toContain('does not match');
});

/** Returns the source of a module with a loop that returns a value. It imports the built package. */
function loopInCode(value: string): string {
  const library = new URL('../../dist/index.js', import.meta.url);
  return `import { defineLoop } from ${JSON.stringify(library)};
    const anything = {};
    export const coded = defineLoop({ id: 'coded', input: anything, output: anything, run: async () => ({ value: ${value} }) });`;
}
