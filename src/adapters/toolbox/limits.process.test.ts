/** Resource limits and the system call filter of a sandboxed command. Every attack here is also bounded by itself. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { type CommandOptions, toolbox } from './index.js';
import { countsTasksPerNamespace, formatBytes } from './limits.js';
import { probeSandbox } from './sandbox.js';
import { seccompFilterFor } from './seccomp.js';

afterAll(cleanUp);

const hasSandbox = 'bubblewrap' in (await probeSandbox());
const hasPerl = existsSync('/usr/bin/perl');
const MIB = 1024 ** 2;

function commands(options: CommandOptions = {}) {
  const { root } = createWorkspace();
  const { run_command } = toolbox({ roots: [root], commands: { timeoutMs: 20_000, ...options } });
  return { root, run: (command: string) => use(run_command, { command }) };
}

/** The numbers of add_key, request_key and keyctl. Perl, which every Debian has, can make any system call. */
const [addKey, requestKey, keyctl] = process.arch === 'x64' ? [248, 249, 250] : [217, 218, 219];
const USER_KEYRING = -4;
const PAYLOAD = 'the-key-of-the-operator';

function perl(program: string): string {
  return execFileSync('/usr/bin/perl', ['-e', program], { encoding: 'utf8' });
}

/** Perl passes strings to a system call only from variables. */
const declareStrings = (name: string): string => `my ($type, $name, $value) = ("user", "${name}", "${PAYLOAD}");`;

verifies('toolbox.keyring', 'a sandboxed command cannot read, find or add a key of the operator', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  context.skip(!hasPerl, 'needs perl');
  const name = `rondo-test-${process.pid}`;
  const add = `${declareStrings(name)} print syscall(${addKey}, $type, $name, $value, ${PAYLOAD.length}, ${USER_KEYRING}), " $!\\n";`;
  const key = Number.parseInt(perl(add), 10);
  const hasKeyrings = key !== -1;
  context.skip(!hasKeyrings, 'needs a kernel with keyrings');
  const read = `my $b = " " x 99; print syscall(${keyctl}, 11, ${key}, $b, 99, 0), " $b $!\\n";`;
  const find = `${declareStrings(name)} print syscall(${requestKey}, $type, $name, 0, ${USER_KEYRING}), " $!\\n";`;
  const join = `print syscall(${keyctl}, 1, 0, 0, 0, 0), " $!\\n";`;
  try {
    expect(perl(read)).toContain(PAYLOAD);
    expect(Number.parseInt(perl(find), 10)).toBe(key);
    expect(readFileSync('/proc/keys', 'utf8')).toContain(name);
    const { run } = commands();
    for (const program of [read, find, join, add]) {
      const { output } = await run(`perl -e '${program}'; cat /proc/keys /proc/key-users`);
      expect(output).toMatch(/^-1 .*Operation not permitted\n/);
      expect(output).not.toContain(PAYLOAD);
      expect(output).not.toContain(name);
    }
    // Nor in nested namespaces.
    const { output } = await run(`unshare -U cat /proc/keys; unshare -U perl -e '${read}'`);
    expect(output).toMatch(/-1 .*Operation not permitted\n$/);
    expect(output).not.toContain(name);
  } finally {
    perl(`syscall(${keyctl}, 3, ${key}, 0, 0, 0)`);
  }
});

verifies('toolbox.keyring', 'there is a filter for each supported architecture, and none for others', () => {
  for (const arch of ['x64', 'arm64', 'riscv64', 'loong64']) {
    const filter = seccompFilterFor(arch) ?? Buffer.alloc(0);
    expect(filter.length % 8).toBe(0);
    // The filter first checks the architecture, and allows all calls that it does not list.
    expect(filter.readUInt32LE(4)).toBe(4);
    expect(filter.readUInt32LE(20)).toBe(0x80000000);
    expect(filter.readUInt32LE(filter.length - 4)).toBe(0x7fff0000);
  }
  expect(seccompFilterFor('x64')?.includes(Buffer.from([0, 0, 0, 0x40]))).toBe(true);
  for (const arch of ['ia32', 'mips', 'toString']) expect(seccompFilterFor(arch)).toBe(undefined);
});

verifies('toolbox.limits', 'a command that starts too many processes is killed with all of them', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run } = commands({ maxProcesses: 30 });
  const command = 'i=0; while [ $i -lt 200 ]; do sleep 317.31 & i=$((i+1)); echo $i; sleep 0.02; done; wait';
  const { output, note } = await run(command);
  expect(note).toBe('It was killed: it had more than 30 processes.');
  expect(output).not.toContain('\n200\n');
  expect(countProcesses('sleep\u0000317.31')).toBe(0);
  expect(await run('for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2 & done; wait; echo done')).toMatchObject({
    exitCode: 0,
    output: 'done\n',
  });
});

verifies('toolbox.limits', 'a fork bomb is killed at the process limit', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run, root } = commands({ maxProcesses: 40 });
  // At most 255 processes, in case the limit does not work.
  writeFileSync(
    join(root, 'double.sh'),
    'if [ "$1" -gt 0 ]; then sh double.sh $(($1 - 1)) & sh double.sh $(($1 - 1)) & fi\necho > p.$$; sleep 20; wait\n',
  );
  expect(await run('sh double.sh 7')).toMatchObject({ note: 'It was killed: it had more than 40 processes.' });
  expect(countProcesses('double.sh')).toBe(0);
});

