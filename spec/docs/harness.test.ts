// The example of docs/harness.md is the file that it links, and its commands print what the page shows.

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { hostedCaseSchema } from '../../src/surfaces/harness/harness-schema.js';
import { readHarness } from '../../src/surfaces/harness/read-harness.js';
import { absolute, readText } from '../house/tree.js';
import { blocksIn, commandFaults, commandsIn, outputsOf, withWrongPromises } from '../support/page-commands.js';
import { verifies } from '../verifies.js';

const page = readFileSync(absolute('docs/harness.md'), 'utf8');
const blocks = blocksIn(page);

/** The parts of the schema that the guide describes. */
interface HostedCaseSchema {
  readonly properties: {
    readonly expect: { readonly properties: { readonly reason: { readonly enum: readonly string[] } } };
  };
}

verifies('hosted.harness', 'the case in the guide is the first one of the example', async () => {
  const [example] = blocks.filter(({ language }) => language === 'toml');
  expect(example?.text.startsWith('# harness.toml\n')).toBe(true);
  expect(readText('examples/08-support-agent/harness.toml').startsWith(example?.text ?? 'none')).toBe(true);
  const location = { cwd: absolute('.'), authority: { directories: [], send: new Map(), destinations: [] } };
  const { cases } = await readHarness(absolute('examples/08-support-agent'), location);
  expect(cases.map(({ kind }) => kind)).toEqual(['turn', 'turn', 'turn']);
});

verifies('hosted.harness', 'the case with a hosted loop in the guide is one of the example', () => {
  const [, example] = blocks.filter(({ language }) => language === 'toml');
  const quoted = example?.text.replace(/^# harness\.toml\n/, '') ?? 'none';
  expect(quoted).toContain('host = ');
  expect(readText('examples/loop-orchestration/harness.toml')).toContain(quoted);
});

verifies('hosted.harness', 'the guide names every member of a hosted case and every reason to stop', () => {
  const { properties } = hostedCaseSchema as unknown as HostedCaseSchema;
  const { reason, ...others } = properties.expect.properties;
  expect(reason.enum.length).toBeGreaterThan(9);
  for (const name of reason.enum) expect(page).toContain(`\`${name}\``);
  for (const name of Object.keys(others)) expect(page).toMatch(new RegExp(`^\\| [^|]*\`${name}\\?\``, 'm'));
  for (const name of Object.keys(properties)) expect(page).toMatch(new RegExp(`^\\| \`${name}\\??\``, 'm'));
});

verifies('docs.output', 'the commands in docs/harness.md print what is shown below them', () => {
  const commands = commandsIn(blocks);
  const outputs = outputsOf(commands);
  expect(commandFaults(commands, outputs)).toEqual([]);
  expect(commandFaults(withWrongPromises(commands), outputs)).toHaveLength(1);
});
