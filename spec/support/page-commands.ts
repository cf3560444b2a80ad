// The commands of a document, and what is needed to run them as if the package were installed.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { containsPromised } from '../house/outputs.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A fenced block of a document. */
export interface PageBlock {
  /** The line of its fence. */
  readonly line: number;
  /** The language after the fence; empty for an output. */
  readonly language: string;
  readonly text: string;
}

/** A block of commands of a page, and the output below it. */
export interface PageCommands {
  readonly line: number;
  readonly text: string;
  readonly promised: string | undefined;
}

/** Returns the fenced blocks of a page, in order. */
export function blocksIn(text: string): PageBlock[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    line: text.slice(0, match.index).split('\n').length,
    language: match[1] ?? '',
    text: match[2] ?? '',
  }));
}

/** Returns the blocks of commands among the blocks of a page. */
export function commandsIn(blocks: readonly PageBlock[]): PageCommands[] {
  return blocks.flatMap(({ line, language, text }, index) => {
    if (language !== 'sh') return [];
    const next = blocks[index + 1];
    return [{ line, text, promised: next?.language === '' ? next.text : undefined }];
  });
}

/**
 * Makes the package available in a folder: to modules by its name, and to a shell as `rondo`, `npx rondo` and `npx tsx`.
 * `npm` does nothing. Returns the environment of the shell.
 */
export function installIn(folder: string): { PATH: string; HOME: string; NO_COLOR: string } {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules', 'rondo'));
  const rondo = `"${process.execPath}" "${join(root, 'lib/surfaces/cli/main.js')}"`;
  const npx = `program=$1\nshift\n[ "$program" = tsx ] && exec "${process.execPath}" --import tsx "$@"\nexec ${rondo} "$@"`;
  const scripts = { rondo: `exec ${rondo} "$@"`, npx, npm: 'exit 0' };
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return { PATH: `${bin}:${process.env.PATH}`, HOME: folder, NO_COLOR: '1' };
}

/** Runs blocks in a folder with a copy of the examples, in a directory of it. Returns the output of each. */
export function outputsOf(blocks: readonly PageCommands[], directory = '.'): string[] {
  const folder = mkdtempSync(join(root, 'dist', 'commands-'));
  try {
    const env = installIn(folder);
    // The nearest one applies to tsx: that of the repository would replace the built package by its sources.
    writeFileSync(join(folder, 'tsconfig.json'), '{}');
    const filter = (file: string) => basename(file) !== 'node_modules';
    cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true, filter });
    return blocks.map(({ text }) => {
      const script = text.replaceAll('/tmp/', `${folder}/`);
      return execFileSync('sh', ['-c', `{ ${script}\n} 2>&1`], { cwd: join(folder, directory), env, encoding: 'utf8' });
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Replaces durations, generated ids and hashes, which differ in each run. */
function withoutVariableParts(text: string): string {
  return text
    .replace(/\b[\d.]+ (?:ms|s)\b/g, '… ms')
    .replace(/\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|(?<=:)[A-Za-z0-9]{16}\b/g, '…');
}

/** Returns the blocks whose output differs from the promised one. */
export function commandFaults(blocks: readonly PageCommands[], outputs: readonly string[]): string[] {
  return blocks.flatMap(({ line, promised }, index) => {
    const printed = outputs[index] ?? '';
    if (promised === undefined || containsPromised(withoutVariableParts(promised), withoutVariableParts(printed)))
      return [];
    return [`the commands in line ${line} promise:\n${promised}and print:\n${printed}`];
  });
}

/** Returns the blocks with another promise in place of each. A test compares them to prove that it detects it. */
export function withWrongPromises(blocks: readonly PageCommands[]): PageCommands[] {
  return blocks.map((block) => ({ ...block, promised: block.promised?.replace(/\w{4,}/, 'otherwise') }));
}
