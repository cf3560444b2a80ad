// Builds the library anew in a folder of its own, with one guard broken, so that a check can be shown to notice.

import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../..', import.meta.url));
const source = join(root, 'src');

/** What the guards are guards of; the rings above have checks of their own. */
const rings = /^(?:protocol|journal|kernel|adapters[/](?:memory|sqlite)|testing)[/][^/]*$/;

const parts = [
  'kernel/session.js',
  'journal/errors.js',
  'adapters/memory/index.js',
  'adapters/sqlite/index.js',
  'testing/crashing-journal.js',
  'testing/journal-cases.js',
  'testing/manual-clock.js',
  'testing/seeded-ids.js',
] as const;

export type Library = typeof import('../../src/kernel/session.js') &
  typeof import('../../src/journal/errors.js') &
  typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/adapters/sqlite/index.js') &
  typeof import('../../src/testing/crashing-journal.js') &
  typeof import('../../src/testing/journal-cases.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/testing/seeded-ids.js') & { readonly folder: string };

/** One guard taken out: `from` must stand exactly once in the file. */
export interface Break {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

function transpile(text: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}

function compileAll(target: string): void {
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !path.endsWith('.ts') || path.endsWith('.test.ts')) continue;
    if (!rings.test(relative(source, path))) continue;
    const out = join(target, relative(source, path).replace(/\.ts$/, '.js'));
    mkdirSync(dirname(out), { recursive: true });
    writeFileSync(out, transpile(readFileSync(path, 'utf8')));
  }
}

function breakGuard(target: string, { file, from, to }: Break): void {
  const text = readFileSync(join(source, file), 'utf8');
  const places = text.split(from).length - 1;
  if (places !== 1)
    throw new Error(`${file} holds the guard ${JSON.stringify(from)} ${places} times; it must be once.`);
  writeFileSync(join(target, file.replace(/\.ts$/, '.js')), transpile(text.replace(from, () => to)));
}

/** Compiled copies of the library: whole ones and broken ones. */
export class Workshop {
  private readonly folder = mkdtempSync(join(tmpdir(), 'rondo-guards-'));
  private count = 0;

  constructor() {
    writeFileSync(join(this.folder, 'package.json'), '{"type":"module"}');
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'));
    compileAll(join(this.folder, 'whole'));
  }

  async load(broken?: Break): Promise<Library> {
    this.count += 1;
    const folder = join(this.folder, `copy-${this.count}`);
    cpSync(join(this.folder, 'whole'), folder, { recursive: true });
    if (broken !== undefined) breakGuard(folder, broken);
    const loaded = await Promise.all(parts.map((part) => import(pathToFileURL(join(folder, part)).href)));
    return Object.assign({ folder }, ...loaded) as Library;
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
