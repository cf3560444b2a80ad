/** Settings in TOML: tables with known keys, and where in the file something is wrong. */
import { LoopError } from '../../base/errors.js';
import { DocumentReadError, describeError, type TextPosition } from './document-read-error.js';
import { parseToml, positionInToml } from './parse-toml.js';
import { readText } from './read-text.js';

/** What is wrong, and where. */
export class ConfigKeyError extends Error {
  readonly path: readonly string[];

  constructor(path: readonly string[], reason: string) {
    super(reason);
    this.path = path;
  }
}

/** A table of the file; every look into it says where it looks. */
export interface TomlTable {
  readonly path: readonly string[];
  readonly members: ReadonlyMap<string, unknown>;
}

export function toTable(value: unknown, path: readonly string[], known?: readonly string[]): TomlTable {
  const isTable = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
  if (!isTable) throw new ConfigKeyError(path, 'must be a table');
  const members = new Map<string, unknown>(Object.entries(value));
  for (const key of members.keys()) {
    if (known !== undefined && !known.includes(key))
      throw new ConfigKeyError([...path, key], unknownKeyReason(key, known));
  }
  return { path, members };
}

/** Case, dashes and underscores are what people get wrong, and the ends of words. */
function unknownKeyReason(key: string, known: readonly string[]): string {
  const plain = (word: string): string => word.toLowerCase().replace(/[^a-z]/g, '');
  const begin = plain(key).slice(0, 3);
  const meant = known.find((name) => plain(name) === plain(key)) ?? known.find((name) => plain(name).startsWith(begin));
  const guess = meant === undefined || begin === '' ? '' : `; did you mean "${meant}"?`;
  return `is not a known key; known here: ${known.join(', ')}${guess}`;
}

/** The value is never repeated in the reason: somebody may have put a secret there. */
export function optionalString(
  { path, members }: TomlTable,
  key: string,
  pattern = /\S/,
  says = 'text that is not empty',
): string | undefined {
  const value = members.get(key);
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !pattern.test(value)) throw new ConfigKeyError([...path, key], `must be ${says}`);
  return value;
}

function configError(
  file: string,
  reason: string,
  path: string | undefined,
  place: TextPosition | undefined,
): LoopError {
  const where = place === undefined ? file : `${file}:${place.line}`;
  const message = `${where}: ${path === undefined ? '' : `${path} `}${reason}.`;
  const data = { file, reason, ...(path === undefined ? {} : { path }), ...place };
  return new LoopError('CONFIG_INVALID', message, data);
}

const jsonPointerOf = (path: readonly string[]): string =>
  path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** What is read from the table of a file; undefined if it is absent and may be. CONFIG_INVALID says what is wrong and where. */
export async function readTomlFile<T>(
  file: string,
  maxBytes: number,
  mayBeAbsent: boolean,
  read: (value: unknown) => T,
): Promise<T | undefined> {
  let written = '';
  try {
    written = await readText(file, maxBytes);
    return read(parseToml(written));
  } catch (thrown) {
    if (thrown instanceof DocumentReadError && thrown.isMissing && mayBeAbsent) return undefined;
    if (thrown instanceof DocumentReadError) throw configError(file, thrown.message, undefined, thrown.place);
    if (!(thrown instanceof ConfigKeyError)) throw configError(file, describeError(thrown), undefined, undefined);
    const path = jsonPointerOf(thrown.path);
    throw configError(file, thrown.message, path, positionInToml(written, path));
  }
}
