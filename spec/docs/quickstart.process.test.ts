// The pages that lead a reader through a new project show what the reader sees.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { followPage } from '../support/follow-page.js';
import { blocksIn, commandFaults, commandsIn, type PageBlock, withWrongPromises } from '../support/page-commands.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Repeats each block that runs a program, with its output: a reader runs a program more than once. */
function withRepeatedPrograms(blocks: readonly PageBlock[]): PageBlock[] {
  return blocks.flatMap((block, index) => {
    const isOutput = block.language === '' && /^npx tsx \S+\n$/.test(blocks[index - 1]?.text ?? '');
    return isOutput ? [block, blocks[index - 1] as PageBlock, block] : [block];
  });
}

for (const page of ['docs/quickstart.md', 'docs/guides/hosted-loops.md'])
  verifies(
    'docs.quickstart',
    `a reader who follows ${page}, and runs its programs twice, sees what it shows`,
    () => {
      const blocks = withRepeatedPrograms(blocksIn(readFileSync(join(root, page), 'utf8')));
      const commands = commandsIn(blocks);
      const promises = commands.filter(({ promised }) => promised !== undefined);
      expect(promises.length).toBeGreaterThan(5);
      const outputs = followPage(blocks);
      expect(commandFaults(commands, outputs)).toEqual([]);
      expect(commandFaults(withWrongPromises(commands), outputs)).toHaveLength(promises.length);
    },
    120_000,
  );
