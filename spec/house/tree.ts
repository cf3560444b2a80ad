// The repository as the house tests see it: paths from the root, forward slashes, no built or installed files.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface SourceText {
  readonly file: string;
  readonly text: string;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const skipped = new Set(['node_modules', 'dist', 'lib', 'dist-bench', 'coverage']);

export const isTest = (file: string): boolean => /\.test\.[cm]?[jt]sx?$/.test(file);

export function absolute(file: string): string {
  return join(root, file);
}

export function exists(file: string): boolean {
  return existsSync(absolute(file));
}

export function readText(file: string): string {
  return readFileSync(absolute(file), 'utf8');
}

/** Every script or TypeScript file below the folders, sorted; a folder that does not exist holds none. */
export function sources(folders: readonly string[]): SourceText[] {
  return folders
    .flatMap(filesBelow)
    .filter((file) => /\.[cm]?[jt]sx?$/.test(file) && !/\.d\.[cm]?ts$/.test(file))
    .sort()
    .map((file) => ({ file, text: readText(file) }));
}

function filesBelow(folder: string): string[] {
  if (!exists(folder)) return [];
  return readdirSync(absolute(folder), { withFileTypes: true }).flatMap((item) => {
    if (skipped.has(item.name)) return [];
    const path = `${folder}/${item.name}`;
    return item.isDirectory() ? filesBelow(path) : [path];
  });
}
