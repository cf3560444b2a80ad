import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { containsPromised } from '../house/outputs.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const examples = readdirSync(join(root, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** Commands of a page, and the output that is shown below them. */
interface Commands {
  readonly line: number;
  readonly text: string;
  readonly promised: string | undefined;
}

/** Pages whose commands are not run here; `verify.mjs` of each example checks what they do. */
const notRun: ReadonlyMap<string, string> = new Map([
  ['04-tools', 'its warehouse listens on the one port that the definition names'],
  ['07-coding-agent', 'it is a conversation in a terminal'],
]);

function commandsIn(text: string): Commands[] {
  const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((found) => ({
    line: text.slice(0, found.index).split('\n').length,
    language: found[1],
    text: found[2] ?? '',
  }));
  return blocks.flatMap(({ line, language, text: commands }, index) => {
    if (language !== 'sh') return [];
    const next = blocks[index + 1];
    return [{ line, text: commands, promised: next?.language === '' ? next.text : undefined }];
  });
}

/** The commands of people: they have installed the package, and built it. */
function installIn(folder: string): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const rondo = `exec "${process.execPath}" "${join(root, 'lib/surfaces/cli/main.js')}"`;
  const scripts = { rondo: `${rondo} "$@"`, npx: `shift\n${rondo} "$@"`, npm: 'exit 0' };
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

/** What the commands of a page print, one text for each block, in a copy of the examples. */
function outputsOf(blocks: readonly Commands[]): string[] {
  const folder = mkdtempSync(join(root, 'dist', 'commands-'));
  try {
    const bin = installIn(folder);
    cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true });
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1' };
    return blocks.map(({ text }) => {
      const script = text.replaceAll('/tmp/', `${folder}/`);
      return execFileSync('sh', ['-c', `{ ${script}\n} 2>&1`], { cwd: folder, env, encoding: 'utf8' });
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A text without what is different each time: durations, and ids that were made up. */
function steady(text: string): string {
  return text.replace(/\b[\d.]+ (?:ms|s)\b/g, '… ms').replace(/\b[0-9a-f]{16}\b|(?<=:)[A-Za-z0-9]{16}\b/g, '…');
}

function faultsIn(blocks: readonly Commands[], outputs: readonly string[]): string[] {
  return blocks.flatMap(({ line, promised }, index) => {
    const printed = outputs[index] ?? '';
    if (promised === undefined || containsPromised(steady(promised), steady(printed))) return [];
    return [`the commands in line ${line} promise:\n${promised}and print:\n${printed}`];
  });
}

for (const example of examples) {
  const page = join(root, 'examples', example, 'README.md');
  const blocks = commandsIn(readFileSync(page, 'utf8'));
  if (notRun.has(example) || !blocks.some(({ promised }) => promised !== undefined)) continue;
  verifies('docs.output', `the commands in examples/${example}/README.md print what is shown below them`, () => {
    // Later commands name approvals by the ids of one run.
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

verifies('docs.output', 'every example that is not run is one that exists, with its reason', () => {
  for (const [example, reason] of notRun) {
    expect(examples).toContain(example);
    expect(reason).not.toBe('');
  }
});
