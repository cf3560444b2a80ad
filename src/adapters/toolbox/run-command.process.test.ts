/** `run_command`: output, limits, confinement, and the end of all processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import {
  cleanUp,
  createWorkspace,
  failure,
  findProcesses,
  remainingProcesses,
  SECRET,
  use,
  waitForProcess,
} from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { type CommandOptions, toolbox } from './index.js';
import { nodeBindArgs, probeSandbox } from './sandbox.js';

afterAll(cleanUp);

const hasSandbox = 'bubblewrap' in (await probeSandbox());

function commands(options: CommandOptions, files: Record<string, string> = {}) {
  const workspace = createWorkspace(files);
  const box = toolbox({ roots: [workspace.root], commands: options });
  const run = (command: string, input = {}, callOptions = {}) =>
    use(box.run_command, { command, ...input }, callOptions);
  return { ...workspace, box, run };
}

/** With a sandbox, if it works here, and without. */
const variants: readonly CommandOptions[] = hasSandbox ? [{}, { sandbox: 'off' }] : [{ sandbox: 'off' }];

verifies('toolbox.command', 'a nonzero exit code is a result, and the order of the output is preserved', async () => {
  for (const options of variants) {
    const { run } = commands(options, { 'src/a.txt': 'hello\n' });
    const deltas: string[] = [];
    const callOptions = { onToolOutputDelta: (delta: string) => void deltas.push(delta) };
    const many = 'for i in 1 2 3 4 5 6 7 8 9; do echo "out $i"; echo "err $i" >&2; done; exit 3';
    const expected = Array.from({ length: 9 }, (_, i) => `out ${i + 1}\nerr ${i + 1}\n`).join('');
    expect(await run(many, {}, callOptions)).toEqual({
      exitCode: 3,
      output: expected,
      sandboxed: options.sandbox !== 'off',
    });
    expect(deltas.join('')).toBe(expected);
    expect(await run('cat a.txt; pwd', { directory: 'src' })).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/^hello\n.*\/root\/src\n$/),
    });
    expect(await run('cat')).toMatchObject({ exitCode: 0, output: '' });
  }
});

verifies('toolbox.command', 'the output of a command is bounded', async () => {
  for (const options of variants) {
    const { run } = commands({ ...options, maxOutputBytes: 2000 });
    const deltas: string[] = [];
    const callOptions = { onToolOutputDelta: (delta: string) => void deltas.push(delta) };
    const long = await run('echo first; head -c 1000000 /dev/zero | tr "\\0" x; echo; echo last', {}, callOptions);
    expect(String(long.output)).toMatch(/^first\nx+\n… 998012 bytes are omitted …\nx+\nlast\n$/);
    expect(long.cutBytes).toBe(998_012);
    expect(deltas.join('').length).toBeLessThan(2100);
    const start = performance.now();
    const flood = await run('yes');
    expect(flood).toMatchObject({ note: expect.stringContaining('it printed too much') });
    expect(String(flood.output).length).toBeLessThan(2100);
    expect(performance.now() - start).toBeLessThan(20_000);
    const truncated = String((await run('i=0; while [ $i -lt 700 ]; do printf "ä€𝄞"; i=$((i+1)); done')).output);
    expect(truncated).not.toContain('\ufffd');
    expect(truncated).toContain('bytes are omitted');
  }
});

verifies('toolbox.command', 'a command is killed after its timeout', async () => {
  for (const [n, options] of variants.entries()) {
    const { run } = commands({ ...options, timeoutMs: 700 });
    const start = performance.now();
    const slow = await run(`echo before; trap "" TERM; sleep 311.${n}1; echo after`);
    expect(slow).toMatchObject({ output: expect.stringMatching(/^before\n/), note: 'It was killed after 700 ms.' });
    expect(slow.output).not.toContain('after');
    expect(performance.now() - start).toBeLessThan(6000);
    expect(await remainingProcesses(`sleep 311.${n}1`)).toEqual([]);
    expect(await run('sleep 30', { timeoutSeconds: 3600 })).toMatchObject({ note: 'It was killed after 700 ms.' });
  }
});

