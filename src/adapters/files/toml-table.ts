/** Reads settings from TOML files: tables with a fixed set of keys, and errors with key path and line. */
import { LoopError } from '../../base/errors.js';
import { DocumentReadError, describeError, type TextPosition } from './document-read-error.js';
import { parseToml } from './parse-toml.js';
import { readText } from './read-text.js';
import { findTomlPositions } from './toml-positions.js';

/** Thrown for an invalid setting. `path` holds the keys that lead to it. */
export class ConfigKeyError extends Error {
  readonly path: readonly string[];

  constructor(path: readonly string[], reason: string) {
    super(reason);
    this.path = path;
  }
}

/** A TOML table together with its path, which errors report. */
export interface TomlTable {
  readonly path: readonly string[];
  readonly members: ReadonlyMap<string, unknown>;
}

/**
 * Converts a value to a table. Throws ConfigKeyError if it is not a table, or if it has a key that is not in
 * `knownKeys`. Without `knownKeys`, all keys are accepted.
 */
export function toTable(value: unknown, path: readonly string[], knownKeys?: readonly string[]): TomlTable {
  const isTable = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
  if (!isTable) throw new ConfigKeyError(path, 'must be a table');
  const members = new Map<string, unknown>(Object.entries(value));
  for (const key of members.keys()) {
    if (knownKeys !== undefined && !knownKeys.includes(key))
      throw new ConfigKeyError([...path, key], unknownKeyReason(key, knownKeys));
  }
  return { path, members };
}

/**
 * Returns the message for an unknown key. It suggests a known key that differs only in case or in characters that are
 * not letters, or else one with the same first three letters.
 */
function unknownKeyReason(key: string, knownKeys: readonly string[]): string {
  const normalize = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '');
  const prefix = normalize(key).slice(0, 3);
  const suggestion =
    knownKeys.find((name) => normalize(name) === normalize(key)) ??
    knownKeys.find((name) => normalize(name).startsWith(prefix));
  const hint = suggestion === undefined || prefix === '' ? '' : `; did you mean "${suggestion}"?`;
  return `is not a known key; known here: ${knownKeys.join(', ')}${hint}`;
}

/**
 * Returns a string setting, or undefined if it is absent. Throws ConfigKeyError if it is not a string or does not match
 * the pattern. The message does not contain the value, which may be a secret in the wrong place.
 */
export function optionalString(
  { path, members }: TomlTable,
  key: string,
  pattern = /\S/,
  requirement = 'a non-empty string',
): string | undefined {
  const value = members.get(key);
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !pattern.test(value))
    throw new ConfigKeyError([...path, key], `must be ${requirement}`);
  return value;
}

function configError(
  file: string,
  reason: string,
  path: string | undefined,
  position: TextPosition | undefined,
): LoopError {
  const where = position === undefined ? file : `${file}:${position.line}`;
  const message = `${where}: ${path === undefined ? '' : `${path} `}${reason}.`;
  const data = { file, reason, ...(path === undefined ? {} : { path }), ...position };
  return new LoopError('CONFIG_INVALID', message, data);
}

const jsonPointerOf = (path: readonly string[]): string =>
  path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/**
 * Reads a TOML file and converts its root table. Returns undefined if the file does not exist and `mayBeAbsent` is
 * true. Throws CONFIG_INVALID for every other problem, including an error that `convert` throws. The error has the line
 * of a syntax error, and the JSON Pointer and the line of an invalid setting.
 */
export async function readTomlFile<T>(
  file: string,
  maxBytes: number,
  mayBeAbsent: boolean,
  convert: (value: unknown) => T,
): Promise<T | undefined> {
  let text = '';
  try {
    text = await readText(file, maxBytes);
    return convert(parseToml(text));
  } catch (thrown) {
    if (thrown instanceof DocumentReadError && thrown.isMissing && mayBeAbsent) return undefined;
    if (thrown instanceof DocumentReadError) throw configError(file, thrown.message, undefined, thrown.position);
    if (!(thrown instanceof ConfigKeyError)) throw configError(file, describeError(thrown), undefined, undefined);
    const path = jsonPointerOf(thrown.path);
    throw configError(file, thrown.message, path, findTomlPositions(text)(path));
  }
}
