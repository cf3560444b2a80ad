/**
 * What the operator allows: from flags, from the environment and from the operator's own file, never from the project. That
 * file must lie outside of the project, wherever HOME and XDG_CONFIG_HOME point: a clone could bring it along.
 */
import { realpathSync } from 'node:fs';
import { userInfo } from 'node:os';
import { delimiter, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { LoopError } from '../base/errors.js';
import { findHostProblem, findVariableProblem, type PermitLists } from '../base/permits.js';
import {
  type Authority,
  type Environment,
  explicitConfigFile,
  type SettingsInput,
  type TrustedDirectory,
  type TrustSource,
  UsageError,
} from './settings.js';

/** What the operator's file says. */
export interface OperatorFileContent extends PermitLists {
  readonly directories: readonly string[];
}

/** Where the operator's file is; undefined without a home directory. */
export function operatorFilePath(env: Environment): string | undefined {
  const config = [env.XDG_CONFIG_HOME, env.HOME && join(env.HOME, '.config'), env.APPDATA];
  const place = config.find((path) => path !== undefined && isAbsolute(path));
  return place === undefined ? undefined : join(place, 'rondo', 'trust.toml');
}

/** All that the operator allows; a UsageError names what was misspelt. */
export function authorityOf(asked: SettingsInput, remembered: OperatorFileContent): Authority {
  const { flags, env, cwd } = asked;
  const named = (source: TrustSource, paths: readonly string[]): readonly TrustedDirectory[] =>
    paths.map((path) => ({ directory: requireDirectory(source, path, cwd), source }));
  const flagged = parsePermits(flags.send ?? [], flags.reach ?? [], '--send', '--reach');
  const set = parsePermits(splitWords(env.RONDO_SEND), splitWords(env.RONDO_REACH), 'RONDO_SEND', 'RONDO_REACH');
  const lists = [flagged, set, remembered];
  const variables = new Set(lists.flatMap(({ send }) => [...send.keys()]));
  return {
    directories: [
      ...named('--trust', flags.trust ?? []),
      ...named(
        'RONDO_TRUST',
        (env.RONDO_TRUST ?? '').split(delimiter).filter((path) => path !== ''),
      ),
      ...remembered.directories.map((directory) => ({ directory, source: 'file' as const })),
    ],
    send: new Map([...variables].map((name) => [name, lists.flatMap(({ send }) => send.get(name) ?? [])])),
    destinations: lists.flatMap(({ destinations }) => destinations),
  };
}

/** A directory that was named and is there: trust in one that is misspelt must not become trust in nothing, unnoticed. */
function requireDirectory(source: TrustSource, path: string, cwd: string): string {
  const directory = resolve(cwd, path);
  if (realPathOf(directory) === undefined) throw new UsageError(`${source} ${path}: there is no such directory.`);
  return directory;
}

const splitWords = (text = ''): readonly string[] => text.split(/[\s,]+/).filter((word) => word !== '');

/** The lists of `VARIABLE=HOST` and `HOST` texts. */
export function parsePermits(
  send: readonly string[],
  reach: readonly string[],
  sendName = '--send',
  reachName = '--reach',
): PermitLists {
  const all = new Map<string, string[]>();
  for (const text of send) {
    const at = text.indexOf('=');
    const [variable, host] = at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
    const flaw =
      at === -1 ? 'must be written as VARIABLE=HOST' : (findVariableProblem(variable) ?? findHostProblem(host));
    if (flaw !== undefined) throw new UsageError(`${sendName} ${text}: ${flaw}.`);
    all.set(variable, [...(all.get(variable) ?? []), host]);
  }
  for (const host of reach) {
    const flaw = findHostProblem(host);
    if (flaw !== undefined) throw new UsageError(`${reachName} ${host}: ${flaw}.`);
  }
  return { send: all, destinations: reach };
}

/** True for the directory itself and everything below it. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** The path with all links followed; undefined if it does not exist. */
export function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** The home directory that the system has on record for the user, which no variable changes. */
export function systemHomeDirectory(): string | undefined {
  try {
    return userInfo().homedir;
  } catch {
    return undefined;
  }
}

/**
 * Refuses an operator's file that the project could have brought along. In the user's recorded home directory it is believed
 * wherever Rondo is started: whoever can write there controls the user's shell already.
 */
export function assertOutsideProject(file: string, asked: SettingsInput, home = systemHomeDirectory()): void {
  const { flags, env, cwd } = asked;
  const config = dirname(resolve(cwd, explicitConfigFile(asked) ?? 'rondo.toml'));
  const places = [flags.data ?? env.RONDO_DATA, flags.loops ?? env.RONDO_LOOPS].flatMap((path) => path || []);
  const own = home === undefined ? undefined : operatorFilePath({ HOME: home });
  for (const place of [cwd, config, ...places.map((path) => resolve(cwd, path))]) {
    const isHome =
      own === file && home !== undefined && isInside(resolveExistingPrefix(place), resolveExistingPrefix(home));
    const isWithin =
      isInside(place, file) ||
      /* guard: links-into-project-resolved */ isInside(resolveExistingPrefix(place), resolveExistingPrefix(file));
    // guard: operator-file-outside-project
    if (!isWithin || isHome) continue;
    const reason = `it lies inside of ${place}, and a project must not decide what it may do`;
    const advice = 'Set XDG_CONFIG_HOME or HOME to a directory outside of the project.';
    throw new LoopError('CONFIG_INVALID', `${file} is not believed: ${reason}. ${advice}`, { file, reason });
  }
}

/** The real path of the part that exists, and the rest behind it. */
function resolveExistingPrefix(path: string): string {
  const real = realPathOf(path);
  if (real !== undefined || dirname(path) === path) return real ?? path;
  return join(resolveExistingPrefix(dirname(path)), relative(dirname(path), path));
}

export type TrustPredicate = (directory: string | undefined) => boolean;

/**
 * Whether the operator trusts a directory to run code: it is one of those named, or inside one; links are followed. The
 * operator's file holds real paths: one that has become a link since then leads to what nobody has trusted.
 */
export function trustPredicateOf({ directories }: Pick<Authority, 'directories'>): TrustPredicate {
  const places = directories.flatMap(({ directory, source }) => {
    const real = realPathOf(directory);
    return real === undefined || /* guard: remembered-link-not-trusted */ (source === 'file' && real !== directory)
      ? []
      : [real];
  });
  return (directory) => {
    const real = directory === undefined ? undefined : realPathOf(directory);
    return real !== undefined && places.some((place) => isInside(place, real));
  };
}