/** Returns the number of processes with this text in their command line. */
function countProcesses(text: string): number {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text);
    } catch {
      return false;
    }
  }).length;
}

verifies('toolbox.limits', 'a command whose processes use too much memory together is killed', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run } = commands({ maxMemoryBytes: 300 * MIB });
  const hog = (megabytes: number): string =>
    `node -e "const all = []; for (let i = 0; i < ${megabytes}; i++) all.push(Buffer.alloc(1048576, 1)); setTimeout(() => 0, 15000)"`;
  const note = 'It was killed: it used more than 300 MiB of memory.';
  expect(await run(`${hog(500)}; echo survived`)).toMatchObject({ note, output: '' });
  // Each process alone is within the limit.
  expect(await run(`for i in 1 2 3 4 5; do ${hog(100)} & done; wait; echo survived`)).toMatchObject({ note });
  for (const directory of ['/tmp', '/dev/shm']) {
    expect(await run(`head -c 400M /dev/zero > ${directory}/file; sleep 15; echo survived`)).toMatchObject({
      note,
    });
  }
  expect(await run('node -p "1 + 1"')).toMatchObject({ exitCode: 0, output: '2\n' });
});

verifies('toolbox.limits', 'memory outside of all processes cannot be allocated', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  context.skip(!hasPerl, 'needs perl');
  const { run } = commands();
  const [memfd, shmget] = process.arch === 'x64' ? [319, 29] : [279, 194];
  const program = `my $x = "x"; print syscall(${memfd}, $x, 0), " $!\\n"; print syscall(${shmget}, 0, 4096, 0x3ff), " $!\\n";`;
  expect((await run(`perl -e '${program}'`)).output).toBe('-1 Function not implemented\n'.repeat(2));
});

verifies('toolbox.limits', 'a process that writes too large a file is killed, with a note', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run, root } = commands({ maxFileBytes: MIB });
  const { exitCode, note } = await run('head -c 2M /dev/zero > file');
  expect({ exitCode, note }).toEqual({
    exitCode: 153,
    note: 'It was stopped: a file would have become larger than 1 MiB.',
  });
  expect(statSync(join(root, 'file')).size).toBe(MIB);
  expect(await run('head -c 1M /dev/zero > other && echo written')).toMatchObject({ output: 'written\n' });
});

verifies('toolbox.limits', 'too large a file is noted if the command continues after it', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run } = commands({ maxFileBytes: MIB });
  const note = 'According to its output, a file would have become larger than 1 MiB.';
  expect(await run('head -c 2M /dev/zero > file; echo went on')).toMatchObject({ exitCode: 0, note });
  expect(await run("(trap '' XFSZ; exec head -c 2M /dev/zero > file)")).toMatchObject({ exitCode: 1, note });
  expect(await run('echo fine')).not.toHaveProperty('note');
});

verifies('toolbox.limits', 'a command cannot raise its limits and leaves no core dump', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run, root } = commands({ maxFileBytes: MIB });
  expect((await run('ulimit -f unlimited || ulimit -f 4096; head -c 2M /dev/zero > file')).exitCode).toBe(153);
  await run('ulimit -c unlimited; sh -c "kill -SEGV \\$\\$"');
  expect(readdirSync(root)).toEqual(['file']);
});

verifies(
  'toolbox.limits',
  'tasks are limited only where the kernel counts them per sandbox, and sizes have units',
  () => {
    expect(countsTasksPerNamespace('5.13.0')).toBe(false);
    expect(countsTasksPerNamespace('5.14.21-generic')).toBe(true);
    expect(countsTasksPerNamespace('6.1.0')).toBe(true);
    expect([1000, 1024, 5 * MIB, 4 * 1024 ** 3].map(formatBytes)).toEqual(['1000 bytes', '1 KiB', '5 MiB', '4 GiB']);
  },
);

verifies('toolbox.limits', 'an invalid limit is an error on creation of the toolbox', () => {
  const { root } = createWorkspace();
  for (const commands of [{ maxProcesses: 0 }, { maxMemoryBytes: 1.5 }, { maxFileBytes: -1 }, { maxMemoryBytes: 1 }]) {
    expect(() => toolbox({ roots: [root], commands })).toThrow(/options\.commands\.max\w+ must be a whole number from/);
  }
});

verifies(
  'secret.echo',
  'secrets of the environment are redacted in the output of a command and its stream',
  async () => {
    const { root } = createWorkspace();
    const env = { NPM_TOKEN: 'npm_l1ve8a7f3c5e9b', MODE: 'production' };
    const sandboxModes = hasSandbox ? (['required', 'off'] as const) : (['off'] as const);
    for (const sandbox of sandboxModes) {
      const { run_command } = toolbox({ roots: [root], commands: { env, sandbox } });
      const deltas: string[] = [];
      const command =
        'echo "$MODE $NPM_TOKEN"; printf %s "$NPM_TOKEN" | base64; printf npm_l1ve; sleep 0.1; echo 8a7f3c5e9b';
      const callOptions = { onToolOutputDelta: (delta: string) => void deltas.push(delta) };
      const { output } = await use(run_command, { command }, callOptions);
      expect(output).toBe('production [withheld]\n[withheld]\n[withheld]\n');
      expect(deltas.join('')).not.toMatch(/l1ve|bnBtX2wxdmU/);
      expect(deltas.join('')).toMatch(/^production /);
    }
  },
);
