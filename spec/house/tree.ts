// Reads the files of the repository: paths relative to the root, forward slashes, no generated or installed files.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file and its content. */
export interface SourceText {
  readonly file: string;
  readonly text: string;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const skipped = new Set(['node_modules', 'dist', 'lib', 'dist-bench', 'coverage', '.rondo']);
const apiReference = 'docs/reference';

/** True for the path of a test file. */
export const isTest = (file: string): boolean => /\.test\.[cm]?[jt]sx?$/.test(file);

/** True for the path of a test file that only `npm run proof` runs. */
export const isProofOnly = (file: string): boolean => /\.proof\.test\.[cm]?[jt]sx?$/.test(file);

/** Resolves a path relative to the root. */
export function absolute(file: string): string {
  return join(root, file);
}

/** True if the path exists. */
export function exists(file: string): boolean {
  return existsSync(absolute(file));
}

/** Reads a file as UTF-8. */
export function readText(file: string): string {
  return readFileSync(absolute(file), 'utf8');
}

/** Returns the JavaScript and TypeScript files below the folders, sorted. A missing folder has no files. */
export function sources(folders: readonly string[]): SourceText[] {
  return folders
    .flatMap(filesBelow)
    .filter((file) => /\.[cm]?[jt]sx?$/.test(file) && !/\.d\.[cm]?ts$/.test(file))
    .sort()
    .map((file) => ({ file, text: readText(file) }));
}

/** Returns the text files below the folders, sorted. A file with a NUL character is binary. */
export function textFiles(folders: readonly string[]): SourceText[] {
  return folders
    .flatMap(filesBelow)
    .sort()
    .map((file) => ({ file, text: readText(file) }))
    .filter(({ text }) => !text.includes('\0'));
}

function filesBelow(folder: string): string[] {
  if (!exists(folder)) return [];
  return readdirSync(absolute(folder), { withFileTypes: true }).flatMap((item) => {
    const path = `${folder}/${item.name}`;
    if (skipped.has(item.name) || path === apiReference) return [];
    return item.isDirectory() ? filesBelow(path) : [path];
  });
}
