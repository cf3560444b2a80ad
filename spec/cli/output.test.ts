// The exit code of every verb when its output cannot be written.

import { expect } from 'vitest';
import { verbs } from '../../src/surfaces/cli/verbs.js';
import { runCommand } from '../support/command-line.js';
import { verifies } from '../verifies.js';
import { commandLines, projectWithEveryLoop, verbOf } from './command-lines.js';

/** Verbs of which no command line prints a document and ends by itself. Tests of their own run them. */
const OTHERS = ['demo', 'dev', 'worker'];

verifies(
  'cli.output',
  'the exit code of every verb says that a document was lost, not that a reader left',
  async () => {
    const project = projectWithEveryLoop();
    const lines = await commandLines(project);
    expect([...new Set(lines.map(verbOf)), ...OTHERS].sort()).toEqual(verbs.map(({ name }) => name).sort());
    const { directory: cwd } = project;
    const [actual, expected]: [string[], string[]] = [[], []];
    for (const [line, code] of lines) {
      for (const [stdoutError, expectedCode] of [
        ['ENOSPC', code === 0 ? 70 : code],
        ['EPIPE', code],
      ] as const) {
        const context = { cwd, env: project.environment(), input: 'Hello\n', stdoutError };
        const ended = await runCommand([...line.split(' '), '--json'], context);
        expected.push(`${line} --json, ${stdoutError}: ${expectedCode}`);
        actual.push(`${line} --json, ${stdoutError}: ${ended.code}`);
      }
    }
    expect(actual).toEqual(expected);
  },
);
