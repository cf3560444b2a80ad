/**
 * Definitions from a directory, as flat as LSR's bundles: documents (`*.json`, `*.toml`) and, where the operator trusts
 * the directory, code. A bad file is told and the others load; the order is that of the names.
 */
import { readdir, realpath } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { trustAdvice } from '../../base/permits.js';
import type { Origin } from '../../loops/origin.js';
import type { LoopDef } from '../../protocol/loop.js';
import { importLoops } from './code.js';
import { type BadFile, judgeText, type ParseDefinition } from './document.js';
import { failure, readText } from './read.js';
import { reasonOf } from './unreadable.js';

export interface LoadOptions {
  /** Whether code may run from a directory; asked with its absolute path. */
  readonly trusted: (directory: string) => boolean;
  readonly parse: ParseDefinition;
}

/** A definition that was found: a document that was checked, or the export of a module, which was not. */
export type Found = { readonly file: string; readonly origin: Origin } & (
  | { readonly definition: LoopDef }
  | { readonly code: unknown; readonly name: string }
);

export interface Loaded {
  readonly found: readonly Found[];
  readonly bad: readonly BadFile[];
}

const SIZE = 4 * 1024 * 1024;
const AT_ONCE = 16;
const NOT_OURS =
  /^(?:\..*|package\.json|package-lock\.json|tsconfig\.json|rondo\.toml|.*\.script\.json|.*\.d\.ts|.*\.test\..*)$/s;

const isDocument = (file: string): boolean => /\.(?:json|toml)$/.test(file);
const isModule = (file: string): boolean => /\.(?:mjs|js|ts)$/.test(file);
const refused = (file: string, reason: string): Loaded => ({ found: [], bad: [{ file, reason }] });

/** All definitions of a directory; one that cannot be read is told as a bad file. */
export async function loadDefinitions(directory: string, options: LoadOptions): Promise<Loaded> {
  const place = resolve(directory);
  const items = await readdir(place, { withFileTypes: true }).catch(failure);
  if (typeof items === 'string') return refused(place, `the directory cannot be listed: ${items}`);
  const ours = items.filter((item) => !item.isDirectory() && !NOT_OURS.test(item.name));
  const files = ours.map(({ name }) => join(place, name)).sort();
  const links = new Set(ours.filter((item) => item.isSymbolicLink()).map(({ name }) => join(place, name)));
  const strays = async (file: string): Promise<Loaded | undefined> =>
    links.has(file) ? strayed(file, place) : undefined;
  const trusted = options.trusted(place);
  const loads = new Map<string, Loaded>();
  const programs = new Set<string>();
  await inTurns(files.filter(isDocument), async (file) => {
    loads.set(file, (await strays(file)) ?? (await loadDocument(file, trusted, options.parse, programs)));
  });
  for (const file of files) {
    if (!isModule(file) || programs.has(file)) continue;
    loads.set(file, (await strays(file)) ?? (await loadModule(file, trusted)));
  }
  const all = files.flatMap((file) => loads.get(file) ?? []);
  return { found: all.flatMap(({ found }) => found), bad: all.flatMap(({ bad }) => bad) };
}

/** The definitions of one file, which the caller has named: links are followed, and a file without a loop is bad. */
export async function loadDefinitionFile(path: string, options: LoadOptions): Promise<Loaded> {
  const file = resolve(path);
  const trusted = options.trusted(dirname(file));
  if (isDocument(file)) return loadDocument(file, trusted, options.parse, new Set());
  if (!isModule(file)) return refused(file, 'a definition is a file that ends in .json, .toml, .mjs, .js or .ts');
  const loaded = await loadModule(file, trusted);
  return loaded.found.length + loaded.bad.length > 0 ? loaded : refused(file, 'it exports no loop');
}

async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  const worker = async (): Promise<void> => {
    for (const item of waiting) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** What is told of a link that leads out of the directory: whoever can write there must not choose what is read. */
async function strayed(file: string, directory: string): Promise<Loaded | undefined> {
  try {
    const [target, home] = await Promise.all([realpath(file), realpath(directory)]);
    return target.startsWith(home + sep)
      ? undefined
      : refused(file, 'it is a link out of the directory, which is not followed');
  } catch (thrown) {
    return refused(file, failure(thrown));
  }
}

async function loadDocument(
  file: string,
  trusted: boolean,
  parse: ParseDefinition,
  programs: Set<string>,
): Promise<Loaded> {
  try {
    const text = await readText(file, SIZE);
    for (const program of programsIn(text)) programs.add(resolve(dirname(file), program));
    const judged = judgeText(file, text, parse);
    if ('bad' in judged) return { found: [], bad: judged.bad };
    return { found: [{ file, origin: originOf(file, trusted), definition: judged.definition }], bad: [] };
  } catch (thrown) {
    return refused(file, reasonOf(thrown));
  }
}

async function loadModule(file: string, trusted: boolean): Promise<Loaded> {
  try {
    const text = await readText(file, SIZE);
    // A program is started, never imported: importing it would run it.
    if (text.startsWith('#!')) return { found: [], bad: [] };
    // guard: untrusted-code-not-imported
    if (!trusted) return refused(file, `it is code, and its directory is not trusted. ${trustAdvice(dirname(file))}`);
    const origin = originOf(file, trusted);
    return { found: (await importLoops(file)).map((item) => ({ file, origin, ...item })), bad: [] };
  } catch (thrown) {
    return refused(file, reasonOf(thrown));
  }
}

function originOf(file: string, trusted: boolean): Origin {
  return { directory: dirname(file), file, trusted };
}

/** The files that a document's tools start as programs. A broken document counts too: its program must not run either. */
function programsIn(text: string): string[] {
  return [...text.matchAll(/exec:([^"':\r\n]+)["']/g)].map(([, program = '']) => program);
}
