// What verbs write of definitions, inputs and names that hold anything: as JSON it is escaped and the same, as text it is harmless.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { attacks, bare, HARMFUL } from './attacks.js';
import { hasScript, Pty } from './pty.js';

/** All hostile characters in one text, but for halves of characters, which no JSON file can hold. */
const hostile = attacks
  .filter((attack) => attack.length < 100)
  .join('|')
  .replaceAll(/[\ud800-\udfff]/gu, '');

/** JSON text is one line, and its own line end is all that a terminal acts on. */
const HIDDEN_IN_JSON = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

verifies('cli.escape', 'JSON holds nothing that a terminal acts on, and is the same value', async () => {
  const made = new Project({ echo: { ...tool('echo', 'echo'), name: hostile, description: hostile } });
  made.write('in.json', JSON.stringify({ text: hostile, [hostile]: 1 }));
  const { turnId } = await made.json<TurnResult>(['run', 'echo', '--session', 's', '--input', '@in.json']);
  const verbs = [
    ['run', 'echo', '--input', '@in.json', '--json'],
    ['show', 'echo', '--json'],
    ['list', '--json'],
    ['status', 's', '--json'],
    ['trace', turnId, '--json'],
    ['events', 's', '--json'],
    ['runs', '--json'],
    ['check', '--json'],
    ['run', hostile.replaceAll('\0', ''), '--json'],
    ['run', 'echo', '--input', '@in.json'],
  ];
  for (const args of verbs) {
    const { stdout } = await made.run(args);
    expect(stdout, args.join(' ')).not.toMatch(HIDDEN_IN_JSON);
  }
  const { output } = await made.json<TurnResult>(['run', 'echo', '--input', '@in.json']);
  expect(output).toEqual({ text: hostile, [hostile]: 1 });
  const { definition } = await made.json<{ definition: { description: string } }>(['show', 'echo']);
  expect(definition.description).toBe(hostile);
});

verifies('cli.escape', 'text for people holds nothing that a terminal acts on', async () => {
  const made = new Project({ echo: { ...tool('echo', 'echo'), name: hostile, description: hostile } });
  made.write('in.json', JSON.stringify({ text: hostile }));
  made.write(`loops/bad\u202e\u001b[2J\u200b.json`, '{');
  const { turnId } = await made.json<TurnResult>(['run', 'echo', '--session', 's', '--input', '@in.json']);
  const given = hostile.replaceAll('\0', '');
  const verbs = [
    ['run', 'echo', '--input', '@in.json'],
    ...[
      ['show', 'echo'],
      ['list'],
      ['status', 's'],
      ['trace', turnId],
      ['events', 's', '--text'],
      ['check'],
      ['doctor'],
    ],
    ...['run', 'show', 'status', 'trace', 'events', 'resume', 'cancel', 'approve', 'deny', 'remove', given].map(
      (verb) => [verb, given],
    ),
    ['run', 'echo', '--input', given],
    ['doctor', '--accept', given],
    ['list', '--loops', given],
  ];
  for (const args of verbs) {
    const { stdout, stderr } = await made.run(args);
    expect(bare(stdout + stderr), args.join(' ')).not.toMatch(HARMFUL);
  }
});

verifies('cli.escape', 'JSON on a terminal is escaped too', async (context) => {
  context.skip(!hasScript, 'needs script');
  const made = new Project({ echo: tool('echo', 'echo') });
  made.write('in.json', JSON.stringify({ text: 'a\u009b2J\u202eb\u200b\u2028' }));
  for (const more of [['--json'], []]) {
    const shown = new Pty(made, ['run', 'echo', '--input', '@in.json', ...more]);
    await shown.sees('a\\u009b2J\\u202eb\\u200b\\u2028');
    await shown.ended;
    expect(shown.text.replaceAll('\r', '')).not.toMatch(HIDDEN_IN_JSON);
  }
});
