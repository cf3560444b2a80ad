// Runs the commands of the example pages and compares their output with the pages.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { commandsIn, faultsIn, outputsOf } from './page-commands.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const examples = readdirSync(join(root, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** Pages whose commands are not run here, with the reason. Each example's `verify.mjs` checks them. */
const notRun: ReadonlyMap<string, string> = new Map([
  ['04-tools', 'its server needs the fixed port that the definition names'],
  ['07-coding-agent', 'it is a conversation in a terminal'],
]);

for (const example of examples) {
  const page = join(root, 'examples', example, 'README.md');
  const blocks = commandsIn(readFileSync(page, 'utf8'));
  if (notRun.has(example) || !blocks.some(({ promised }) => promised !== undefined)) continue;
  verifies('docs.output', `the commands in examples/${example}/README.md print what is shown below them`, () => {
    // Later commands contain the approval ids of one particular run.
    const first = blocks.slice(
      0,
      blocks.findLastIndex(({ text, promised }) => promised !== undefined && !/ (?:approve|deny) /.test(text)) + 1,
    );
    const outputs = outputsOf(first);
    expect(faultsIn(first, outputs)).toEqual([]);
    const wrong = first.map((block) => ({ ...block, promised: block.promised?.replace(/\w{4,}/, 'otherwise') }));
    expect(faultsIn(wrong, outputs).length).toBe(first.filter(({ promised }) => promised !== undefined).length);
  });
}

verifies('docs.output', 'every example that is not run exists and has a reason', () => {
  for (const [example, reason] of notRun) {
    expect(examples).toContain(example);
    expect(reason).not.toBe('');
  }
});
