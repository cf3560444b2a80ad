// Builds the library anew in a folder of its own, with one guard broken, so that a check can be shown to notice.

import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../..', import.meta.url));
const source = join(root, 'src');

/** What is compiled, and what of it is loaded. */
export interface Shelf {
  readonly rings: RegExp;
  readonly parts: readonly string[];
}

/** What most guards are guards of. */
const rings =
  /^(?:protocol|base|journal|kernel|adapters[/]memory|adapters[/]sqlite(?:[/](?:owner|wire))?|testing)[/][^/]*$/;

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
  typeof import('../../src/base/errors.js') &
  typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/adapters/sqlite/index.js') &
  typeof import('../../src/testing/crashing-journal.js') &
  typeof import('../../src/testing/journal-cases.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/adapters/system/seeded-ids.js') & { readonly folder: string };

/** All that a turn passes through, for the guards of the gate. */
export const hosting: Shelf = {
  rings: /^(?:(?:protocol|base|journal|kernel|adapters[/]memory|testing)[/][^/]*|(?:loops|layers|host|views)[/].*)$/,
  parts: [
    'kernel/session.js',
    'adapters/memory/index.js',
    'testing/manual-clock.js',
    'testing/seeded-ids.js',
    'host/host.js',
    'layers/approval.js',
    'loops/define.js',
    'loops/registry.js',
  ],
};

export type Hosting = typeof import('../../src/kernel/session.js') &
  typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/adapters/system/seeded-ids.js') &
  typeof import('../../src/host/host.js') &
  typeof import('../../src/layers/approval.js') &
  typeof import('../../src/loops/define.js') &
  typeof import('../../src/loops/registry.js');

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

function compileAll(target: string, wanted: RegExp): void {
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !path.endsWith('.ts') || path.endsWith('.test.ts')) continue;
    if (!wanted.test(relative(source, path))) continue;
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
export class Workshop<L = Library> {
  private readonly shelf: Shelf;
  private readonly folder = mkdtempSync(join(tmpdir(), 'rondo-guards-'));
  /** Under this name the test runner leaves them as they are; compiling them once more is most of the time. */
  private readonly copies = join(this.folder, 'copies', 'node_modules');
  private count = 0;

  constructor(shelf: Shelf = { rings, parts }) {
    this.shelf = shelf;
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'));
    compileAll(join(this.copies, 'whole'), shelf.rings);
    writeFileSync(join(this.copies, 'whole', 'package.json'), '{"type":"module"}');
  }

  async load(broken?: Break): Promise<L> {
    this.count += 1;
    const folder = join(this.copies, `copy-${this.count}`);
    cpSync(join(this.copies, 'whole'), folder, { recursive: true });
    if (broken !== undefined) breakGuard(folder, broken);
    const loaded = await Promise.all(this.shelf.parts.map((part) => import(pathToFileURL(join(folder, part)).href)));
    return Object.assign({ folder }, ...loaded) as L;
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
