/** Settings in TOML: tables with known keys, and where in the file something is wrong. */
import { LoopError } from '../../base/errors.js';
import { readText } from './read.js';
import { placeInToml, readToml } from './toml.js';
import { type Place, reasonOf, Unreadable } from './unreadable.js';

/** What is wrong, and where. */
export class Flaw extends Error {
  readonly path: readonly string[];

  constructor(path: readonly string[], reason: string) {
    super(reason);
    this.path = path;
  }
}

/** A table of the file; every look into it says where it looks. */
export interface Table {
  readonly path: readonly string[];
  readonly members: ReadonlyMap<string, unknown>;
}

export function table(value: unknown, path: readonly string[], known?: readonly string[]): Table {
  const isTable = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
  if (!isTable) throw new Flaw(path, 'must be a table');
  const members = new Map<string, unknown>(Object.entries(value));
  for (const key of members.keys()) {
    if (known !== undefined && !known.includes(key)) throw new Flaw([...path, key], unknownKey(key, known));
  }
  return { path, members };
}

/** Case, dashes and underscores are what people get wrong, and the ends of words. */
function unknownKey(key: string, known: readonly string[]): string {
  const plain = (word: string): string => word.toLowerCase().replace(/[^a-z]/g, '');
  const begin = plain(key).slice(0, 3);
  const meant = known.find((name) => plain(name) === plain(key)) ?? known.find((name) => plain(name).startsWith(begin));
  const guess = meant === undefined || begin === '' ? '' : `; did you mean "${meant}"?`;
  return `is not a known key; known here: ${known.join(', ')}${guess}`;
}

/** The value is never repeated in the reason: somebody may have put a secret there. */
export function text(
  { path, members }: Table,
  key: string,
  pattern = /\S/,
  says = 'text that is not empty',
): string | undefined {
  const value = members.get(key);
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !pattern.test(value)) throw new Flaw([...path, key], `must be ${says}`);
  return value;
}

function refusal(file: string, reason: string, path: string | undefined, place: Place | undefined): LoopError {
  const where = place === undefined ? file : `${file}:${place.line}`;
  const message = `${where}: ${path === undefined ? '' : `${path} `}${reason}.`;
  const data = { file, reason, ...(path === undefined ? {} : { path }), ...place };
  return new LoopError('CONFIG_INVALID', message, data);
}

const pointerOf = (path: readonly string[]): string =>
  path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** What is read from the table of a file; undefined if it is absent and may be. CONFIG_INVALID says what is wrong and where. */
export async function readTable<T>(
  file: string,
  maxBytes: number,
  mayBeAbsent: boolean,
  read: (value: unknown) => T,
): Promise<T | undefined> {
  let written = '';
  try {
    written = await readText(file, maxBytes);
    return read(readToml(written));
  } catch (thrown) {
    if (thrown instanceof Unreadable && thrown.missing && mayBeAbsent) return undefined;
    if (thrown instanceof Unreadable) throw refusal(file, thrown.message, undefined, thrown.place);
    if (!(thrown instanceof Flaw)) throw refusal(file, reasonOf(thrown), undefined, undefined);
    const path = pointerOf(thrown.path);
    throw refusal(file, thrown.message, path, placeInToml(written, path));
  }
}
