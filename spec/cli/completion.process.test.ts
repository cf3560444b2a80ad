// The completion script of bash in a real bash.

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import { expect } from 'vitest';
import { verbs } from '../../src/surfaces/cli/verbs.js';
import { bin, hello, Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

/** Returns what bash offers for a command line whose last word is incomplete. */
async function complete(project: Project, words: readonly string[]): Promise<string[]> {
  const { stdout: script } = await project.run(['completion', 'bash']);
  project.write('completion.bash', script);
  chmodSync(project.write('bin/rondo', `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`), 0o755);
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const program = `source completion.bash; COMP_WORDS=(rondo ${quoted}); COMP_CWORD=${words.length}; _rondo; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { PATH = '', HOME = '' } = process.env;
  const { stdout, stderr } = spawnSync('bash', ['-c', program], {
    cwd: project.directory,
    env: { PATH: `${project.path('bin')}:${PATH}`, HOME },
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

const verbsWith = (prefix: string): string[] => verbs.map(({ name }) => name).filter((name) => name.startsWith(prefix));

verifies('cli.completion', 'bash offers verbs, flags of the verb, and ids', async () => {
  const project = new Project();
  expect(await complete(project, ['re'])).toEqual(verbsWith('re'));
  expect(await complete(project, ['run', '--in'])).toEqual(['--input']);
  expect(await complete(project, ['--data', '.rondo', 'run', '--wat'])).toEqual(['--watch']);
  expect(await complete(project, ['help', 'co'])).toEqual(verbsWith('co'));
  expect(await complete(project, ['run', 'h'])).toEqual(['hello']);
  expect(await complete(project, ['run', 'hello', '--input', ''])).toEqual([]);
  const { turnId } = await project.json<{ turnId: string }>(['run', 'echo', '--session', 'mine']);
  expect(await complete(project, ['status', 'mi'])).toEqual([turnId]);
  expect(await complete(project, ['events', ''])).toEqual(['mine']);
  expect(await complete(project, ['completion', ''])).toEqual(['bash', 'zsh', 'fish']);
});

verifies('cli.completion', 'an id of a hostile project is never evaluated', async () => {
  const project = new Project({
    hello,
    command: { ...hello, id: '$(touch executed)' },
    quote: { ...hello, id: "a'; touch executed; '" },
    space: { ...hello, id: 'a b' },
  });
  expect(await complete(project, ['run', ''])).toEqual(['hello']);
  expect((await project.run(['completion', 'ids', 'run'])).stdout).toBe('hello\n');
  expect(existsSync(project.path('executed'))).toBe(false);
});
