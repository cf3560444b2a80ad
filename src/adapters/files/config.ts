/**
 * The settings of a project: rondo.toml. An unknown key is refused, because a misspelt setting must not silently become
 * its default. Secrets never stand here: a backend names the variable of the environment that holds its key.
 */
import { dirname, isAbsolute, resolve } from 'node:path';
import { LoopError } from '../../journal/errors.js';
import { readText } from './read.js';
import { placeInToml, readToml } from './toml.js';
import { type Place, reasonOf, Unreadable } from './unreadable.js';

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
  /** Directories that code may run from. */
  readonly trusted: readonly string[];
  /** By `backend/model`. */
  readonly prices: ReadonlyMap<string, Price>;
  /** By id. */
  readonly backends: ReadonlyMap<string, CustomBackend>;
}

const NAME = 'rondo.toml';
const SIZE = 1024 * 1024;

/** What is wrong, and where. */
class Flaw extends Error {
  readonly path: readonly string[];

  constructor(path: readonly string[], reason: string) {
    super(reason);
    this.path = path;
  }
}

/** A table of the file; every look into it says where it looks. */
interface Table {
  readonly path: readonly string[];
  readonly members: ReadonlyMap<string, unknown>;
}

function table(value: unknown, path: readonly string[], known?: readonly string[]): Table {
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
function text(
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

function trusted(root: Table, home: string): string[] {
  const value = root.members.get('trust');
  if (value === undefined) return [];
  const { members, path } = table(value, ['trust'], ['directories']);
  const directories = members.get('directories') ?? [];
  const all = Array.isArray(directories) && directories.every((item) => typeof item === 'string' && item.trim() !== '');
  if (!all) throw new Flaw([...path, 'directories'], 'must be a list of directories');
  return (directories as string[]).map((directory) => resolve(home, directory));
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

function configOf(value: unknown, file: string): Config {
  const home = dirname(file);
  const root = table(value, [], ['data', 'loops', 'store', 'engine', 'trust', 'prices', 'backends']);
  const [data, loops] = [text(root, 'data'), text(root, 'loops')];
  return {
    file,
    ...given({
      data: data === undefined ? undefined : resolve(home, data),
      loops: loops === undefined ? undefined : resolve(home, loops),
      store: storeAt(home, text(root, 'store')),
      engine: text(root, 'engine'),
    }),
    trusted: trusted(root, home),
    prices: new Map(parts(root, 'prices').map(([name, part, path]) => [name, price(part, path)])),
    backends: new Map(parts(root, 'backends').map(([name, part, path]) => [name, customBackend(part, path)])),
  };
}

function refusal(file: string, reason: string, path: string | undefined, place: Place | undefined): LoopError {
  const where = place === undefined ? file : `${file}:${place.line}`;
  const message = `${where}: ${path === undefined ? '' : `${path} `}${reason}.`;
  const data = { file, reason, ...(path === undefined ? {} : { path }), ...place };
  return new LoopError('CONFIG_INVALID', message, data);
}

const pointerOf = (path: readonly string[]): string =>
  path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

/** The settings of a file that was named, or of rondo.toml here if there is one; CONFIG_INVALID says what is wrong. */
export async function loadConfig(named: string | undefined, directory = process.cwd()): Promise<Config> {
  const file = resolve(directory, named ?? NAME);
  let written = '';
  try {
    written = await readText(file, SIZE);
    return configOf(readToml(written), file);
  } catch (thrown) {
    if (thrown instanceof Unreadable && thrown.missing && named === undefined) return none;
    if (thrown instanceof Unreadable) throw refusal(file, thrown.message, undefined, thrown.place);
    if (!(thrown instanceof Flaw)) throw refusal(file, reasonOf(thrown), undefined, undefined);
    const path = pointerOf(thrown.path);
    throw refusal(file, thrown.message, path, placeInToml(written, path));
  }
}

const none: Config = { file: undefined, trusted: [], prices: new Map(), backends: new Map() };
