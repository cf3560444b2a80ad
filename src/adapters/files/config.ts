/**
 * The settings of a project: rondo.toml. An unknown key is refused, because a misspelt setting must not silently become
 * its default. Secrets never stand here: a backend names the variable of the environment that holds its key. Nor does
 * authority: a project comes from anywhere, so it grants itself no trust, and its paths stay inside of it.
 */
import { dirname, isAbsolute, resolve } from 'node:path';
import { staysInside } from './confine.js';
import { Flaw, readTable, type Table, table, text } from './table.js';

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
export interface Config {
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

const NAME = 'rondo.toml';
const SIZE = 1024 * 1024;

function amount({ path, members }: Table, key: string): number {
  const value = members.get(key);
  if (value === undefined) throw new Flaw([...path, key], 'is required');
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
  throw new Flaw([...path, key], 'must be a number from 0 up');
}

function parts(root: Table, key: string): [name: string, value: unknown, path: readonly string[]][] {
  const value = root.members.get(key);
  if (value === undefined) return [];
  const { members, path } = table(value, [...root.path, key]);
  return [...members].map(([name, part]) => [name, part, [...path, name]]);
}

function price(value: unknown, path: readonly string[]): Price {
  if (!/^[^/]+\/./s.test(path.at(-1) ?? '')) throw new Flaw(path, 'must be named "backend/model"');
  const members = table(value, path, ['inputPerMillion', 'outputPerMillion']);
  return { inputPerMillion: amount(members, 'inputPerMillion'), outputPerMillion: amount(members, 'outputPerMillion') };
}

function customBackend(value: unknown, path: readonly string[]): CustomBackend {
  const members = table(value, path, ['kind', 'baseURL', 'apiKeyEnv', 'model']);
  const kind = text(members, 'kind', /^openai-compatible$/, '"openai-compatible"');
  const baseURL = text(members, 'baseURL', /^https?:\/\/[^\s/@]/, 'a URL that starts with https:// or http://');
  const apiKeyEnv = text(
    members,
    'apiKeyEnv',
    /^[A-Za-z_][A-Za-z0-9_]*$/,
    'the name of a variable, not the key itself',
  );
  const model = text(members, 'model');
  if (kind === undefined) throw new Flaw([...path, 'kind'], 'is required; write "openai-compatible"');
  if (baseURL === undefined) throw new Flaw([...path, 'baseURL'], 'is required');
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url === undefined || url.username + url.password !== '') {
    throw new Flaw([...path, 'baseURL'], 'must be a URL without a user or a password');
  }
  return { kind: 'openai-compatible', baseURL, ...given({ apiKeyEnv, model }) };
}

/** A file in a store's URL is relative to the settings, like any other path in them. */
function storeAt(home: string, store: string | undefined): string | undefined {
  const file = store?.startsWith('sqlite:') ? store.slice('sqlite:'.length) : '';
  return file === '' || isAbsolute(file) ? store : `sqlite:${resolve(home, file)}`;
}

/** Only the members that were written. */
function given<K extends string>(members: { readonly [key in K]: string | undefined }): { [key in K]?: string } {
  const written = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(written) as { [key in K]?: string };
}

/** What a file that is not trusted must keep inside of its own directory. */
export type PathKey = 'data' | 'loops' | 'store';

export interface ConfigOptions {
  /** Which paths may not leave the directory of the file, asked with that directory; none unless told. */
  readonly confined?: (directory: string) => readonly PathKey[];
}

function assertConfined(config: Config, home: string, keys: readonly PathKey[]): void {
  const places = { data: config.data, loops: config.loops, store: config.store?.replace(/^sqlite:/, '') };
  for (const key of keys) {
    const place = places[key];
    if (place === undefined || !isAbsolute(place) || staysInside(home, place)) continue;
    const instead = `give it as --${key} or RONDO_${key.toUpperCase()}, or trust the directory: rondo trust ${home}`;
    throw new Flaw([key], `leads out of ${home}, which is not trusted; ${instead}`);
  }
}

const NO_TRUST =
  'is not for a project to say: a directory that could trust itself would be no safer than none. Remove it, and run: rondo trust DIR';

function configOf(value: unknown, file: string, { confined = () => [] }: ConfigOptions): Config {
  const home = dirname(file);
  const known = ['data', 'loops', 'store', 'engine', 'prices', 'backends'];
  if (table(value, []).members.has('trust')) throw new Flaw(['trust'], NO_TRUST);
  const root = table(value, [], known);
  const [data, loops] = [text(root, 'data'), text(root, 'loops')];
  const config: Config = {
    file,
    ...given({
      data: data === undefined ? undefined : resolve(home, data),
      loops: loops === undefined ? undefined : resolve(home, loops),
      store: storeAt(home, text(root, 'store')),
      engine: text(root, 'engine'),
    }),
    prices: new Map(parts(root, 'prices').map(([name, part, path]) => [name, price(part, path)])),
    backends: new Map(parts(root, 'backends').map(([name, part, path]) => [name, customBackend(part, path)])),
  };
  // guard: config-paths-confined
  assertConfined(config, home, confined(home));
  return config;
}

/** The settings of a file that was named, or of rondo.toml here if there is one; CONFIG_INVALID says what is wrong. */
export async function loadConfig(
  named: string | undefined,
  directory = process.cwd(),
  options: ConfigOptions = {},
): Promise<Config> {
  const file = resolve(directory, named ?? NAME);
  return (await readTable(file, SIZE, named === undefined, (value) => configOf(value, file, options))) ?? none;
}

const none: Config = { file: undefined, prices: new Map(), backends: new Map() };
