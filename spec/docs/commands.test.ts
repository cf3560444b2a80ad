// Runs the commands of the example pages and compares their output with the pages.

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

/** A block of commands of a page, and the output below it. */
interface Commands {
  readonly line: number;
  readonly text: string;
  readonly promised: string | undefined;
}

/** Pages whose commands are not run here, with the reason. Each example's `verify.mjs` checks them. */
const notRun: ReadonlyMap<string, string> = new Map([
  ['04-tools', 'its server needs the fixed port that the definition names'],
  ['07-coding-agent', 'it is a conversation in a terminal'],
]);

function commandsIn(text: string): Commands[] {
  const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length,
    language: match[1],
    text: match[2] ?? '',
  }));
  return blocks.flatMap(({ line, language, text: commands }, index) => {
    if (language !== 'sh') return [];
    const next = blocks[index + 1];
    return [{ line, text: commands, promised: next?.language === '' ? next.text : undefined }];
  });
}

/** Creates a directory with `rondo`, `npx` and `npm` as if the package were installed and built. Returns its path. */
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

/** Runs the blocks in a copy of the examples. Returns the output of each. */
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

/** Replaces durations and generated ids, which differ in each run. */
function withoutVariableParts(text: string): string {
  return text.replace(/\b[\d.]+ (?:ms|s)\b/g, '… ms').replace(/\b[0-9a-f]{16}\b|(?<=:)[A-Za-z0-9]{16}\b/g, '…');
}

function faultsIn(blocks: readonly Commands[], outputs: readonly string[]): string[] {
  return blocks.flatMap(({ line, promised }, index) => {
    const printed = outputs[index] ?? '';
    if (promised === undefined || containsPromised(withoutVariableParts(promised), withoutVariableParts(printed)))
      return [];
    return [`the commands in line ${line} promise:\n${promised}and print:\n${printed}`];
  });
}

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
