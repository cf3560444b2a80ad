// Checks of the sandbox, of data directories and of secrets; each fails when its guard is broken.

import { match, ok, rejects, strictEqual, throws } from 'node:assert';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CommandOptions } from '../../src/adapters/toolbox/options.js';
import { use } from '../support/toolbox-fixture.mjs';
import type { LibraryParts } from './library.js';

/** The toolbox and what it needs. */
export const sandboxParts: LibraryParts = [
  'adapters/toolbox/index.js',
  'adapters/toolbox/mount-sources.js',
  'adapters/toolbox/find-stores.js',
  'journal/store-files.js',
  'base/redact.js',
];

type SandboxLibrary = typeof import('../../src/adapters/toolbox/index.js') &
  typeof import('../../src/adapters/toolbox/mount-sources.js') &
  typeof import('../../src/adapters/toolbox/find-stores.js') &
  typeof import('../../src/journal/store-files.js') &
  typeof import('../../src/base/redact.js') & { readonly folder: string };

type Check = (library: SandboxLibrary) => Promise<void>;

const SECRET = 'the-key-of-the-store';
const MIB = 1024 ** 2;

/** Runs a check in a root with a data directory of an unusual name. */
function inRoot(
  work: (library: SandboxLibrary, root: string, data: string) => Promise<void>,
  protect: (library: SandboxLibrary, data: string) => void,
): Check {
  return async (library) => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-confining-')));
    const data = join(root, 'var/state');
    mkdirSync(data, { recursive: true });
    writeFileSync(join(data, 'key'), SECRET);
    protect(library, data);
    try {
      await work(library, root, data);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  };
}

const mark = ({ DATA_MARKER }: SandboxLibrary, data: string): void => writeFileSync(join(data, DATA_MARKER), '');
const register = ({ protectDirectory }: SandboxLibrary, data: string): void => protectDirectory(data);

function run({ toolbox }: SandboxLibrary, root: string, command: string, commands: CommandOptions = {}) {
  return use(toolbox({ roots: [root], commands: { timeoutMs: 4000, ...commands } }).run_command, { command });
}

/** Checks the result of a command in an empty root. */
function command(line: string, options: CommandOptions, check: (result: { readonly [name: string]: unknown }) => void) {
  return inRoot(async (library, root) => check(await run(library, root, line, options)), register);
}

/** A program that runs a command and inherits descriptor 77; Node closes lower ones on exec. */
const PROGRAM = `
const { toolbox } = await import(process.argv[1] + '/adapters/toolbox/index.js');
const { run_command } = toolbox({ roots: [process.argv[2]] });
const command = 'cat /proc/self/fd/77/key; echo over';
const options = { toolCallId: 'c', messages: [], onToolOutputDelta() {} };
const { output } = await run_command.withApproval('always_allow').execute({ command }, options);
console.log(output);
`;