verifies('toolbox.command', 'an aborted command is terminated with all its processes', async () => {
  for (const [n, options] of variants.entries()) {
    const { run } = commands(options);
    const reason = new Error('cancelled');
    const controller = new AbortController();
    const sleepCommand = `sleep 312.${n}1`;
    const working = run(
      `(${sleepCommand} & ${sleepCommand}; :) & ${sleepCommand}; wait`,
      {},
      { abortSignal: controller.signal },
    );
    await waitForProcess(sleepCommand);
    controller.abort(reason);
    await expect(working).rejects.toBe(reason);
    expect(await remainingProcesses(sleepCommand)).toEqual([]);
    await expect(run('true', {}, { abortSignal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  }
});

verifies('toolbox.command', 'none of 200 commands aborted at different moments leaves a process running', async () => {
  for (const [n, options] of variants.entries()) {
    const { run } = commands(options);
    const reason = new Error('cancelled');
    const sleepCommand = `sleep 316.${n}1`;
    for (let i = 0; i < 100; i++) {
      const controller = new AbortController();
      const working = run(
        `${sleepCommand} & setsid ${sleepCommand} & ${sleepCommand}`,
        {},
        { abortSignal: controller.signal },
      );
      const rejected = expect(working).rejects.toBe(reason);
      await setTimeout(i % 25);
      controller.abort(reason);
      await rejected;
    }
    // Without a sandbox, a process that left the group is not killed.
    const remaining = await remainingProcesses(options.sandbox === 'off' ? `${sleepCommand} &` : sleepCommand);
    expect(remaining).toEqual([]);
    for (const pid of findProcesses(sleepCommand)) process.kill(pid, 'SIGKILL');
  }
});

verifies('toolbox.command', 'a background process neither survives its command nor delays it', async () => {
  for (const [n, options] of variants.entries()) {
    const { run } = commands(options);
    const sleepCommand = `sleep 313.${n}1`;
    const start = performance.now();
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        run(i % 2 === 0 ? `${sleepCommand} & echo done` : `${sleepCommand} >/dev/null 2>&1 & echo done`),
      ),
    );
    expect(results.every(({ exitCode, output }) => exitCode === 0 && output === 'done\n')).toBe(true);
    expect(performance.now() - start).toBeLessThan(15_000);
    expect(await remainingProcesses(sleepCommand)).toEqual([]);
  }
});

verifies('toolbox.command', 'a process that leaves its group does not survive the sandbox', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run } = commands({});
  const sleepCommand = 'sleep 314.1';
  expect(
    await run(`setsid ${sleepCommand} >/dev/null 2>&1 & setsid -f ${sleepCommand} >/dev/null 2>&1; echo done`),
  ).toMatchObject({
    output: 'done\n',
  });
  expect(await remainingProcesses(sleepCommand)).toEqual([]);
});

verifies('toolbox.command', 'the commands of a host are killed when its process ends', async () => {
  const built = new URL('../../../dist/adapters/toolbox/index.js', import.meta.url).href;
  for (const [n, options] of variants.entries()) {
    const { root } = createWorkspace();
    const sleepCommand = `sleep 315.${n}1`;
    const host = join(root, 'host.mjs');
    const input = JSON.stringify({ command: `${sleepCommand} & ${sleepCommand}` });
    writeFileSync(
      host,
      `import { toolbox } from ${JSON.stringify(built)};
      const { run_command } = toolbox({ roots: [${JSON.stringify(root)}], commands: ${JSON.stringify(options)} });
      void run_command.withApproval('always_allow').execute(${input}, { toolCallId: 'c', messages: [] });
      process.stdin.once('data', () => process.exit(3));`,
    );
    const child = spawn(process.execPath, [host], { stdio: ['pipe', 'ignore', 'ignore'] });
    const exit = once(child, 'exit');
    await waitForProcess(sleepCommand);
    expect(findProcesses(sleepCommand).length).toBeGreaterThan(0);
    // A sandboxed command ends even if the host is killed without a chance to clean up.
    if (options.sandbox === 'off') child.stdin.write('go');
    else child.kill('SIGKILL');
    await exit;
    expect(await remainingProcesses(sleepCommand)).toEqual([]);
  }
});

