/**
 * The settings of a project: rondo.toml. An unknown key is refused, because a misspelt setting must not silently become
 * its default. Secrets never stand here: a backend names the variable of the environment that holds its key. Nor does
 * authority: a project comes from anywhere, so it grants itself no trust, and its paths stay inside of it.
 */
import { dirname, isAbsolute, resolve } from 'node:path';
import { isInsideWithLinksResolved } from './inside.js';
import { ConfigKeyError, optionalString, readTomlFile, type TomlTable, toTable } from './toml-table.js';

/** What a million tokens cost, in millionths of the currency. */
export interface Price {
  readonly inputPerMillion: number;
  readonly outputPerMillion: number;
}

/** A model server that is not built in. */
export interface CustomBackend {
  readonly kind: 'openai-compatible';
  readonly baseURL: string;
  /** The variable of the environment that holds the key. */
  readonly apiKeyEnv?: string;
  /** What answers when a definition names no model. */
  readonly model?: string;
}

/** The settings as they were written, with absolute paths; what is absent was not written. */
export interface ProjectConfig {
  /** The file they come from; undefined when there is none. */
  readonly file: string | undefined;
  readonly data?: string;
  readonly loops?: string;
  readonly store?: string;
  readonly engine?: string;
  /** By `backend/model`. */
  readonly prices: ReadonlyMap<string, Price>;
  /** By id. */
  readonly backends: ReadonlyMap<string, CustomBackend>;
}

const CONFIG_FILE_NAME = 'rondo.toml';
const MAX_CONFIG_BYTES = 1024 * 1024;

function requireAmount({ path, members }: TomlTable, key: string): number {
  const value = members.get(key);
  if (value === undefined) throw new ConfigKeyError([...path, key], 'is required');
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw new ConfigKeyError([...path, key], 'must be a number from 0 up');
}

function tableEntries(root: TomlTable, key: string): [name: string, value: unknown, path: readonly string[]][] {
  const value = root.members.get(key);
  if (value === undefined) return [];
  const { members, path } = toTable(value, [...root.path, key]);
  return [...members].map(([name, part]) => [name, part, [...path, name]]);
}

function parsePrice(value: unknown, path: readonly string[]): Price {
  if (!/^[^/]+\/./s.test(path.at(-1) ?? '')) throw new ConfigKeyError(path, 'must be named "backend/model"');
  const members = toTable(value, path, ['inputPerMillion', 'outputPerMillion']);
  return {
    inputPerMillion: requireAmount(members, 'inputPerMillion'),
    outputPerMillion: requireAmount(members, 'outputPerMillion'),
  };
}

function parseCustomBackend(value: unknown, path: readonly string[]): CustomBackend {
  const members = toTable(value, path, ['kind', 'baseURL', 'apiKeyEnv', 'model']);
  const kind = optionalString(members, 'kind', /^openai-compatible$/, '"openai-compatible"');
  const baseURL = optionalString(
    members,
    'baseURL',
    /^https?:\/\/[^\s/@]/,
    'a URL that starts with https:// or http://',
  );
  const apiKeyEnv = optionalString(
    members,
    'apiKeyEnv',
    /^[A-Za-z_][A-Za-z0-9_]*$/,
    'the name of a variable, not the key itself',
  );
  const model = optionalString(members, 'model');
  if (kind === undefined) throw new ConfigKeyError([...path, 'kind'], 'is required; write "openai-compatible"');
  if (baseURL === undefined) throw new ConfigKeyError([...path, 'baseURL'], 'is required');
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url === undefined || url.username + url.password !== '') {
    throw new ConfigKeyError([...path, 'baseURL'], 'must be a URL without a user or a password');
  }
  return { kind: 'openai-compatible', baseURL, ...omitUndefined({ apiKeyEnv, model }) };
}

/** A file in a store's URL is relative to the settings, like any other path in them. */
function resolveStoreUrl(home: string, store: string | undefined): string | undefined {
  const file = store?.startsWith('sqlite:') ? store.slice('sqlite:'.length) : '';
  return file === '' || isAbsolute(file) ? store : `sqlite:${resolve(home, file)}`;
}

/** Only the members that were written. */
function omitUndefined<K extends string>(
  members: { readonly [key in K]: string | undefined },
): { [key in K]?: string } {
  const written = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(written) as { [key in K]?: string };
}

/** What a file that is not trusted must keep inside of its own directory. */
export type ConfigPathKey = 'data' | 'loops' | 'store';

export interface ConfigOptions {
  /** Which paths may not leave the directory of the file, asked with that directory; none unless told. */
  readonly confinedPaths?: (directory: string) => readonly ConfigPathKey[];
}

function assertPathsConfined(config: ProjectConfig, home: string, keys: readonly ConfigPathKey[]): void {
  const places = { data: config.data, loops: config.loops, store: config.store?.replace(/^sqlite:/, '') };
  for (const key of keys) {
    const place = places[key];
    if (place === undefined || !isAbsolute(place) || isInsideWithLinksResolved(home, place)) continue;
    const instead = `give it as --${key} or RONDO_${key.toUpperCase()}, or trust the directory: rondo trust ${home}`;
    throw new ConfigKeyError([key], `leads out of ${home}, which is not trusted; ${instead}`);
  }
}

const TRUST_KEY_REFUSED =
  'is not for a project to say: a directory that could trust itself would be no safer than none. Remove it, and run: rondo trust DIR';

function parseConfig(value: unknown, file: string, { confinedPaths = () => [] }: ConfigOptions): ProjectConfig {
  const home = dirname(file);
  const known = ['data', 'loops', 'store', 'engine', 'prices', 'backends'];
  if (toTable(value, []).members.has('trust')) throw new ConfigKeyError(['trust'], TRUST_KEY_REFUSED);
  const root = toTable(value, [], known);
  const [data, loops] = [optionalString(root, 'data'), optionalString(root, 'loops')];
  const config: ProjectConfig = {
    file,
    ...omitUndefined({
      data: data === undefined ? undefined : resolve(home, data),
      loops: loops === undefined ? undefined : resolve(home, loops),
      store: resolveStoreUrl(home, optionalString(root, 'store')),
      engine: optionalString(root, 'engine'),
    }),
    prices: new Map(tableEntries(root, 'prices').map(([name, part, path]) => [name, parsePrice(part, path)])),
    backends: new Map(
      tableEntries(root, 'backends').map(([name, part, path]) => [name, parseCustomBackend(part, path)]),
    ),
  };
  // guard: config-paths-confined
  assertPathsConfined(config, home, confinedPaths(home));
  return config;
}

/** The settings of a file that was named, or of rondo.toml here if there is one; CONFIG_INVALID says what is wrong. */
export async function loadConfig(
  named: string | undefined,
  directory = process.cwd(),
  options: ConfigOptions = {},
): Promise<ProjectConfig> {
  const file = resolve(directory, named ?? CONFIG_FILE_NAME);
  return (
    (await readTomlFile(file, MAX_CONFIG_BYTES, named === undefined, (value) => parseConfig(value, file, options))) ??
    EMPTY_CONFIG
  );
}

const EMPTY_CONFIG: ProjectConfig = { file: undefined, prices: new Map(), backends: new Map() };
