/** `rondo trust`: shows and changes the permissions in trust.toml. It reads nothing of the project. */

import { existsSync, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { TrustSettings } from '../../../base/permits.js';
import {
  assertOutsideProject,
  authorityOf,
  isInside,
  parsePermits,
  realPathOf,
  systemHomeDirectory,
  trustFilePath,
} from '../../authority.js';
import { readTrustFile, writeTrustFile } from '../../compose.js';
import { type Authority, type SettingsInput, UsageError } from '../../settings.js';
import { sanitizeText } from '../terminal-text.js';
import { exitCodes, textOption, type VerbHandler } from '../verb.js';

/** Permissions to add or to remove. */
interface TrustChange extends TrustSettings {
  readonly isRemoval: boolean;
}

/** Handles `rondo trust`. */
export const trust: VerbHandler = async ({ args, options, settingsInput, terminal, json }) => {
  const file = trustFilePath(settingsInput.env);
  const change = parseChange(textOption(args[0] as string | undefined), options.remove === true, settingsInput);
  let remembered = await readTrustFile(settingsInput);
  let changed = false;
  if (change !== undefined) {
    if (file === undefined)
      throw new UsageError('Permissions cannot be saved without a home directory; set HOME or XDG_CONFIG_HOME.');
    // guard: trust-file-not-written-into-project
    assertOutsideProject(file, settingsInput);
    const next = change.isRemoval ? removePermissions(remembered, change) : mergePermissions(remembered, change);
    changed = permissionCount(next) !== permissionCount(remembered);
    if (changed) await writeTrustFile(file, next);
    remembered = next;
  }
  const { send, reach, ...rest } = settingsInput.flags;
  const flags = change === undefined ? { ...rest, ...(send && { send }), ...(reach && { reach }) } : rest;
  const authority = authorityOf({ ...settingsInput, flags }, remembered);
  if (json) await terminal.printJson(jsonDocumentOf(authority, file, changed));
  else await terminal.print(`${renderAuthority(authority, file)}\n`);
  if (change !== undefined) terminal.printToStderr(sanitizeText(describeOutcome(change, changed)));
  return exitCodes.ok;
};

function parseChange(directory: string | undefined, remove: boolean, input: SettingsInput): TrustChange | undefined {
  const { send = [], reach = [] } = input.flags;
  if (directory === undefined && send.length + reach.length === 0) {
    if (remove) throw new UsageError('--remove needs a directory, --send or --reach.');
    return undefined;
  }
  const directories = directory === undefined ? [] : resolveDirectories(directory, remove, input);
  return { isRemoval: remove, directories, ...parsePermits(send, reach) };
}

/**
 * Returns the real path of a directory to trust. Throws a UsageError if it does not exist or contains the home
 * directory. For a removal, returns the given path too, so that trust in a directory that no longer exists can be
 * removed.
 */
function resolveDirectories(directory: string, remove: boolean, { cwd, env }: SettingsInput): readonly string[] {
  const path = resolve(cwd, directory);
  // guard: real-directory-remembered
  const real = realPathOf(path);
  if (remove) return [...new Set([path, real ?? path])];
  if (real === undefined || !statSync(real).isDirectory()) throw new UsageError(`There is no directory ${directory}.`);
  const homes = [env.HOME, systemHomeDirectory()].flatMap((home) => (home ? (realPathOf(home) ?? []) : []));
  if (
    real === resolve('/') ||
    homes.some((home) => /* guard: directory-above-home-not-trusted */ isInside(real, home))
  ) {
    throw new UsageError(
      `${real} contains your home directory, with downloads and clones; trust a directory inside it instead.`,
    );
  }
  return [real];
}

const union = (a: readonly string[], b: readonly string[]): readonly string[] => [...new Set([...a, ...b])];
const difference = (a: readonly string[], b: readonly string[]): readonly string[] =>
  a.filter((item) => !b.includes(item));

function mergePermissions(current: TrustSettings, change: TrustSettings): TrustSettings {
  const variables = union([...current.send.keys()], [...change.send.keys()]);
  const hosts = (name: string): readonly string[] => union(current.send.get(name) ?? [], change.send.get(name) ?? []);
  return {
    directories: union(current.directories, change.directories),
    destinations: union(current.destinations, change.destinations),
    send: new Map(variables.map((name) => [name, hosts(name)])),
  };
}

function removePermissions(current: TrustSettings, change: TrustSettings): TrustSettings {
  const remaining = [...current.send].map(
    ([name, hosts]) => [name, difference(hosts, change.send.get(name) ?? [])] as const,
  );
  return {
    directories: difference(current.directories, change.directories),
    destinations: difference(current.destinations, change.destinations),
    send: new Map(remaining.filter(([, hosts]) => hosts.length > 0)),
  };
}

function permissionCount({ directories, destinations, send }: TrustSettings): number {
  return directories.length + destinations.length + [...send.values()].flat().length;
}

function jsonDocumentOf({ directories, send, destinations }: Authority, file: string | undefined, changed: boolean) {
  return {
    file: file ?? null,
    changed,
    directories: directories.map((item) => ({ ...item, exists: existsSync(item.directory) })),
    send: Object.fromEntries(send),
    destinations,
  };
}

function renderAuthority({ directories, send, destinations }: Authority, file: string | undefined): string {
  const sourceNote = (source: string): string => (source === 'file' ? '' : `  (${source})`);
  const missingNote = (directory: string): string => (existsSync(directory) ? '' : '  (does not exist)');
  const linkNote = (directory: string, source: string): string =>
    source === 'file' && existsSync(directory) && realpathSync(directory) !== directory
      ? '  (is a link now: trust it again)'
      : '';
  const lines = [
    ...directories.map(
      ({ directory, source }) =>
        `run   ${directory}${sourceNote(source)}${missingNote(directory)}${linkNote(directory, source)}`,
    ),
    ...[...send].flatMap(([name, hosts]) => hosts.map((host) => `send  ${name} to ${host}`)),
    ...destinations.map((host) => `reach ${host}`),
  ];
  const none = 'There are no permissions beyond the defaults: no code of a project may run. See: rondo help trust';
  return sanitizeText([...(lines.length > 0 ? lines : [none]), `saved in ${file ?? 'no file'}`].join('\n'), {
    lines: true,
  });
}

function describeOutcome({ isRemoval, directories, send, destinations }: TrustChange, changed: boolean): string {
  if (!changed)
    return isRemoval ? 'Nothing changed: there was no such permission.' : 'Nothing changed: the permission exists.';
  if (isRemoval) return 'Removed.';
  const [directory] = directories;
  return [
    ...(directory ? [`Definitions in ${directory} and below may now run code as you, with your environment.`] : []),
    ...[...send.keys()].map((name) => `Any project may now send ${name} to ${send.get(name)?.join(', ')}.`),
    ...destinations.map((host) => `Any project may now reach ${host}.`),
    'To undo this, add --remove.',
  ].join(' ');
}
