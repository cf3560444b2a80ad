/**
 * Runs commands in a bubblewrap sandbox. A command sees the programs of the system and this Node, read-only; the roots,
 * writable, without the files of stores; and an empty /tmp. It sees no other process and no home directory, and has no
 * network unless the options allow it. Root has no privileges in it: there are no capabilities, and /proc, where root
 * could change kernel settings, is read-only.
 */
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { limitsOf, type SandboxLimits, withLimits } from './limits.js';
import { type MountSource, mountSourcesOf } from './mount-sources.js';
import { containsPath } from './paths.js';
import { FILTER_FD, INFO_FD, type ProcessSpec, runProcess } from './run-process.js';
import { seccompFilterFor } from './seccomp.js';
import { truncate } from './text.js';

/** The configuration of one sandbox. */
export interface SandboxOptions {
  /** The arguments that mount the roots. */
  readonly mounts: readonly string[];
  /** The expected inodes of these mounts. */
  readonly sources: readonly MountSource[];
  /** The working directory. */
  readonly directory: string;
  /** True if the command can use the network. */
  readonly network: boolean;
  readonly limits: SandboxLimits;
}

const BUBBLEWRAP_PATHS = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap', '/run/current-system/sw/bin/bwrap'];
/** The directories with the programs of the system, which are visible read-only. */
export const SYSTEM_DIRECTORIES = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'];
/** Subdirectories of these with files that are not part of the system, so that they could contain a store. */
export const LOCAL_SYSTEM_DIRECTORIES = ['/usr/local', '/usr/src'];
/** Files and directories in /etc that programs need to start and to look up users. None of them is confidential. */
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

/** The directories in PATH, inside and outside of the sandbox. */
export const SEARCH_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The home directory in the sandbox: empty and temporary. */
export const SANDBOX_HOME = '/tmp';

/** Files that list the keys of the operator. They are hidden. */
const KEYRING_FILES = ['/proc/keys', '/proc/key-users'];

/** Returns the process that runs a command line in the sandbox. `probeSandbox` has verified that a filter exists. */
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
    // No --new-session: the process already runs in its own session without a terminal. Another session would remove
    // the sandbox from the process group that is killed, before --die-with-parent is in effect.
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

/** Returns the arguments that run a command line, including one that starts with a dash. */
export function shellArgs(commandLine: string): readonly string[] {
  return ['/bin/sh', '-c', '--', commandLine];
}

/** Returns the arguments that show a link as a link, and a directory read-only; none if the path does not exist. */
function showPathArgs(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

/**
 * Returns the arguments that mount Node and npm if Node is outside of the system directories. They mount no other
 * files, because Node may be in a home directory.
 */
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

/** The path of a working bubblewrap, or the reason why there is none. */
type SandboxAvailability = { readonly bubblewrap: string } | { readonly problem: string };

const probeResults = new Map<string, Promise<SandboxAvailability>>();

/** Tests once per program whether bubblewrap works: it may be installed but not permitted to create namespaces. */
export function probeSandbox(bubblewrap?: string): Promise<SandboxAvailability> {
  const file = bubblewrap ?? BUBBLEWRAP_PATHS.find((path) => existsSync(path)) ?? 'bwrap';
  const result = probeResults.get(file) ?? tryBubblewrap(file);
  probeResults.set(file, result);
  // A test that could not be run is not cached.
  result.catch(() => probeResults.delete(file));
  return result;
}

async function tryBubblewrap(file: string): Promise<SandboxAvailability> {
  if (!existsSync(file)) return { problem: `${file} is not installed` };
  if (seccompFilterFor() === undefined)
    return { problem: `there is no system call filter for the processor ${process.arch}` };
  // Includes a source, because comparing inodes in the sandbox needs the program `stat`.
  const sources = mountSourcesOf([realpathSync('/bin/sh')]);
  const confinement = { mounts: [], sources, directory: '/', network: false, limits: limitsOf({}) };
  const settings = { env: {}, timeoutMs: PROBE_TIMEOUT_MS, maxOutputBytes: 4000, onOutput: () => undefined };
  const { output } = await runProcess({ ...sandboxProcess(file, confinement, 'echo works'), ...settings }, undefined);
  const text = output.text().trim();
  return text === 'works' ? { bubblewrap: file } : { problem: `${file} does not work here (${truncate(text, 200)})` };
}
