/**
 * What a command sees of this machine, by bubblewrap: the system's programs and the Node that runs us, to read; the roots,
 * to write, without the files of stores; an empty /tmp; no network, no other process, nothing of anybody's home. Root
 * keeps no power in it: without capabilities, and with a /proc that cannot be written, as the settings of the kernel there
 * belong to root.
 */
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { limitsOf, type SandboxLimits, withLimits } from './limits.js';
import { type MountSource, mountSourcesOf } from './mount-sources.js';
import { containsPath } from './paths.js';
import { FILTER_FD, INFO_FD, type ProcessSpec, runProcess } from './run-process.js';
import { seccompFilterFor } from './seccomp.js';
import { truncate } from './text.js';

export interface SandboxOptions {
  /** The arguments that mount the roots. */
  readonly mounts: readonly string[];
  /** What these mounts must show. */
  readonly sources: readonly MountSource[];
  readonly directory: string;
  readonly network: boolean;
  readonly limits: SandboxLimits;
}

const BUBBLEWRAP_PATHS = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap', '/run/current-system/sw/bin/bwrap'];
/** Where the system keeps its programs: all of it is shown, to read. */
export const SYSTEM_DIRECTORIES = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'];
/** Those of them that hold files which did not come with the system, so that a store could lie there. */
export const LOCAL_SYSTEM_DIRECTORIES = ['/usr/local', '/usr/src'];
/** What programs need to start and to find out who they are: all of it is public. */
const ETC_FILES = ['alternatives', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime', 'nsswitch.conf'].concat([
  'passwd',
  'group',
  'ssl/certs',
  'pki',
  'ca-certificates',
  'mime.types',
  'protocols',
  'services',
]);
const NETWORK_ETC_FILES = ['resolv.conf', 'hosts', 'host.conf', 'gai.conf'];
const PROBE_TIMEOUT_MS = 10_000;

/** Where programs are looked for, in and out of the sandbox. */
export const SEARCH_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The home of a command: in the sandbox, an empty directory that is gone afterwards. */
export const SANDBOX_HOME = '/tmp';

/** Shows which keys the operator has. */
const KEYRING_FILES = ['/proc/keys', '/proc/key-users'];

/** What runs a command line in the sandbox; a Usable has said that there is a filter for this processor. */
export function sandboxProcess(
  bubblewrap: string,
  confinement: SandboxOptions,
  commandLine: string,
): Pick<ProcessSpec, 'argv' | 'directory' | 'sandbox'> {
  const { limits } = confinement;
  const filter = seccompFilterFor() ?? Buffer.alloc(0);
  return { argv: bubblewrapArgs(bubblewrap, confinement, commandLine), directory: '/', sandbox: { limits, filter } };
}

function bubblewrapArgs(bubblewrap: string, confinement: SandboxOptions, commandLine: string): readonly string[] {
  const { mounts, sources, directory, network, limits } = confinement;
  const settings = network ? [...ETC_FILES, ...NETWORK_ETC_FILES] : ETC_FILES;
  return [
    bubblewrap,
    '--unshare-all',
    ...(network ? ['--share-net'] : []),
    // No --new-session: we start it in a session of its own, without a terminal, and one more would take the sandbox out of
    // the group that is killed, at a time when it does not yet end with its parent.
    ...['--die-with-parent', '--cap-drop', 'ALL', '--hostname', 'sandbox'],
    ...['--info-fd', String(INFO_FD), '--seccomp', String(FILTER_FD)],
    ...SYSTEM_DIRECTORIES.flatMap(showPathArgs),
    ...settings.map((name) => join('/etc', name)).flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', ...KEYRING_FILES.flatMap(hideFileArgs), '--remount-ro', '/proc'],
    ...['--dev', '/dev', '--tmpfs', '/dev/shm', '--remount-ro', '/dev', '--tmpfs', '/tmp'],
    ...nodeBindArgs(process.execPath),
    ...mounts,
    ...['--remount-ro', '/', '--chdir', directory, '--', ...withLimits(limits, sources, shellArgs(commandLine))],
  ];
}

function hideFileArgs(file: string): readonly string[] {
  return existsSync(file) ? ['--ro-bind', '/dev/null', file] : [];
}

/** What runs a command line, also one that begins like an option. */
export function shellArgs(commandLine: string): readonly string[] {
  return ['/bin/sh', '-c', '--', commandLine];
}

/** A link of the system as a link, a directory as itself. */
function showPathArgs(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/** Node and npm, where they are not among the system's programs: those files and no others, as they may be in a home. */
export function nodeBindArgs(execPath: string): readonly string[] {
  const node = realpathSync(execPath);
  if (SYSTEM_DIRECTORIES.some((directory) => containsPath(directory, node))) return [];
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
export type SandboxAvailability = { readonly bubblewrap: string } | { readonly problem: string };

const probeResults = new Map<string, Promise<SandboxAvailability>>();

/** Tries it once for each program: it may be there and still not be allowed to do anything. */
export function probeSandbox(bubblewrap?: string): Promise<SandboxAvailability> {
  const file = bubblewrap ?? BUBBLEWRAP_PATHS.find((path) => existsSync(path)) ?? 'bwrap';
  const known = probeResults.get(file) ?? tryBubblewrap(file);
  probeResults.set(file, known);
  // That it could not even be tried says nothing about the next time.
  known.catch(() => probeResults.delete(file));
  return known;
}

async function tryBubblewrap(file: string): Promise<SandboxAvailability> {
  if (!existsSync(file)) return { problem: `${file} is not installed` };
  if (seccompFilterFor() === undefined)
    return { problem: `there is no system call filter for the processor ${process.arch}` };
  // The comparison needs a program of the system, so it is tried too.
  const sources = mountSourcesOf([realpathSync('/bin/sh')]);
  const confinement = { mounts: [], sources, directory: '/', network: false, limits: limitsOf({}) };
  const bounds = { env: {}, timeoutMs: PROBE_TIMEOUT_MS, maxOutputBytes: 4000, onOutput: () => undefined };
  const { output } = await runProcess({ ...sandboxProcess(file, confinement, 'echo works'), ...bounds }, undefined);
  const said = output.text().trim();
  return said === 'works' ? { bubblewrap: file } : { problem: `${file} does not work here (${truncate(said, 200)})` };
}
