// Output of verbs for hostile definitions, inputs and names: JSON is escaped and keeps its value, text is harmless.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project, tool } from '../support/cli-project.js';
import { outputOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';
import { attacks, HARMFUL, HIDDEN_IN_JSON, withoutStyles } from './attacks.js';

/** All hostile characters in one text, except unpaired surrogates, which a JSON file cannot contain. */
const hostile = attacks
  .filter((attack) => attack.length < 100)
  .join('|')
  .replaceAll(/[\ud800-\udfff]/gu, '');

verifies('cli.escape', 'JSON output contains no control characters and keeps its value', async () => {
  const project = new Project({ echo: { ...tool('echo', 'echo'), name: hostile, description: hostile } });
  project.write('in.json', JSON.stringify({ text: hostile, [hostile]: 1 }));
  const { turnId } = await project.json<TurnResult>(['run', 'echo', '--session', 's', '--input', '@in.json']);
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
    const { stdout } = await project.run(args);
    expect(stdout, args.join(' ')).not.toMatch(HIDDEN_IN_JSON);
  }
  const result = await project.json<TurnResult>(['run', 'echo', '--input', '@in.json']);
  expect(outputOf(result)).toEqual({ text: hostile, [hostile]: 1 });
  const { definition } = await project.json<{ definition: { description: string } }>(['show', 'echo']);
  expect(definition.description).toBe(hostile);
});

verifies('cli.escape', 'text output contains nothing that a terminal interprets', async () => {
  const project = new Project({ echo: { ...tool('echo', 'echo'), name: hostile, description: hostile } });
  project.write('in.json', JSON.stringify({ text: hostile }));
  project.write(`loops/bad\u202e\u001b[2J\u200b.json`, '{');
  const { turnId } = await project.json<TurnResult>(['run', 'echo', '--session', 's', '--input', '@in.json']);
  const argument = hostile.replaceAll('\0', '');
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
    ...['run', 'show', 'status', 'trace', 'events', 'resume', 'cancel', 'approve', 'deny', 'remove', argument].map(
      (verb) => [verb, argument],
    ),
    ['run', 'echo', '--input', argument],
    ['doctor', '--accept', argument],
    ['list', '--loops', argument],
  ];
  for (const args of verbs) {
    const { stdout, stderr } = await project.run(args);
    expect(withoutStyles(stdout + stderr), args.join(' ')).not.toMatch(HARMFUL);
  }
});
