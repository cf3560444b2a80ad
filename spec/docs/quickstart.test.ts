// Follows docs/quickstart.md from top to bottom in a new directory: writes its files, runs its commands, and compares the
// output with the page.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { snippetsIn } from '../house/snippets.js';
import {
  blocksIn,
  commandFaults,
  commandsIn,
  installIn,
  type PageBlock,
  withWrongPromises,
} from '../support/page-commands.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/quickstart.md'), 'utf8');
const END = 'END-OF-FILE';

/** Returns the shell command that writes a block of code to the file that its first line names. */
function writeCommand({ line, text }: PageBlock): string {
  const [{ name = '' } = {}] = snippetsIn('docs/quickstart.md', `\`\`\`ts\n${text}\`\`\`\n`);
  if (name === '') throw new Error(`The code in line ${line} does not name its file.`);
  return `cat > ${name} <<'${END}'\n${text}${END}\n`;
}

/** Returns one script for the whole page, so that `cd` lasts. Each block of commands writes its output to a file. */
function scriptOf(blocks: readonly PageBlock[], outputFile: (index: number) => string): string {
  let index = 0;
  const parts = blocks.flatMap((block) => {
    if (block.language === 'ts') return [writeCommand(block)];
    if (block.language !== 'sh') return [];
    // The reader copies the id from the output above.
    const printed = `"$(sed -n 's/^ *rondo approve //p' "${outputFile(index - 1)}" | head -n 1)"`;
    return [`{ ${block.text.replace('APPROVAL', printed)}\n} > "${outputFile(index++)}" 2>&1\n`];
  });
  return `${parts.join('')}exit 0\n`;
}

/** Follows the page. Returns the output of each block of commands. */
function outputsOf(blocks: readonly PageBlock[]): string[] {
  const folder = mkdtempSync(join(root, 'dist', 'quickstart-'));
  const outputFile = (index: number): string => join(folder, `output-${index}`);
  try {
    const env = installIn(folder);
    execFileSync('sh', ['-c', scriptOf(blocks, outputFile)], { cwd: folder, env, encoding: 'utf8' });
    return commandsIn(blocks).map((_, index) => readFileSync(outputFile(index), 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const followPage = (): void => {
  const blocks = blocksIn(page);
  const commands = commandsIn(blocks);
  const promises = commands.filter(({ promised }) => promised !== undefined);
  expect(promises.length).toBeGreaterThan(5);
  const outputs = outputsOf(blocks);
  expect(commandFaults(commands, outputs)).toEqual([]);
  expect(commandFaults(withWrongPromises(commands), outputs)).toHaveLength(promises.length);
};

verifies('docs.quickstart', 'a reader who follows the quickstart sees what it shows', followPage, 120_000);
