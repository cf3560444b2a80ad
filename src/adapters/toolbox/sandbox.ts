/**
 * What a command sees of this machine, by bubblewrap: the system's programs and the Node that runs us, to read; the roots,
 * to write, without the files of stores; an empty /tmp; no network, no other process, nothing of anybody's home. Root
 * keeps no power in it: without capabilities, and with a /proc that cannot be written, as the settings of the kernel there
 * belong to root.
 */
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { FILTER_FD, INFO_FD, type Program, run } from './child.js';
import { type Limits, limited, limitsOf } from './limits.js';
import { contains } from './paths.js';
import { filterFor } from './seccomp.js';
import { type Source, sourcesOf } from './sources.js';
import { cut } from './text.js';

export interface Confinement {
  /** The arguments that mount the roots. */
  readonly mounts: readonly string[];
  /** What these mounts must show. */
  readonly sources: readonly Source[];
  readonly directory: string;
  readonly network: boolean;
  readonly limits: Limits;
}

const USUAL = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap', '/run/current-system/sw/bin/bwrap'];
/** Where the system keeps its programs: all of it is shown, to read. */
export const PROGRAMS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'];
/** Those of them that hold files which did not come with the system, so that a store could lie there. */
export const LOCAL_PROGRAMS = ['/usr/local', '/usr/src'];
/** What programs need to start and to find out who they are: all of it is public. */
const SETTINGS = ['alternatives', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime', 'nsswitch.conf'].concat([
  'passwd',
  'group',
  'ssl/certs',
  'pki',
  'ca-certificates',
  'mime.types',
  'protocols',
  'services',
]);
const NETWORK = ['resolv.conf', 'hosts', 'host.conf', 'gai.conf'];
const PROBE_MS = 10_000;

/** Where programs are looked for, in and out of the sandbox. */
export const PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The home of a command: in the sandbox, an empty directory that is gone afterwards. */
export const HOME = '/tmp';

/** Shows which keys the operator has. */
const KEYS = ['/proc/keys', '/proc/key-users'];

/** What runs a command line in the sandbox; a Usable has said that there is a filter for this processor. */
export function sandboxed(
  bubblewrap: string,
  confinement: Confinement,
  commandLine: string,
): Pick<Program, 'argv' | 'directory' | 'sandbox'> {
  const { limits } = confinement;
  const filter = filterFor() ?? Buffer.alloc(0);
  return { argv: argumentsOf(bubblewrap, confinement, commandLine), directory: '/', sandbox: { limits, filter } };
}

function argumentsOf(bubblewrap: string, confinement: Confinement, commandLine: string): readonly string[] {
  const { mounts, sources, directory, network, limits } = confinement;
  const settings = network ? [...SETTINGS, ...NETWORK] : SETTINGS;
  return [
    bubblewrap,
    '--unshare-all',
    ...(network ? ['--share-net'] : []),
    // No --new-session: we start it in a session of its own, without a terminal, and one more would take the sandbox out of
    // the group that is killed, at a time when it does not yet end with its parent.
    ...['--die-with-parent', '--cap-drop', 'ALL', '--hostname', 'sandbox'],
    ...['--info-fd', String(INFO_FD), '--seccomp', String(FILTER_FD)],
    ...PROGRAMS.flatMap(visible),
    ...settings.map((name) => join('/etc', name)).flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', ...KEYS.flatMap(hidden), '--remount-ro', '/proc'],
    ...['--dev', '/dev', '--tmpfs', '/dev/shm', '--remount-ro', '/dev', '--tmpfs', '/tmp'],
    ...nodeBinds(process.execPath),
    ...mounts,
    ...['--remount-ro', '/', '--chdir', directory, '--', ...limited(limits, sources, shell(commandLine))],
  ];
}

function hidden(file: string): readonly string[] {
  return existsSync(file) ? ['--ro-bind', '/dev/null', file] : [];
}

/** What runs a command line, also one that begins like an option. */
export function shell(commandLine: string): readonly string[] {
  return ['/bin/sh', '-c', '--', commandLine];
}

/** A link of the system as a link, a directory as itself. */
function visible(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** Node and npm, where they are not among the system's programs: those files and no others, as they may be in a home. */
export function nodeBinds(execPath: string): readonly string[] {
  const node = realpathSync(execPath);
  if (PROGRAMS.some((directory) => contains(directory, node))) return [];
  const bin = dirname(node);
  const npm = join(dirname(bin), 'lib/node_modules/npm');
  const binds = ['--ro-bind', node, node];
  if (basename(bin) !== 'bin' || !existsSync(npm)) return binds;
  const links = ['npm', 'npx'].flatMap((name) => [
    '--symlink',
    `../lib/node_modules/npm/bin/${name}-cli.js`,
    join(bin, name),
  ]);
  return [...binds, '--ro-bind', npm, npm, ...links];
}

/** Whether bubblewrap works here: the program, or why not. */
export type Usable = { readonly bubblewrap: string } | { readonly flaw: string };

const probed = new Map<string, Promise<Usable>>();

/** Tries it once for each program: it may be there and still not be allowed to do anything. */
export function usable(bubblewrap?: string): Promise<Usable> {
  const file = bubblewrap ?? USUAL.find((path) => existsSync(path)) ?? 'bwrap';
  const known = probed.get(file) ?? probe(file);
  probed.set(file, known);
  // That it could not even be tried says nothing about the next time.
  known.catch(() => probed.delete(file));
  return known;
}

async function probe(file: string): Promise<Usable> {
  if (!existsSync(file)) return { flaw: `${file} is not installed` };
  if (filterFor() === undefined) return { flaw: `there is no system call filter for the processor ${process.arch}` };
  // The comparison needs a program of the system, so it is tried too.
  const sources = sourcesOf([realpathSync('/bin/sh')]);
  const confinement = { mounts: [], sources, directory: '/', network: false, limits: limitsOf({}) };
  const bounds = { env: {}, timeoutMs: PROBE_MS, maxOutputBytes: 4000, heard: () => undefined };
  const { output } = await run({ ...sandboxed(file, confinement, 'echo works'), ...bounds }, undefined);
  const said = output.text().trim();
  return said === 'works' ? { bubblewrap: file } : { flaw: `${file} does not work here (${cut(said, 200)})` };
}
