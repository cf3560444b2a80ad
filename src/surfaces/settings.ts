/**
 * The settings of one invocation: what a flag says goes before the environment, that before the project's config, that
 * before the default. Nothing is read here but what is handed in.
 */
import { join, resolve } from 'node:path';
import type { PermitLists } from '../base/permits.js';

/** Somebody asked for something that there is not; nothing was done. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What a person may say on the command line about where things are. */
export interface Flags {
  readonly data?: string;
  readonly loops?: string;
  readonly config?: string;
  readonly store?: string;
  readonly engine?: string;
  /** Directories that may run code. */
  readonly trust?: readonly string[];
  /** `VARIABLE=HOST`: environment variables that may be sent to a host. */
  readonly send?: readonly string[];
  /** Hosts that are not public and may be reached. */
  readonly reach?: readonly string[];
}

export type TrustSource = '--trust' | 'RONDO_TRUST' | 'file';

/** A directory that may run code, and where the operator said so. */
export interface TrustedDirectory {
  readonly directory: string;
  readonly source: TrustSource;
}

/** What the operator allows. */
export interface Authority extends PermitLists {
  readonly directories: readonly TrustedDirectory[];
}

const NO_AUTHORITY: Authority = { directories: [], send: new Map(), destinations: [] };

export type Environment = Readonly<Record<string, string | undefined>>;

/** What was asked for, before the project's config is known. */
export interface SettingsInput {
  readonly flags: Flags;
  readonly env: Environment;
  readonly cwd: string;
}

/** The part of a config that settings are made of; its paths are absolute. */
export interface SettingsConfig {
  readonly data?: string;
  readonly loops?: string;
  readonly store?: string;
  readonly engine?: string;
}

export type StoreChoice = { readonly kind: 'memory' } | { readonly kind: 'sqlite'; readonly path: string };

export interface Settings<C extends SettingsConfig = SettingsConfig> {
  readonly dataDirectory: string;
  readonly loopsDirectory: string;
  /** Whether somebody named the directory of definitions: then it must be there. */
  readonly hasExplicitLoops: boolean;
  readonly store: StoreChoice;
  /** What the operator allows; nothing of it comes from the config. */
  readonly authority: Authority;
  /** For tests: makes ids and chance repeatable. */
  readonly seed: string | undefined;
  /** For tests: what the clock shows at the start, in milliseconds. */
  readonly clockStartAt: number | undefined;
  readonly env: Environment;
  readonly cwd: string;
  readonly config: C;
}

/** The config file that was named; undefined if none was. */
export function explicitConfigFile({ flags, env }: SettingsInput): string | undefined {
  return flags.config ?? envValue(env, 'RONDO_CONFIG');
}

export function resolveSettings<C extends SettingsConfig>(
  asked: SettingsInput,
  config: C,
  authority: Authority = NO_AUTHORITY,
): Settings<C> {
  const { flags, env, cwd } = asked;
  const named = (flag: string | undefined, variable: string): string | undefined => flag ?? envValue(env, variable);
  const place = (path: string | undefined): string | undefined => (path === undefined ? undefined : resolve(cwd, path));
  const data = place(named(flags.data, 'RONDO_DATA')) ?? config.data ?? resolve(cwd, '.rondo');
  const loops = place(named(flags.loops, 'RONDO_LOOPS')) ?? config.loops;
  assertEngine(named(flags.engine, 'RONDO_ENGINE') ?? config.engine ?? 'local');
  return {
    dataDirectory: data,
    loopsDirectory: loops ?? resolve(cwd, 'loops'),
    hasExplicitLoops: loops !== undefined,
    store: parseStoreUrl(named(flags.store, 'RONDO_STORE') ?? config.store ?? 'sqlite:', data, cwd),
    authority,
    seed: envValue(env, 'RONDO_SEED'),
    clockStartAt: parseTime(envValue(env, 'RONDO_NOW')),
    env,
    cwd,
    config,
  };
}

/** What a flag or a variable says of the places that a config may name. */
export function explicitLocations({ flags, env }: SettingsInput): {
  readonly [key in 'data' | 'loops' | 'store']: boolean;
} {
  const isNamed = (flag: string | undefined, variable: string): boolean =>
    (flag ?? envValue(env, variable)) !== undefined;
  return {
    data: isNamed(flags.data, 'RONDO_DATA'),
    loops: isNamed(flags.loops, 'RONDO_LOOPS'),
    store: isNamed(flags.store, 'RONDO_STORE'),
  };
}

/** A variable that is set to nothing is not set. */
function envValue(env: Environment, name: string): string | undefined {
  return env[name] || undefined;
}

function assertEngine(engine: string): void {
  if (engine === 'local') return;
  if (engine === 'restate') throw new UsageError('The engine "restate" is not in this version; use "local".');
  throw new UsageError(`There is no engine "${engine}"; use "local".`);
}

function parseStoreUrl(url: string, data: string, cwd: string): StoreChoice {
  if (url === 'memory:') return { kind: 'memory' };
  if (url === 'sqlite:') return { kind: 'sqlite', path: join(data, 'journal.db') };
  if (url.startsWith('sqlite:')) return { kind: 'sqlite', path: resolve(cwd, url.slice('sqlite:'.length)) };
  if (/^postgres(?:ql)?:/.test(url)) {
    throw new UsageError('A store in PostgreSQL is not in this version; use sqlite: or sqlite:PATH.');
  }
  // The address is not repeated: it may hold a password.
  throw new UsageError('A store is sqlite: (in the data directory), sqlite:PATH or memory:.');
}

function parseTime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const time = /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isFinite(time)) return time;
  throw new UsageError('RONDO_NOW must be a time such as 2025-01-01T00:00:00Z, or milliseconds since 1970.');
}
