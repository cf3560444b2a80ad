// Runs the commands of the example pages and compares their output with the pages.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { blocksIn, commandFaults, commandsIn, outputsOf, withWrongPromises } from '../support/page-commands.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const examples = readdirSync(join(root, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** Pages whose commands are not run here, with the reason. The test of each example checks them. */
const notRun: ReadonlyMap<string, string> = new Map([
  ['04-tools', 'its server needs the fixed port that the definition names'],
  ['07-coding-agent', 'it is a conversation in a terminal'],
  ['loop-orchestration', 'its own test runs its script once, and compares what it prints with the page'],
]);

for (const example of examples) {
  const page = join(root, 'examples', example, 'README.md');
  const blocks = commandsIn(blocksIn(readFileSync(page, 'utf8')));
  if (notRun.has(example) || !blocks.some(({ promised }) => promised !== undefined)) continue;
  verifies('docs.output', `the commands in examples/${example}/README.md print what is shown below them`, () => {
    // Later commands contain the approval ids of one particular run.
    const first = blocks.slice(
      0,
      blocks.findLastIndex(({ text, promised }) => promised !== undefined && !/ (?:approve|deny) /.test(text)) + 1,
    );
    const outputs = outputsOf(first);
    expect(commandFaults(first, outputs)).toEqual([]);
    const promises = first.filter(({ promised }) => promised !== undefined);
    expect(commandFaults(withWrongPromises(first), outputs)).toHaveLength(promises.length);
  });
}

verifies('docs.output', 'every example that is not run exists and has a reason', () => {
  for (const [example, reason] of notRun) {
    expect(examples).toContain(example);
    expect(reason).not.toBe('');
  }
});
