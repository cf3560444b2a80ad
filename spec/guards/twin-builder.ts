// Compiles copies of the library into a temporary folder: intact ones, and broken twins in which one guard is broken.

import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import type { LibraryParts } from './library.js';
import { fileOf, sourceFolder } from './markers.js';
import { mutate, type Operation } from './mutate.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** One guard to break, and how. */
export interface BrokenGuard {
  readonly slug: string;
  readonly operation: Operation;
}

function transpile(text: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

/** Compiles the modules and everything that they import. */
function compile(modules: LibraryParts, target: string): void {
  const queue = new Set(modules);
  for (const module of queue) {
    const compiled = transpile(readFileSync(join(sourceFolder, module.replace(/\.js$/, '.ts')), 'utf8'));
    mkdirSync(dirname(join(target, module)), { recursive: true });
    writeFileSync(join(target, module), compiled);
    for (const { fileName } of ts.preProcessFile(compiled).importedFiles)
      if (fileName.startsWith('.')) queue.add(join(dirname(module), fileName));
  }
}

function breakGuard({ slug, operation }: BrokenGuard, target: string): void {
  const { file, text } = fileOf(slug);
  const compiled = join(target, file.replace(/\.ts$/, '.js'));
  if (!existsSync(compiled)) throw new Error(`No part of this library imports ${file}, where guard "${slug}" is.`);
  writeFileSync(compiled, transpile(mutate(file, text, slug, operation)));
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
    compile(parts, join(this.copies, 'intact'));
    writeFileSync(join(this.copies, 'intact', 'package.json'), '{"type":"module"}');
  }

  /** Loads a separate copy of the library, intact or broken, that shares no state with others. */
  async load(broken?: BrokenGuard): Promise<L> {
    this.count += 1;
    const folder = join(this.copies, `copy-${this.count}`);
    cpSync(join(this.copies, 'intact'), folder, { recursive: true });
    if (broken !== undefined) breakGuard(broken, folder);
    const loaded = await Promise.all(this.parts.map((part) => import(pathToFileURL(join(folder, part)).href)));
    return Object.assign({ folder }, ...loaded) as L;
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
