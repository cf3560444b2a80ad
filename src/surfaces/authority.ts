/**
 * Determines the permissions that the operator gives. They come from flags, environment variables and trust.toml, never
 * from the project. The file must lie outside of the project, wherever HOME and XDG_CONFIG_HOME point: a cloned
 * repository could contain one.
 */
import { realpathSync } from 'node:fs';
import { userInfo } from 'node:os';
import { delimiter, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { LoopError } from '../base/errors.js';
import { findHostProblem, findVariableProblem, type PermitLists, type TrustSettings } from '../base/permits.js';
import {
  type Authority,
  type Environment,
  explicitConfigFile,
  type SettingsInput,
  type TrustedDirectory,
  type TrustSource,
  UsageError,
} from './settings.js';

/** Returns the path of trust.toml; undefined if none of XDG_CONFIG_HOME, HOME and APPDATA is an absolute path. */
export function trustFilePath(env: Environment): string | undefined {
  const candidates = [env.XDG_CONFIG_HOME, env.HOME && join(env.HOME, '.config'), env.APPDATA];
  const directory = candidates.find((path) => path !== undefined && isAbsolute(path));
  return directory === undefined ? undefined : join(directory, 'rondo', 'trust.toml');
}

/** Joins the permissions of flags, environment and trust.toml. Throws a UsageError if one is invalid. */
export function authorityOf(input: SettingsInput, remembered: TrustSettings): Authority {
  const { flags, env, cwd } = input;
  const trusted = (source: TrustSource, paths: readonly string[]): readonly TrustedDirectory[] =>
    paths.map((path) => ({ directory: requireDirectory(source, path, cwd), source }));
  const fromFlags = parsePermits(flags.send ?? [], flags.reach ?? [], '--send', '--reach');
  const fromEnv = parsePermits(splitList(env.RONDO_SEND), splitList(env.RONDO_REACH), 'RONDO_SEND', 'RONDO_REACH');
  const lists = [fromFlags, fromEnv, remembered];
  const variables = new Set(lists.flatMap(({ send }) => [...send.keys()]));
  return {
    directories: [
      ...trusted('--trust', flags.trust ?? []),
      ...trusted(
        'RONDO_TRUST',
        (env.RONDO_TRUST ?? '').split(delimiter).filter((path) => path !== ''),
      ),
      ...remembered.directories.map((directory) => ({ directory, source: 'file' as const })),
    ],
    send: new Map([...variables].map((name) => [name, lists.flatMap(({ send }) => send.get(name) ?? [])])),
    destinations: lists.flatMap(({ destinations }) => destinations),
  };
}

/**
 * Returns the absolute path. Throws a UsageError if it does not exist: trust in a misspelt directory would have no
 * effect.
 */
function requireDirectory(source: TrustSource, path: string, cwd: string): string {
  const directory = resolve(cwd, path);
  if (realPathOf(directory) === undefined) throw new UsageError(`${source} ${path}: there is no such directory.`);
  return directory;
}

const splitList = (text = ''): readonly string[] => text.split(/[\s,]+/).filter((item) => item !== '');

/** Parses `VARIABLE=HOST` and `HOST` texts. Throws a UsageError that begins with the name of the flag or variable. */
export function parsePermits(
  send: readonly string[],
  reach: readonly string[],
  sendName = '--send',
  reachName = '--reach',
): PermitLists {
  const hostsByVariable = new Map<string, string[]>();
  for (const text of send) {
    const separator = text.indexOf('=');
    const [variable, host] = separator === -1 ? [text, ''] : [text.slice(0, separator), text.slice(separator + 1)];
    const problem =
      separator === -1 ? 'must be written as VARIABLE=HOST' : (findVariableProblem(variable) ?? findHostProblem(host));
    if (problem !== undefined) throw new UsageError(`${sendName} ${text}: ${problem}.`);
    hostsByVariable.set(variable, [...(hostsByVariable.get(variable) ?? []), host]);
  }
  for (const host of reach) {
    const problem = findHostProblem(host);
    if (problem !== undefined) throw new UsageError(`${reachName} ${host}: ${problem}.`);
  }
  return { send: hostsByVariable, destinations: reach };
}

/** Returns true if the path is the directory or lies below it. */
export function isInside(directory: string, path: string): boolean {
  const relativePath = relative(directory, path);
  return relativePath !== '..' && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath);
}

/** Returns the path with all symbolic links resolved; undefined if it does not exist. */
export function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** Returns the user's home directory from the system's user database, which environment variables do not affect. */
export function systemHomeDirectory(): string | undefined {
  try {
    return userInfo().homedir;
  } catch {
    return undefined;
  }
}

/**
 * Throws CONFIG_INVALID for a trust.toml that the project could contain. The file in the user's recorded home directory
 * is accepted even if Rondo runs in that directory or above it: an attacker who can write there controls the user's
 * shell.
 */
export function assertOutsideProject(file: string, input: SettingsInput, home = systemHomeDirectory()): void {
  const { flags, env, cwd } = input;
  const configDirectory = dirname(resolve(cwd, explicitConfigFile(input) ?? 'rondo.toml'));
  const locations = [flags.data ?? env.RONDO_DATA, flags.loops ?? env.RONDO_LOOPS].flatMap((path) => path || []);
  const homeFile = home === undefined ? undefined : trustFilePath({ HOME: home });
  for (const directory of [cwd, configDirectory, ...locations.map((path) => resolve(cwd, path))]) {
    const containsHome =
      homeFile === file &&
      home !== undefined &&
      isInside(resolveExistingPrefix(directory), resolveExistingPrefix(home));
    const containsFile =
      isInside(directory, file) ||
      /* guard: links-into-project-resolved */ isInside(resolveExistingPrefix(directory), resolveExistingPrefix(file));
    // guard: trust-file-outside-project
    if (!containsFile || containsHome) continue;
    const reason = `it lies inside ${directory}, and a project must not grant itself permissions`;
    const advice = 'Set XDG_CONFIG_HOME or HOME to a directory outside of the project.';
    throw new LoopError('CONFIG_INVALID', `${file} is not trusted: ${reason}. ${advice}`, { file, reason });
  }
}

/** Returns the path with symbolic links resolved in the part that exists. */
function resolveExistingPrefix(path: string): string {
  const real = realPathOf(path);
  if (real !== undefined || dirname(path) === path) return real ?? path;
  return join(resolveExistingPrefix(dirname(path)), relative(dirname(path), path));
}

/** Returns true if code of the directory may run; false for undefined. */
export type TrustPredicate = (directory: string | undefined) => boolean;

/**
 * Returns the predicate for the directories that the operator trusts, and for those inside them. Symbolic links are
 * resolved. trust.toml contains real paths: a path that has become a link since then leads to a directory that was
 * never trusted, and is ignored.
 */
export function trustPredicateOf({ directories }: Pick<Authority, 'directories'>): TrustPredicate {
  const trustedPaths = directories.flatMap(({ directory, source }) => {
    const real = realPathOf(directory);
    return real === undefined || /* guard: remembered-link-not-trusted */ (source === 'file' && real !== directory)
      ? []
      : [real];
  });
  return (directory) => {
    const real = directory === undefined ? undefined : realPathOf(directory);
    return real !== undefined && trustedPaths.some((path) => isInside(path, real));
  };
}
