// Bundles copies of the library into a temporary folder: intact ones, and broken twins in which one guard is broken. A
// bundle has few files, which load faster than hundreds of modules.

import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';
import type { LibraryParts } from './library.js';
import { fileOf, sourceFolder } from './markers.js';
import { mutate, type Operation } from './mutate.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** One guard to break, and how. */
export interface BrokenGuard {
  readonly slug: string;
  readonly operation: Operation;
}

/** Replaces the source of one module by its broken twin. Throws if no part of the library imports the module. */
function breaking({ slug, operation }: BrokenGuard): Plugin {
  const { file, text } = fileOf(slug);
  let isLoaded = false;
  return {
    name: 'break-guard',
    load(id) {
      if (id !== join(sourceFolder, file)) return null;
      isLoaded = true;
      return { code: mutate(file, text, slug, operation), moduleType: 'ts' };
    },
    buildEnd() {
      if (!isLoaded) throw new Error(`No part of this library imports ${file}, where guard "${slug}" is.`);
    },
  };
}

async function bundle(parts: LibraryParts, target: string, plugins: Plugin[]): Promise<void> {
  const names = parts.map((part) => part.replace(/\.js$/, ''));
  const build = await rolldown({
    input: Object.fromEntries(names.map((name) => [name, join(sourceFolder, `${name}.ts`)])),
    cwd: root,
    platform: 'node',
    external: /^[^./]/,
    resolve: { extensionAlias: { '.js': ['.ts'] } },
    plugins,
  });
  await build.write({ dir: target, format: 'esm', entryFileNames: '[name].js' });
  await build.close();
}

export class TwinBuilder<L> {
  private readonly parts: LibraryParts;
  private readonly folder = mkdtempSync(join(tmpdir(), 'rondo-guards-'));
  /** The test runner does not transform files in a folder of this name, which would take most of the time. */
  private readonly copies = join(this.folder, 'copies', 'node_modules');
  private count = 0;

  constructor(parts: LibraryParts) {
    this.parts = parts;
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'));
  }

  /** Loads a separate copy of the library, intact or broken, that shares no state with others. */
  async load(broken?: BrokenGuard): Promise<L> {
    this.count += 1;
    const folder = join(this.copies, `copy-${this.count}`);
    await bundle(this.parts, folder, broken === undefined ? [] : [breaking(broken)]);
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const loaded = await Promise.all(this.parts.map((part) => import(pathToFileURL(join(folder, part)).href)));
    return Object.assign({ folder }, ...loaded) as L;
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