export const sandboxChecks = {
  'a tool cannot read a data directory that another process marked': inRoot(async ({ toolbox }, root) => {
    await rejects(use(toolbox({ roots: [root] }).view_file, { path: 'var/state/key' }), /belongs to Rondo's store/);
  }, mark),
  'a tool cannot read a data directory through a hard link': inRoot(async ({ toolbox }, root, data) => {
    linkSync(join(data, 'key'), join(root, 'link'));
    await rejects(use(toolbox({ roots: [root] }).view_file, { path: 'link' }), /belongs to Rondo's store/);
  }, register),
  'a tool cannot read a data directory of another process through a hard link': inRoot(
    async ({ toolbox }, root, data) => {
      linkSync(join(data, 'key'), join(root, 'link'));
      await rejects(use(toolbox({ roots: [root] }).view_file, { path: 'link' }), /belongs to Rondo's store/);
    },
    mark,
  ),
  'a command cannot read a data directory in node_modules': inRoot(async (library, root) => {
    mkdirSync(join(root, 'node_modules/app/.rondo'), { recursive: true });
    writeFileSync(join(root, 'node_modules/app/.rondo/key'), SECRET);
    const { output } = await run(library, root, 'cat node_modules/app/.rondo/key; echo over');
    match(String(output), /over/);
    ok(!String(output).includes(SECRET));
  }, mark),
  'a command cannot read a data directory through a hard link': inRoot(async (library, root, data) => {
    linkSync(join(data, 'key'), join(root, 'link'));
    const { output } = await run(library, root, 'cat link; echo over');
    match(String(output), /over/);
    ok(!String(output).includes(SECRET));
  }, mark),
  'a command cannot read a data directory through a mount': inRoot(async (library, root, data) => {
    const mountPoint = join(root, 'link');
    writeFileSync(mountPoint, '');
    execFileSync('mount', ['--bind', join(data, 'key'), mountPoint]);
    try {
      const { output } = await run(library, root, 'cat link; echo over');
      match(String(output), /over/);
      ok(!String(output).includes(SECRET));
    } finally {
      execFileSync('umount', ['-l', mountPoint]);
    }
  }, mark),
  'a recently changed directory is read again, whatever its ctime': inRoot(async ({ findStores }, root) => {
    // The times of this file system come from the kernel clock, which advances in steps of milliseconds.
    execFileSync('mount', ['-t', 'ramfs', 'ramfs', root]);
    try {
      for (let round = 0; round < 50; round++) {
        const directory = join(root, String(round));
        mkdirSync(directory);
        await findStores([directory]);
        mkdirSync(join(directory, '.rondo'));
        strictEqual((await findStores([directory])).dataDirectories.length, 1);
      }
    } finally {
      execFileSync('umount', ['-l', root]);
    }
  }, register),
  'a command cannot read through an inherited descriptor': inRoot(async ({ folder }, root, data) => {
    const descriptor = openSync(data, 'r');
    const stdio = ['ignore', 'pipe', 'inherit', ...Array.from({ length: 74 }, () => 'ignore' as const), descriptor];
    const args = ['--input-type=module', '-e', PROGRAM, folder, root];
    const { stdout } = spawnSync(process.execPath, args, { stdio: stdio as never, encoding: 'utf8' });
    closeSync(descriptor);
    match(stdout, /over/);
    ok(!stdout.includes(SECRET));
  }, register),
  'a root behind a link that a command could have made is refused': inRoot(async ({ toolbox }, root) => {
    mkdirSync(join(root, 'real/sub'), { recursive: true });
    symlinkSync('real', join(root, 'inner'));
    throws(() => toolbox({ roots: [join(root, 'inner/sub')] }), /is reached through the symbolic link/);
  }, register),
  'a sandbox does not follow a symbolic link on the path to a root': inRoot(async ({ mountSourcesOf }, root) => {
    symlinkSync(join(root, 'var'), join(root, 'link'));
    throws(() => mountSourcesOf([join(root, 'link/state')]), /was moved or replaced/);
  }, register),
  'a command cannot read a data directory of another name': inRoot(async (library, root) => {
    const { output } = await run(library, root, 'cat var/state/key');
    ok(!String(output).includes(SECRET));
  }, mark),
  'a command cannot move the parent of a data directory': inRoot(async (library, root) => {
    await run(library, root, 'mv var moved');
    ok(!existsSync(join(root, 'moved')));
  }, register),
  'a command cannot open a socket to the hypervisor': command(
    // AF_PACKET represents all denied families: every kernel has it, and without the filter fails with another error.
    `perl -e 'print socket(my $s, 17, 3, 0) ? "made" : "$!"'`,
    {},
    ({ output }) => strictEqual(output, 'Address family not supported by protocol'),
  ),
  'a command cannot use a kernel keyring': command(
    // KEYCTL_GET_KEYRING_ID of the session keyring.
    `perl -e 'print syscall(${process.arch === 'x64' ? 250 : 219}, 0, -3, 0), " $!"'`,
    {},
    ({ output }) => strictEqual(output, '-1 Operation not permitted'),
  ),
  'a command cannot exceed its process limit': command(
    'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 2 & done; wait; echo all',
    { maxProcesses: 8 },
    ({ output }) => strictEqual(output, ''),
  ),
  'a command cannot exceed its memory limit': command(
    `node -e "globalThis.b = Buffer.alloc(${200 * MIB}, 1); setTimeout(() => console.log('all'), 1500)"`,
    { maxMemoryBytes: 150 * MIB },
    ({ output }) => strictEqual(output, ''),
  ),
  'a command cannot exceed its file size limit': command(
    'head -c 2M /dev/zero > file; ls -l file',
    { maxFileBytes: MIB },
    ({ output }) => match(String(output), new RegExp(` ${MIB} `)),
  ),
  'the token of a header is redacted without its scheme': async ({ redactorOf, WITHHELD }) =>
    strictEqual(redactorOf(['Bearer sk/1234']).redactText('bad sk/1234'), `bad ${WITHHELD}`),
  'a URL-encoded secret is redacted': async ({ redactorOf, WITHHELD }) =>
    strictEqual(redactorOf(['sk/12"34567']).redactText('bad sk%2F12%2234567'), `bad ${WITHHELD}`),
  'a secret in line-wrapped Base64 is redacted': async ({ redactorOf, WITHHELD }) =>
    strictEqual(redactorOf(['sk/12"34567']).redactText('bad c2sv\nMTIi\nMzQ1\nNjc'), `bad ${WITHHELD}`),
  'a secret in nested encodings is redacted': async ({ redactorOf, WITHHELD }) =>
    strictEqual(redactorOf(['sk/12"34567']).redactText('bad c2slMkYxMiUyMjM0NTY3'), `bad ${WITHHELD}`),
} as const satisfies Record<string, Check>;
