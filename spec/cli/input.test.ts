// Invalid input of every kind, and large input.

import { statSync } from 'node:fs';
import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project, tool } from '../support/cli-project.js';
import { outputOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

interface Case {
  readonly what: string;
  readonly args: readonly string[];
  readonly input?: string | Buffer;
  readonly code: number;
  readonly says: RegExp;
}

const run = (...args: string[]): string[] => ['run', 'echo', ...args];
const bytes = Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x7d]);

const cases: readonly Case[] = [
  { what: 'an unknown verb', args: ['rnu'], code: 64, says: /Unknown command 'rnu' \(Did you mean run\?\)/ },
  { what: 'an unknown option', args: run('--inptu', '{}'), code: 64, says: /Did you mean --input\?/ },
  { what: 'an option without its value', args: run('--input'), code: 64, says: /argument missing/i },
  { what: 'no loop', args: ['run'], code: 64, says: /missing required argument 'loop'/i },
  { what: 'two loops', args: ['run', 'echo', 'echo'], code: 64, says: /too many arguments/i },
  { what: 'an unknown loop', args: ['run', 'eco'], code: 1, says: /Did you mean "echo"\?\nLOOP_NOT_FOUND/ },
  { what: 'an unknown version', args: ['run', 'echo@9.0.0'], code: 1, says: /exists as 1\.0\.0/ },
  { what: 'a missing definition file', args: ['run', './eco.json'], code: 64, says: /no file \.\/eco\.json/ },
  { what: 'malformed JSON', args: run('--input', '{"a": 1,\n "b": }'), code: 64, says: /\(line 2, column 7\)/ },
  { what: 'text after JSON', args: run('--input', '{} {}'), code: 64, says: /after the end.*\(line 1, column 4\)/ },
  { what: 'a key twice', args: run('--input', '{"a": 1, "a": 2}'), code: 64, says: /duplicate key "a"/ },
  { what: 'an empty input', args: run('--input', ''), code: 64, says: /the text ends/ },
  { what: 'an empty stdin', args: run('--input', '-'), code: 64, says: /--input - cannot be read/ },
  { what: 'binary stdin', args: run('--input', '-'), input: bytes, code: 64, says: /not UTF-8/ },
  { what: 'a missing file', args: run('--input', '@missing'), code: 64, says: /@missing: there is no such file/ },
  { what: 'a directory', args: run('--input', '@loops'), code: 64, says: /it is a directory/ },
  { what: 'input that does not fit', args: ['run', 'hello'], code: 1, says: /INPUT_VALIDATION_FAILED.*"name"/ },
  { what: 'a session with a slash', args: run('--session', 'a/b'), code: 64, says: /--session must be/ },
  { what: 'an empty key', args: run('--key', ''), code: 64, says: /--key must be/ },
  {
    what: 'a missing grant file',
    args: run('--grant', 'grant.json'),
    code: 64,
    says: /--grant grant.json cannot be used/,
  },
  { what: 'a PostgreSQL store', args: ['runs', '--store', 'postgres://u:secret@h/d'], code: 64, says: /PostgreSQL/ },
  { what: 'an unknown store', args: ['runs', '--store', 'file:x'], code: 64, says: /sqlite:PATH or memory:/ },
  { what: 'another engine', args: ['runs', '--engine', 'restate'], code: 64, says: /not supported in this version/ },
  { what: 'an unknown status', args: ['runs', '--status', 'done'], code: 64, says: /must be one of ok, error/ },
  { what: 'an invalid limit', args: ['runs', '--limit', '-1'], code: 64, says: /--limit must be/ },
  { what: 'an unknown turn', args: ['cancel', 'nothing'], code: 1, says: /TURN_NOT_FOUND/ },
  { what: 'a turn with a control character', args: ['status', 'a\u0001b'], code: 1, says: /TURN_NOT_FOUND.*a\\x01b/ },
  { what: 'an overlong turn id', args: ['trace', 'x'.repeat(5000)], code: 1, says: /TURN_NOT_FOUND/ },
  { what: 'a missing config file', args: ['list', '--config', 'no.toml'], code: 70, says: /CONFIG_INVALID/ },
];

for (const { what, args, input, code, says } of cases) {
  verifies('cli.input', `${what} ends with exit code ${code} and a message`, async () => {
    const project = new Project();
    const options = input === undefined ? {} : { input };
    const human = await project.run(args, options);
    expect(human.stderr).toMatch(says);
    expect(human.stderr).not.toMatch(/^\s+at |secret/m);
    expect({ code: human.code, stdout: human.stdout }).toEqual({ code, stdout: '' });
    expect(project.has('.rondo') && !args.includes('hello')).toBe(false);
    if (args[0] === undefined || args[0] === 'trace') return;
    const { stdout } = await project.run([...args, '--json'], options);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } });
  });
}

verifies('cli.input', 'deeply nested input is refused with its location', async () => {
  const project = new Project();
  project.write('deep.json', '['.repeat(100_000) + ']'.repeat(100_000));
  const { code, stderr } = await project.run(run('--input', '@deep.json'));
  expect(code).toBe(64);
  expect(stderr).toContain('nested deeper than 256 levels (line 1, column 257)');
});

verifies('cli.input', 'ten megabytes of input are accepted', async () => {
  const project = new Project();
  const value = { text: 'x'.repeat(10_000_000) };
  const text = JSON.stringify(value);
  project.write('big.json', text);
  const fromFile = await project.json<TurnResult>(run('--input', '@big.json'));
  expect(outputOf(fromFile)).toEqual(value);
  const piped = await project.json<TurnResult>(run('--input', '-'), { input: text });
  expect(outputOf(piped)).toEqual(value);
});

verifies('cli.input', 'input over 64 MiB is refused', async () => {
  const project = new Project();
  project.write('huge.json', `"${'x'.repeat(64 * 1024 * 1024)}"`);
  expect(statSync(project.path('huge.json')).size).toBeGreaterThan(64 * 1024 * 1024);
  const { code, stderr } = await project.run(run('--input', '@huge.json'));
  expect(code).toBe(64);
  expect(stderr).toContain('more than 67108864 bytes');
});

verifies('cli.input', 'RONDO_DEBUG=1 prints the stack of an error', async () => {
  const { stderr } = await new Project().run(['status', 'nothing'], { env: { RONDO_DEBUG: '1' } });
  expect(stderr).toMatch(/^\s+at .*Archive/m);
});

verifies('cli.input', 'an error message of a tool contains no control sequences', async () => {
  const project = new Project({ fail: tool('fail', 'fail') });
  const message = '\u001b]0;owned\u0007\u001b[2J';
  const { stderr } = await project.run(['run', 'fail', '--input', JSON.stringify({ message })]);
  expect(stderr).toContain('TOOL_FAILED');
  expect(stderr).not.toContain('\u001b');
});
