/**
 * Reads the project configuration, rondo.toml. Unknown keys are errors, so that a misspelt setting does not silently
 * fall back to its default. The file contains no secrets: a model server names the environment variable that holds its
 * key. It grants no authority either: a project may come from anywhere, so it cannot declare itself trusted, and the
 * caller can require that its paths stay inside its directory.
 */
import { dirname, isAbsolute, resolve } from 'node:path';
import { isCalendarDay } from '../../base/calendar-day.js';
import { configKeys, configPatterns } from './config-schema.js';
import { isInsideWithLinksResolved } from './inside.js';
import { ConfigKeyError, optionalString, readTomlFile, type TomlTable, toTable } from './toml-table.js';

/** The prices of one million input tokens and of one million output tokens, in millionths of a currency unit. */
export interface Price {
  readonly inputPerMillion: number;
  readonly outputPerMillion: number;
  /** The first day on which it applies, as `YYYY-MM-DD`. */
  readonly from?: string;
}

/** A model server configured by the user: any server with an OpenAI-compatible chat API. */
export interface CustomBackend {
  readonly kind: 'openai-compatible';
  readonly baseURL: string;
  /** The name of the environment variable that holds the API key; absent if the server needs none. */
  readonly apiKeyEnv?: string;
  /** The model to use if a definition names none. */
  readonly model?: string;
}

/**
 * The parsed configuration, with absolute paths. A setting that the file omits is absent or, for `prices` and
 * `backends`, an empty map.
 */
export interface ProjectConfig {
  /** The path of the configuration file; undefined if there is none. */
  readonly file: string | undefined;
  /** The data directory. */
  readonly data?: string;
  /** The directory of definitions. */
  readonly loops?: string;
  /** The URL of the store, such as `memory:` or `sqlite:PATH`. It is not validated here. */
  readonly store?: string;
  /** The name of the engine that runs turns. It is not validated here. */
  readonly engine?: string;
  /** The model of prompts that name none: `PROVIDER` or `PROVIDER:MODEL`. */
  readonly model?: string;
  /** Keyed by `backend/model`. A model may have several prices, each from its date on. */
  readonly prices: ReadonlyMap<string, readonly Price[]>;
  /** Keyed by provider id. */
  readonly backends: ReadonlyMap<string, CustomBackend>;
  /** The ids of the loops that the verbs of workflows stand for, by verb. */
  readonly verbs: ReadonlyMap<string, string>;
}

const CONFIG_FILE_NAME = 'rondo.toml';
const MAX_CONFIG_BYTES = 1024 * 1024;

function requireAmount({ path, members }: TomlTable, key: string): number {
  const value = members.get(key);
  if (value === undefined) throw new ConfigKeyError([...path, key], 'is required');
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value);
  throw new ConfigKeyError([...path, key], 'must be a whole number of at least 0');
}

function tableEntries(root: TomlTable, key: string): [name: string, value: unknown, path: readonly string[]][] {
  const value = root.members.get(key);
  if (value === undefined) return [];
  const { members, path } = toTable(value, [...root.path, key]);
  return [...members].map(([name, member]) => [name, member, [...path, name]]);
}

function parsePrices(value: unknown, path: readonly string[]): readonly Price[] {
  if (!configPatterns.priceName.test(path.at(-1) ?? ''))
    throw new ConfigKeyError(path, 'must be named "backend/model"');
  if (!Array.isArray(value)) return [parsePrice(value, path)];
  const prices = value.map((item, index) => parsePrice(item, [...path, String(index)]));
  if (prices.length === 0) throw new ConfigKeyError(path, 'must have at least one price');
  for (const [index, { from }] of prices.entries())
    if (prices.findIndex((other) => other.from === from) < index)
      throw new ConfigKeyError([...path, String(index)], 'must have another "from" than the prices before it');
  return prices;
}

function parsePrice(value: unknown, path: readonly string[]): Price {
  const table = toTable(value, path, configKeys.price);
  const from = optionalString(table, 'from', configPatterns.day, 'a day in quotes, such as "2026-01-31"');
  if (from !== undefined && !isCalendarDay(from))
    throw new ConfigKeyError([...path, 'from'], 'is not a day that exists');
  return {
    inputPerMillion: requireAmount(table, 'inputPerMillion'),
    outputPerMillion: requireAmount(table, 'outputPerMillion'),
    ...(from !== undefined && { from }),
  };
}

function parseCustomBackend(value: unknown, path: readonly string[]): CustomBackend {
  const table = toTable(value, path, configKeys.backend);
  const kind = optionalString(table, 'kind', /^openai-compatible$/, '"openai-compatible"');
  const baseURL = optionalString(
    table,
    'baseURL',
    configPatterns.baseURL,
    'a URL that starts with https:// or http://',
  );
  const apiKeyEnv = optionalString(
    table,
    'apiKeyEnv',
    configPatterns.apiKeyEnv,
    'the name of an environment variable, not the key itself',
  );
  const model = optionalString(table, 'model');
  if (kind === undefined) throw new ConfigKeyError([...path, 'kind'], 'is required; write "openai-compatible"');
  if (baseURL === undefined) throw new ConfigKeyError([...path, 'baseURL'], 'is required');
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url === undefined || url.username + url.password !== '') {
    throw new ConfigKeyError([...path, 'baseURL'], 'must be a URL without a user or a password');
  }
  return { kind: 'openai-compatible', baseURL, ...omitUndefined({ apiKeyEnv, model }) };
}

