/**
 * Resolves the settings of one invocation. A flag takes precedence over an environment variable, that over the
 * project's config, and that over the default. The functions here read no files.
 */
import { join, resolve } from 'node:path';
import type { PermitLists } from '../base/permits.js';

/** Thrown for an invalid invocation of the command line, before anything is done. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The flags that every verb accepts: locations, and permissions of the operator. */
export interface Flags {
  readonly data?: string;
  readonly loops?: string;
  readonly config?: string;
  readonly store?: string;
  readonly engine?: string;
  /** Directories whose code may run. */
  readonly trust?: readonly string[];
  /** Environment variables that may be sent to a host, as `VARIABLE=HOST`. */
  readonly send?: readonly string[];
  /** Hosts in private networks that may be reached. */
  readonly reach?: readonly string[];
}

/** Where the operator declared the trust: a flag, an environment variable or trust.toml. */
export type TrustSource = '--trust' | 'RONDO_TRUST' | 'file';

/** A directory whose code may run. */
export interface TrustedDirectory {
  readonly directory: string;
  readonly source: TrustSource;
}

/** The permissions that the operator has given. */
export interface Authority extends PermitLists {
  readonly directories: readonly TrustedDirectory[];
}

const NO_AUTHORITY: Authority = { directories: [], send: new Map(), destinations: [] };

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The flags, environment and working directory of an invocation. */
export interface SettingsInput {
  readonly flags: Flags;
  readonly env: Environment;
  readonly cwd: string;
}

/** The part of a project's config that determines settings. Its paths are absolute. */
export interface SettingsConfig {
  readonly data?: string;
  readonly loops?: string;
  readonly store?: string;
  readonly engine?: string;
}

/** The store that the settings select. */
type StoreChoice = { readonly kind: 'memory' } | { readonly kind: 'sqlite'; readonly path: string };

/** The resolved settings of an invocation. */
export interface Settings<C extends SettingsConfig = SettingsConfig> {
  readonly dataDirectory: string;
  readonly loopsDirectory: string;
  /** True if a flag, a variable or the config names the directory of definitions. It must exist then. */
  readonly hasExplicitLoops: boolean;
  readonly store: StoreChoice;
  /** True if a flag or a variable names the place of the store. */
  readonly hasExplicitStore: boolean;
  /** The permissions of the operator. None of them come from the project's config. */
  readonly authority: Authority;
  /** The id of the deployed code, which approvals are bound to. It comes from the environment only. */
  readonly build: string | undefined;
  /** For tests: the seed of ids and random numbers. */
  readonly seed: string | undefined;
  /** For tests: the time at which the clock starts, in milliseconds since the epoch. */
  readonly clockStartAt: number | undefined;
  readonly env: Environment;
  readonly cwd: string;
  readonly config: C;
}

/** Returns the config file that a flag or a variable names; undefined if none does. */
export function explicitConfigFile({ flags, env }: SettingsInput): string | undefined {
  return flags.config ?? envValue(env, 'RONDO_CONFIG');
}

/** Resolves the settings. Throws a UsageError if one is invalid or not supported. */
export function resolveSettings<C extends SettingsConfig>(
  input: SettingsInput,
  config: C,
  authority: Authority = NO_AUTHORITY,
): Settings<C> {
  const { flags, env, cwd } = input;
  const explicit = (flag: string | undefined, variable: string): string | undefined => flag ?? envValue(env, variable);
  const absolute = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(cwd, path);
  const [explicitData, explicitStore] = [explicit(flags.data, 'RONDO_DATA'), explicit(flags.store, 'RONDO_STORE')];
  const data = absolute(explicitData) ?? config.data ?? resolve(cwd, '.rondo');
  const loops = absolute(explicit(flags.loops, 'RONDO_LOOPS')) ?? config.loops;
  assertEngine(explicit(flags.engine, 'RONDO_ENGINE') ?? config.engine ?? 'local');
  return {
    dataDirectory: data,
    loopsDirectory: loops ?? resolve(cwd, 'loops'),
    hasExplicitLoops: loops !== undefined,
    hasExplicitStore: explicitStore !== undefined || (config.store === undefined && explicitData !== undefined),
    store: parseStoreUrl(explicitStore ?? config.store ?? 'sqlite:', data, cwd),
    authority,
    build: envValue(env, 'RONDO_BUILD'),
    seed: envValue(env, 'RONDO_SEED'),
    clockStartAt: parseTime(envValue(env, 'RONDO_NOW')),
    env,
    cwd,
    config,
  };
}

/** Returns, for each location that a config may set, true if a flag or a variable sets it. */
export function explicitLocations({ flags, env }: SettingsInput): {
  readonly [key in 'data' | 'loops' | 'store']: boolean;
} {
  const isExplicit = (flag: string | undefined, variable: string): boolean =>
    (flag ?? envValue(env, variable)) !== undefined;
  return {
    data: isExplicit(flags.data, 'RONDO_DATA'),
    loops: isExplicit(flags.loops, 'RONDO_LOOPS'),
    store: isExplicit(flags.store, 'RONDO_STORE'),
  };
}

/** Returns the value of a variable. An empty variable counts as unset. */
function envValue(env: Environment, name: string): string | undefined {
  return env[name] || undefined;
}

function assertEngine(engine: string): void {
  if (engine === 'local') return;
  if (engine === 'restate') throw new UsageError('The engine "restate" is not supported in this version; use "local".');
  throw new UsageError(`Unknown engine "${engine}"; use "local".`);
}

function parseStoreUrl(url: string, data: string, cwd: string): StoreChoice {
  if (url === 'memory:') return { kind: 'memory' };
  if (url === 'sqlite:') return { kind: 'sqlite', path: join(data, 'journal.db') };
  if (url.startsWith('sqlite:')) return { kind: 'sqlite', path: resolve(cwd, url.slice('sqlite:'.length)) };
  if (/^postgres(?:ql)?:/.test(url)) {
    throw new UsageError('PostgreSQL stores are not supported in this version; use sqlite: or sqlite:PATH.');
  }
  // The message omits the URL, which may contain a password.
  throw new UsageError('Unknown store; use sqlite: (in the data directory), sqlite:PATH or memory:.');
}

function parseTime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const time = /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(time)) return time;
  throw new UsageError('RONDO_NOW must be a time such as 2025-01-01T00:00:00Z, or milliseconds since 1970.');
}
