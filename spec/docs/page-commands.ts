// Runs the commands of a page and compares their output with the page.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { containsPromised } from '../house/outputs.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A block of commands of a page, and the output below it. */
export interface Commands {
  readonly line: number;
  readonly text: string;
  readonly promised: string | undefined;
}

/** Returns the blocks of commands of a page, in order. */
export function commandsIn(text: string): Commands[] {
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

/** Creates a directory with `rondo`, `npx` and `npm` as if the packages were installed and built. Returns its path. */
function installIn(folder: string): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const rondo = `exec "${process.execPath}" "${join(root, 'lib/surfaces/cli/main.js')}"`;
  const tsx = `exec "${process.execPath}" --import "${import.meta.resolve('tsx')}"`;
  const npx = `name="$1"\nshift\n[ "$name" = tsx ] && ${tsx} "$@"\n${rondo} "$@"`;
  const scripts = { rondo: `${rondo} "$@"`, npx, npm: 'exit 0' };
  // tsx applies the nearest one: that of the repository would replace the built package by its sources.
  writeFileSync(join(folder, 'tsconfig.json'), '{}');
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

/** Runs the blocks in a directory of a copy of the repository with its examples. Returns the output of each. */
export function outputsOf(blocks: readonly Commands[], directory = '.'): string[] {
  const folder = mkdtempSync(join(root, 'dist', 'commands-'));
  try {
    const bin = installIn(folder);
    cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true });
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1' };
    return blocks.map(({ text }) => {
      const script = text.replaceAll('/tmp/', `${folder}/`);
      return execFileSync('sh', ['-c', `{ ${script}\n} 2>&1`], { cwd: join(folder, directory), env, encoding: 'utf8' });
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Replaces durations and generated ids, which differ in each run. */
function withoutVariableParts(text: string): string {
  return text.replace(/\b[\d.]+ (?:ms|s)\b/g, '… ms').replace(/\b[0-9a-f]{16}\b|(?<=:)[A-Za-z0-9]{16}\b/g, '…');
}

/** Returns the blocks whose output is not the promised one. */
export function faultsIn(blocks: readonly Commands[], outputs: readonly string[]): string[] {
  return blocks.flatMap(({ line, promised }, index) => {
    const printed = outputs[index] ?? '';
    if (promised === undefined || containsPromised(withoutVariableParts(promised), withoutVariableParts(printed)))
      return [];
    return [`the commands in line ${line} promise:\n${promised}and print:\n${printed}`];
  });
}