function parseVerb(verb: string, loopId: unknown, path: readonly string[]): string {
  if (!configPatterns.verb.test(verb))
    throw new ConfigKeyError(path, 'must be a verb: a word without spaces and quotes');
  if (typeof loopId === 'string' && loopId.trim() !== '') return loopId;
  throw new ConfigKeyError(path, 'must be the id of a loop');
}

/**
 * Resolves the file of a `sqlite:` URL against the directory of the configuration file, as for every other path. Other
 * URLs, and `sqlite:` without a file, are returned unchanged.
 */
function resolveStoreUrl(home: string, store: string | undefined): string | undefined {
  const file = store?.startsWith('sqlite:') ? store.slice('sqlite:'.length) : '';
  return file === '' || isAbsolute(file) ? store : `sqlite:${resolve(home, file)}`;
}

/** Returns the members that are not undefined. */
function omitUndefined<K extends string>(
  members: { readonly [key in K]: string | undefined },
): { [key in K]?: string } {
  const defined = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as { [key in K]?: string };
}

/** The name of a setting that holds a path. */
export type ConfigPathKey = 'data' | 'loops' | 'store';

/** Options of {@link loadConfig}. */
interface ConfigOptions {
  /**
   * Returns the settings whose paths must be inside `directory`, the directory of the configuration file.
   * @default no setting
   */
  readonly confinedPaths?: (directory: string) => readonly ConfigPathKey[];
}

/**
 * Throws ConfigKeyError if one of these settings has a path outside of `home`. A store without a file, such as
 * `memory:`, has no path and is accepted.
 */
function assertPathsConfined(config: ProjectConfig, home: string, keys: readonly ConfigPathKey[]): void {
  const paths = { data: config.data, loops: config.loops, store: config.store?.replace(/^sqlite:/, '') };
  for (const key of keys) {
    const path = paths[key];
    if (path === undefined || !isAbsolute(path) || isInsideWithLinksResolved(home, path)) continue;
    const advice = `give it as --${key} or RONDO_${key.toUpperCase()}, or trust the directory: rondo trust ${home}`;
    throw new ConfigKeyError([key], `is outside of ${home}, which is not trusted; ${advice}`);
  }
}

const TRUST_KEY_REFUSED =
  'is not allowed here: a project cannot declare itself trusted. Remove it, and run: rondo trust DIR';

function parseConfig(value: unknown, file: string, { confinedPaths = () => [] }: ConfigOptions): ProjectConfig {
  const home = dirname(file);
  if (toTable(value, []).members.has('trust')) throw new ConfigKeyError(['trust'], TRUST_KEY_REFUSED);
  const root = toTable(value, [], configKeys.root);
  optionalString(root, '$schema');
  const [data, loops] = [optionalString(root, 'data'), optionalString(root, 'loops')];
  const config: ProjectConfig = {
    file,
    ...omitUndefined({
      data: data === undefined ? undefined : resolve(home, data),
      loops: loops === undefined ? undefined : resolve(home, loops),
      store: resolveStoreUrl(home, optionalString(root, 'store')),
      engine: optionalString(root, 'engine'),
      model: optionalString(root, 'model', configPatterns.model, '"PROVIDER" or "PROVIDER:MODEL"'),
    }),
    prices: new Map(tableEntries(root, 'prices').map(([name, entry, path]) => [name, parsePrices(entry, path)])),
    backends: new Map(
      tableEntries(root, 'backends').map(([name, entry, path]) => [name, parseCustomBackend(entry, path)]),
    ),
    verbs: new Map(tableEntries(root, 'verbs').map(([verb, entry, path]) => [verb, parseVerb(verb, entry, path)])),
  };
  // guard: config-paths-confined
  assertPathsConfined(config, home, confinedPaths(home));
  return config;
}

/**
 * Reads the configuration at `path`, relative to `directory`, or rondo.toml in `directory` if no path is given. Without
 * a path, a missing file means an empty configuration. Throws CONFIG_INVALID if the file is invalid or cannot be read,
 * or if an explicit path does not exist. The error has the reason and, if it is known, the line.
 */
export async function loadConfig(
  path: string | undefined,
  directory = process.cwd(),
  options: ConfigOptions = {},
): Promise<ProjectConfig> {
  const file = resolve(directory, path ?? CONFIG_FILE_NAME);
  return (
    (await readTomlFile(file, MAX_CONFIG_BYTES, path === undefined, (value) => parseConfig(value, file, options))) ??
    EMPTY_CONFIG
  );
}

const EMPTY_CONFIG: ProjectConfig = { file: undefined, prices: new Map(), backends: new Map(), verbs: new Map() };
