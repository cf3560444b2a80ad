// The example of docs/harness.md is the file that it links, and its commands print what the page shows.

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { readHarness } from '../../src/surfaces/harness/read-harness.js';
import { absolute, readText } from '../house/tree.js';
import { blocksIn, commandFaults, commandsIn, outputsOf, withWrongPromises } from '../support/page-commands.js';
import { verifies } from '../verifies.js';

const blocks = blocksIn(readFileSync(absolute('docs/harness.md'), 'utf8'));

verifies('hosted.harness', 'the case in the guide is the first one of the example', async () => {
  const [example] = blocks.filter(({ language }) => language === 'toml');
  expect(example?.text.startsWith('# harness.toml\n')).toBe(true);
  expect(readText('examples/08-support-agent/harness.toml').startsWith(example?.text ?? 'none')).toBe(true);
  const location = { cwd: absolute('.'), authority: { directories: [], send: new Map(), destinations: [] } };
  const { cases } = await readHarness(absolute('examples/08-support-agent'), location);
  expect(cases.map(({ kind }) => kind)).toEqual(['turn', 'turn', 'turn']);
});

verifies('docs.output', 'the commands in docs/harness.md print what is shown below them', () => {
  const commands = commandsIn(blocks);
  const outputs = outputsOf(commands);
  expect(commandFaults(commands, outputs)).toEqual([]);
  expect(commandFaults(withWrongPromises(commands), outputs)).toHaveLength(1);
});
