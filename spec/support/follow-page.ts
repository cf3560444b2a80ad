// Follows a page from top to bottom in a new directory: writes its files, runs its commands, and returns their output.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandsIn, installIn, type PageBlock } from './page-commands.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const END = 'END-OF-FILE';
/** The comment on the first line of a block that names its file, such as `// loops/greet.ts` or `# harness.toml`. */
const FILE_NAME = /^(?:\/\/|#) ([\w./-]+\.(?:mjs|ts|toml))\n/;

/** Returns the shell command that writes a block of code to the file that its first line names. */
function writeCommand({ line, text }: PageBlock): string {
  const name = FILE_NAME.exec(text)?.[1];
  if (name === undefined) throw new Error(`The code in line ${line} does not name its file.`);
  return `cat > ${name} <<'${END}'\n${text}${END}\n`;
}

/** Returns one script for the whole page, so that `cd` lasts. Each block of commands writes its output to a file. */
function scriptOf(blocks: readonly PageBlock[], outputFile: (index: number) => string): string {
  let index = 0;
  const parts = blocks.flatMap((block) => {
    if (block.language !== 'sh') return block.language === '' ? [] : [writeCommand(block)];
    // The reader copies the id from the output above.
    const printed = `"$(sed -n 's/^ *rondo approve //p' "${outputFile(index - 1)}" | head -n 1)"`;
    return [`{ ${block.text.replace('APPROVAL', printed)}\n} > "${outputFile(index++)}" 2>&1\n`];
  });
  return `${parts.join('')}exit 0\n`;
}

/** Follows a page. Returns the output of each block of commands. */
export function followPage(blocks: readonly PageBlock[]): string[] {
  const folder = mkdtempSync(join(root, 'dist', 'page-'));
  const outputFile = (index: number): string => join(folder, `output-${index}`);
  try {
    const env = installIn(folder);
    execFileSync('sh', ['-c', scriptOf(blocks, outputFile)], { cwd: folder, env, encoding: 'utf8' });
    return commandsIn(blocks).map((_, index) => readFileSync(outputFile(index), 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