verifies('toolbox.command', 'a command does not inherit the environment of the host', async () => {
  process.env.RONDO_TEST_TOKEN = SECRET;
  try {
    for (const options of variants) {
      const { run } = commands({ ...options, env: { NODE_ENV: 'test', PATH_EXTRA: '/x y' } });
      const { output } = await run('env');
      const names = String(output)
        .trim()
        .split('\n')
        .map((line) => line.split('=')[0]);
      expect(names.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name ?? '')).sort()).toEqual([
        'HOME',
        'LANG',
        'NODE_ENV',
        'PATH',
        'PATH_EXTRA',
      ]);
      expect(output).not.toContain(SECRET);
      if (options.sandbox === 'off') continue;
      const parent = await run('tr "\\0" "\\n" < /proc/$PPID/environ; echo "$HOME"');
      expect(parent.output).toContain('NODE_ENV=test');
      expect(parent.output).not.toContain(`HOME=${homedir()}\n`);
    }
  } finally {
    delete process.env.RONDO_TEST_TOKEN;
  }
});

verifies('toolbox.command', 'a command can neither read nor change anything outside of the roots', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { run, root, outside } = commands({}, { 'in.txt': 'in\n' });
  symlinkSync(join(outside, 'secret.txt'), join(root, 'link'));
  expect(await run('cat in.txt; echo made > made.txt')).toMatchObject({ exitCode: 0, output: 'in\n' });
  expect(readFileSync(join(root, 'made.txt'), 'utf8')).toBe('made\n');
  const attempts = [
    `cat ${outside}/secret.txt`,
    'cat link',
    'cat ../outside/secret.txt',
    `echo x > ${outside}/new.txt`,
    'echo x > /new.txt',
    'echo x > /usr/new.txt',
    'echo x > /etc/passwd',
    `ls ${homedir()}/.ssh ${homedir()}/.npmrc ${homedir()}/.config`,
    'cat /etc/shadow',
    'ls /var/lib',
    'ls /run/dbus',
    'mount -o remount,rw /usr',
    'test -w /proc/sys/kernel/core_pattern',
    'test -w /proc/sysrq-trigger',
    'chroot / true',
    'mknod disk b 8 0',
    `kill -9 ${process.pid}`,
    `cat /proc/${process.pid}/environ`,
  ];
  for (const command of attempts) {
    const { exitCode, output } = await run(command);
    expect({ command, failed: exitCode !== 0, isLeaked: String(output).includes(SECRET) }).toEqual({
      command,
      failed: true,
      isLeaked: false,
    });
  }
  expect(existsSync(join(outside, 'new.txt'))).toBe(false);
  // The directories around the roots exist in the sandbox only; changes to them are lost.
  await run('echo x > ../new.txt; mkdir -p ../outside; echo x > ../outside/secret.txt');
  expect(existsSync(join(root, '../new.txt'))).toBe(false);
  expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe(`${SECRET}\n`);
  const { output } = await run('ls /; grep CapEff /proc/self/status; ls /proc | grep -c "^[0-9]"');
  expect(output).toMatch(/CapEff:\t0+\n/);
  expect(String(output).split('\n')).not.toContain('home');
});

