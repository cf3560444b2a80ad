/** `trust`: what the operator allows. It reads and writes the operator's own file, and nothing of the project. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  assertOutside,
  authorityOf,
  isInside,
  operatorFileOf,
  permitsIn,
  type Remembered,
  realPathOf,
  recordedHome,
} from '../../authority.js';
import { remember, rememberedFor } from '../../compose.js';
import { type Asked, type Authority, UsageError } from '../../settings.js';
import { plain } from '../paint.js';
import { type Act, exit, textOf } from '../verb.js';

/** What is to be remembered, or forgotten. */
interface Change extends Remembered {
  readonly remove: boolean;
}

export const trust: Act = async ({ args, options, asked, terminal, json }) => {
  const file = operatorFileOf(asked.env);
  const change = changeOf(textOf(args[0] as string | undefined), options.remove === true, asked);
  let remembered = await rememberedFor(asked);
  let changed = false;
  if (change !== undefined) {
    if (file === undefined) throw new UsageError('There is no place to remember it: set HOME or XDG_CONFIG_HOME.');
    // guard: operator-file-not-written-into-project
    assertOutside(file, asked);
    const next = change.remove ? without(remembered, change) : merged(remembered, change);
    changed = countOf(next) !== countOf(remembered);
    if (changed) await remember(file, next);
    remembered = next;
  }
  const { send, reach, ...rest } = asked.flags;
  const flags = change === undefined ? { ...rest, ...(send && { send }), ...(reach && { reach }) } : rest;
  const authority = authorityOf({ ...asked, flags }, remembered);
  if (json) await terminal.json(documentOf(authority, file, changed));
  else await terminal.print(`${described(authority, file)}\n`);
  if (change !== undefined) terminal.say(plain(outcomeOf(change, changed)));
  return exit.ok;
};

function changeOf(directory: string | undefined, remove: boolean, asked: Asked): Change | undefined {
  const { send = [], reach = [] } = asked.flags;
  if (directory === undefined && send.length + reach.length === 0) {
    if (remove) throw new UsageError('Name what is to be taken back: a directory, --send or --reach.');
    return undefined;
  }
  const directories = directory === undefined ? [] : namedDirectories(directory, remove, asked);
  return { remove, directories, ...permitsIn(send, reach) };
}

/** The real path of a directory. One that is gone can still be taken back. */
function namedDirectories(named: string, remove: boolean, { cwd, env }: Asked): readonly string[] {
  const path = resolve(cwd, named);
  // guard: real-directory-remembered
  const real = realPathOf(path);
  if (remove) return [...new Set([path, real ?? path])];
  if (real === undefined || !statSync(real).isDirectory()) throw new UsageError(`There is no directory ${named}.`);
  const homes = [env.HOME, recordedHome()].flatMap((home) => (home ? (realPathOf(home) ?? []) : []));
  if (
    real === resolve('/') ||
    homes.some((home) => /* guard: directory-above-home-not-trusted */ isInside(real, home))
  ) {
    throw new UsageError(
      `${real} holds everything you have, downloads and clones too: trust a directory in it instead.`,
    );
  }
  return [real];
}

const union = (a: readonly string[], b: readonly string[]): readonly string[] => [...new Set([...a, ...b])];
const minus = (a: readonly string[], b: readonly string[]): readonly string[] => a.filter((item) => !b.includes(item));

function merged(before: Remembered, change: Remembered): Remembered {
  const variables = union([...before.send.keys()], [...change.send.keys()]);
  const hosts = (name: string): readonly string[] => union(before.send.get(name) ?? [], change.send.get(name) ?? []);
  return {
    directories: union(before.directories, change.directories),
    destinations: union(before.destinations, change.destinations),
    send: new Map(variables.map((name) => [name, hosts(name)])),
  };
}

function without(before: Remembered, change: Remembered): Remembered {
  const left = [...before.send].map(([name, hosts]) => [name, minus(hosts, change.send.get(name) ?? [])] as const);
  return {
    directories: minus(before.directories, change.directories),
    destinations: minus(before.destinations, change.destinations),
    send: new Map(left.filter(([, hosts]) => hosts.length > 0)),
  };
}

function countOf({ directories, destinations, send }: Remembered): number {
  return directories.length + destinations.length + [...send.values()].flat().length;
}

function documentOf({ directories, send, destinations }: Authority, file: string | undefined, changed: boolean) {
  return {
    file: file ?? null,
    changed,
    directories: directories.map((item) => ({ ...item, exists: existsSync(item.directory) })),
    send: Object.fromEntries(send),
    destinations,
  };
}

function described({ directories, send, destinations }: Authority, file: string | undefined): string {
  const from = (source: string): string => (source === 'file' ? '' : `  (${source})`);
  const gone = (directory: string): string => (existsSync(directory) ? '' : '  (does not exist)');
  const linked = (directory: string, source: string): string =>
    source === 'file' && existsSync(directory) && realpathSync(directory) !== directory
      ? '  (is a link now: trust it again)'
      : '';
  const lines = [
    ...directories.map(
      ({ directory, source }) => `run   ${directory}${from(source)}${gone(directory)}${linked(directory, source)}`,
    ),
    ...[...send].flatMap(([name, hosts]) => hosts.map((host) => `send  ${name} to ${host}`)),
    ...destinations.map((host) => `reach ${host}`),
  ];
  const none = 'Nothing is allowed beyond the defaults: no directory runs code. See: rondo help trust';
  return plain([...(lines.length > 0 ? lines : [none]), `kept in ${file ?? 'no file'}`].join('\n'), { lines: true });
}

function outcomeOf({ remove, directories, send, destinations }: Change, changed: boolean): string {
  if (!changed)
    return remove ? 'It was not remembered: nothing changed.' : 'It was remembered before: nothing changed.';
  if (remove) return 'Taken back.';
  const [directory] = directories;
  return [
    ...(directory ? [`Definitions in ${directory} and below may now run code as you, with your environment.`] : []),
    ...[...send.keys()].map((name) => `Any project may now have ${name} sent to ${send.get(name)?.join(', ')}.`),
    ...destinations.map((host) => `Any project may now reach ${host}.`),
    'To take it back, add --remove.',
  ].join(' ');
}