verifies('toolbox.command', 'a command can use the network only if the options allow it', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  let hits = 0;
  const server = createServer((socket) => {
    hits += 1;
    socket.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const call = `node -e "require('net').connect(${port}, '127.0.0.1').on('connect', () => process.exit(0)).on('error', () => process.exit(7))"`;
  expect(await commands({}).run(call)).toMatchObject({ exitCode: 7 });
  expect(hits).toBe(0);
  expect(await commands({ network: true }).run(call)).toMatchObject({ exitCode: 0 });
  expect(hits).toBe(1);
  server.close();
});

verifies(
  'toolbox.command',
  'the sandbox contains Node, but not the home directory it is installed in',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    expect(await commands({}).run('node -p "1 + 1"')).toMatchObject({ exitCode: 0, output: '2\n' });
    const { root } = createWorkspace({
      'bin/node': '',
      'lib/node_modules/npm/bin/npm-cli.js': '',
      'bin/other': '',
      '.ssh/key': '',
    });
    const node = join(root, 'bin/node');
    const npm = join(root, 'lib/node_modules/npm');
    expect(nodeBindArgs(node).filter((part) => part.startsWith('/'))).toEqual([
      ...[node, node, npm, npm],
      ...[join(root, 'bin/npm'), join(root, 'bin/npx')],
    ]);
    expect(nodeBindArgs('/usr/bin/env')).toEqual([]);
  },
);

verifies('toolbox.command', 'without a working sandbox, a command runs only if the options allow it', async () => {
  const { root } = createWorkspace({
    broken: '#!/bin/sh\necho no permission\nexit 1\n',
    silent: '#!/bin/sh\nexit 0\n',
  });
  for (const name of ['none', 'broken', 'silent']) {
    const bubblewrap = join(root, name);
    if (name !== 'none') chmodSync(bubblewrap, 0o755);
    const required = commands({ bubblewrap });
    const message = await failure(required.run('echo ran > trace'));
    expect(message).toMatch(/^Nothing was run: commands need the sandbox bubblewrap, and .* Install it, or/);
    expect(message).toContain(name === 'none' ? 'is not installed' : 'does not work here');
    expect(existsSync(join(required.root, 'trace'))).toBe(false);
    const approval = required.box.run_command.requestApproval?.({ command: 'true' }, {});
    expect(await failure(Promise.resolve(approval))).toMatch(/^Nothing was run/);
    const preferred = commands({ bubblewrap, sandbox: 'preferred' });
    expect(await preferred.run('echo ran')).toMatchObject({ output: 'ran\n', sandboxed: false });
    expect(await preferred.box.run_command.requestApproval?.({ command: 'true' }, {})).toContain('WITHOUT a sandbox');
  }
});

verifies('toolbox.command', 'the error for an invalid directory or command states the reason', async () => {
  for (const options of variants) {
    const { run, root, outside } = commands(options);
    mkdirSync(join(root, 'dir'));
    symlinkSync(outside, join(root, 'out'));
    expect(await failure(run('pwd', { directory: '..' }))).toMatch(/is outside/);
    expect(await failure(run('pwd', { directory: 'out' }))).toMatch(/is outside/);
    expect(await failure(run('pwd', { directory: 'none' }))).toMatch(/does not exist/);
    expect(await failure(run('echo \0'))).toMatch(/NUL/);
    expect(await failure(run(''))).toMatch(/command: must have 1 to 20000 characters/);
    expect(await run('-x')).toMatchObject({ exitCode: 127 });
    expect(await run('no-such-program')).toMatchObject({
      exitCode: 127,
      output: expect.stringContaining('not found'),
    });
  }
});

verifies('toolbox.command', 'commands leave no listeners on the process or on their signal', async () => {
  const { run } = commands({ sandbox: 'off' });
  const before = process.listenerCount('exit');
  const controller = new AbortController();
  let listenerCount = 0;
  const countingSignal = new Proxy(controller.signal, {
    get(target, name) {
      if (name === 'addEventListener') listenerCount += 1;
      if (name === 'removeEventListener') listenerCount -= 1;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  await Promise.all(Array.from({ length: 6 }, () => run('true', {}, { abortSignal: countingSignal })));
  expect(listenerCount).toBe(0);
  expect(process.listenerCount('exit')).toBe(before);
});
