// Attempts to escape from the sandbox: inherited descriptors, the environment, terminals, files outside of the roots,
// other processes, the network, and processes that outlive the command.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, sleep } from '../../support/store-attack.mjs';

/** The content of a file outside of all roots. */
const OUTSIDE = 'Xv3-outside-of-all-roots';

/** Creates a root, a file outside of it and a host process. */
async function setUp(fixture, options = {}) {
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  const outside = fixture.file('out/secret.txt', `${OUTSIDE}\n`);
  const host = await fixture.host(options);
  return { root, outside, host, roots: [root] };
}

/** Runs a command, which must run in the sandbox, and returns its result. */
const runSandboxed = async (host, line, options) => {
  const response = await host.command(line, { input: { timeoutSeconds: 30 }, ...options });
  expect(response.ok?.sandboxed === true, 'a command that ran in the sandbox', response);
  return response.ok;
};

/** A command cannot use a descriptor that the host process was started with. */
async function checkInheritedDescriptor(fixture, redirectFor, line) {
  const outside = fixture.file('out/secret.txt', `${OUTSIDE}\n`);
  fixture.file('w/.rondo/kept.txt', `${OUTSIDE}\n`);
  const redirect = redirectFor(fixture.folder);
  const host = await fixture.host({ as: ['bash', '-c', `exec "$@" ${redirect}`, 'bash'] });
  const { output } = await runSandboxed(host, line, { roots: [join(fixture.folder, 'w')] });
  expect(!output.includes(OUTSIDE), 'no access to a descriptor of the host process', output);
  const rows = (await runSandboxed(host, 'ls -l /proc/self/fd', { roots: [join(fixture.folder, 'w')] })).output;
  const extra = rows.split('\n').filter((row) => / (?:[4-9]|\d\d+) -> /.test(row) && /\/(?:out|w)(?:\/|$)/.test(row));
  expect(extra.length === 0, 'only descriptors of the command', extra);
  expect(readFileSync(outside, 'utf8') === `${OUTSIDE}\n`, 'an unchanged file outside', readFileSync(outside, 'utf8'));
}

/** Shell redirections that open a descriptor for the host process, and command lines that use it. */
const descriptors = {
  file: [(folder) => `9<${folder}/out/secret.txt`, 'cat <&9; cat /proc/self/fd/9'],
  writable: [(folder) => `9<>${folder}/out/secret.txt`, 'echo changed >&9; cat /proc/self/fd/9'],
  directory: [(folder) => `9<${folder}/out`, 'cat /proc/self/fd/9/secret.txt; ls /proc/self/fd/9/'],
  'directory-high': [(folder) => `77<${folder}/out`, 'cat /proc/self/fd/77/secret.txt'],
  'whole-machine': [
    () => '8</',
    'ls /proc/self/fd/8/ && cat /proc/self/fd/8/etc/hostname && echo Xv3-outside-of-all-roots',
  ],
  'data-directory': [
    (folder) => `7<${folder}/w/.rondo`,
    'cat /proc/self/fd/7/kept.txt; echo x > /proc/self/fd/7/planted',
  ],
};

/**
 * Command lines and a text that their output must not have. $O is a file outside of the roots, $R the root, $P the host
 * pid.
 */
const probes = {
  outside: ['cat "$O"; cat "$R/../out/secret.txt"; ls -la "$R/.."', OUTSIDE],
  'proc-root': ['cat "/proc/1/root$O" "/proc/self/root$O" /proc/*/root"$O" 2>&1', OUTSIDE],
  'proc-cwd': ['cat /proc/1/cwd/"$O" /proc/*/cwd/../out/secret.txt 2>&1', OUTSIDE],
  environment: ['env; cat /proc/*/environ | tr "\\0" "\\n"', 'Hn5-in-the-environment'],
  'environment-python': [
    'python3 -c "import os; print(os.environ); print(open(\'/proc/1/environ\').read())"',
    'Hn5-in-the-environment',
  ],
  'command-lines': ['cat /proc/*/cmdline | tr "\\0" "\\n"; ps axww 2>&1', 'Hn5-in-the-arguments'],
  'host-memory': [
    'for f in /proc/$P/mem /proc/kcore /dev/mem /dev/kmem /proc/$P/maps; do head -c 100 $f; done 2>&1; echo x',
    OUTSIDE,
  ],
  shadow: ['cat /etc/shadow /etc/ssh/* /root/.ssh/* /root/.bash_history 2>&1 | grep -v -e "No such" -e denied', ':'],
  homes: ['ls -A /root /home /var /run /srv /opt /mnt 2>/dev/null | grep -v ":$"', '\n'],
  'run-sockets': ['ls /run/*.sock /var/run/docker.sock /run/dbus/* 2>/dev/null', 'sock'],
  sys: ['ls /sys/class /sys/kernel/security 2>/dev/null', 'net'],
  dmesg: ['dmesg 2>/dev/null | head -5', 'Linux version'],
  'kernel-settings': [
    'echo 0 > /proc/sys/kernel/randomize_va_space && echo W-changed; echo b > /proc/sysrq-trigger && echo W-changed',
    'W-changed\n',
  ],
  devices: [
    'ls /dev | grep -e sd -e vd -e loop -e kvm -e mem; mknod /tmp/d b 254 0 && dd if=/tmp/d bs=512 count=1 | head -c 9 && echo D-read',
    'D-read',
  ],
  'set-user': [
    'cp /bin/sh /tmp/s && chmod 4755 /tmp/s && mount | grep " /tmp " | grep -q nosuid || echo S-suid',
    'S-suid',
  ],
  capabilities: [
    'grep -e CapEff -e CapBnd -e CapPrm -e CapAmb /proc/self/status | grep -v 0000000000000000 && echo C-some',
    'C-some',
  ],
  'new-privileges': ['grep NoNewPrivs /proc/self/status | grep -q 1 || echo N-allowed', 'N-allowed'],
  chroot: ["python3 -c \"import os; os.chroot('/tmp'); print('C-chroot')\" 2>&1", 'C-chroot'],
  hostname: ['hostname evil && echo H-set', 'H-set'],
  'set-time': ['date -s 2001-01-01 >/dev/null && echo T-set', 'T-set'],
  reboot: [
    'python3 -c "import ctypes; c = ctypes.CDLL(None); print(\'R-done\' if c.syscall(142, 0xfee1dead, 672274793, 0x89abcdef, 0) == 0 else 1)"',
    'R-done',
  ],
  'write-system': [
    'for d in / /usr /usr/bin /etc /bin /lib /proc /dev /var /opt; do touch $d/planted && echo "W-planted"; done 2>/dev/null',
    'W-planted',
  ],
  'write-above': ['touch "$R/../planted" && ls "$R/.." | grep -q planted && echo W-above', 'nothing'],
  'terminal-control': ["python3 -c \"import os; os.open('/dev/tty', os.O_RDWR); print('T-tty')\" 2>&1; tty", 'T-tty'],
  tiocsti: [
    `python3 -c "
import fcntl, os
for fd in range(0, 256):
    try: fcntl.ioctl(fd, 0x5412, b'x'); print('I-injected')
    except OSError: pass
for p in ('/dev/tty', '/dev/console', '/dev/pts/0', '/dev/pts/1'):
    try: fcntl.ioctl(os.open(p, os.O_RDWR), 0x5412, b'x'); print('I-injected')
    except OSError: pass
"`,
    'I-injected',
  ],
  'info-descriptor': ['for n in 3 4 5; do echo \'{ "child-pid": 1 }\' >&$n && echo W-info; done 2>/dev/null', 'W-info'],
  'user-namespace': ['unshare -Ur sh -c "id -u; mount -t tmpfs t /mnt && echo M-mounted" 2>&1', 'M-mounted'],
  bpf: [
    'python3 -c "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(\'B-map\' if c.syscall(280, 0, (ctypes.c_uint * 20)(2, 4, 4, 1), 72) >= 0 else 1)"',
    'B-map',
  ],
};

/** The output of the command does not have the text, and no file outside of the root changes. */
async function checkProbe(fixture, [line, mark]) {
  const env = { SOME_SECRET: 'Hn5-in-the-environment', NODE_OPTIONS: '--title=Hn5-in-the-arguments' };
  const { root, outside, host, roots } = await setUp(fixture, { env });
  const head = `O='${outside}' R='${root}' P=${host.pid}\n`;
  const { output } = await runSandboxed(host, head + line, { roots });
  expect(!output.includes(mark), `no ${JSON.stringify(mark)} in the output`, output);
  expect(!existsSync(join(root, '..', 'planted')), 'no new file beside the root', 'planted exists');
  expect(readFileSync(outside, 'utf8') === `${OUTSIDE}\n`, 'an unchanged file outside', 'it changed');
}

/** Commands that start a background process, which writes to the file `beat` until it ends. */
const backgroundCommands = {
  background: '(while :; do date +%s%N > "$R/beat"; sleep 0.05; done) & sleep 0.5',
  nohup: 'nohup sh -c "while :; do date +%s%N > $R/beat; sleep 0.05; done" >/dev/null 2>&1 & sleep 0.5',
  setsid: 'setsid sh -c "while :; do date +%s%N > $R/beat; sleep 0.05; done" >/dev/null 2>&1 & sleep 0.5',
  'double-fork': `python3 -c "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for n in range(3, 100):
            try: os.close(n)
            except OSError: pass
        while True: open('$R/beat', 'w').write(str(time.time())); time.sleep(0.05)
    os._exit(0)
time.sleep(0.5)"`,
  'ignores-signals': `python3 -c "
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    while True: open('$R/beat', 'w').write(str(time.time())); time.sleep(0.05)
time.sleep(0.5)"`,
};

/** True if `beat` is no longer written. */
async function hasStopped(root) {
  await sleep(400);
  const before = statSync(join(root, 'beat')).mtimeMs;
  await sleep(600);
  return statSync(join(root, 'beat')).mtimeMs === before;
}

/** A background process ends with its command, however the command ends. */
async function checkOutlive(fixture, line, ending) {
  const { root, host, roots } = await setUp(fixture);
  const text = `R='${root}'\n${line}`;
  if (ending === 'end') await runSandboxed(host, text, { roots });
  if (ending === 'timeout') {
    const { note } = await runSandboxed(host, `${text}\nsleep 60`, { roots, input: { timeoutSeconds: 1 } });
    expect(/killed after 1000 ms/.test(note ?? ''), 'a note about the time limit', note);
  }
  if (ending === 'abort') {
    const options = { roots, commands: {} };
    const response = await host.do('tool', {
      name: 'run_command',
      input: { command: `${text}\nsleep 60` },
      options,
      abortMs: 1500,
    });
    expect(response.fault !== undefined, 'an aborted call', response);
  }
  if (ending === 'host-killed') {
    host
      .do('tool', { name: 'run_command', input: { command: `${text}\nsleep 60` }, options: { roots } })
      .catch(() => undefined);
    await sleep(1500);
    host.child.kill('SIGKILL');
    await host.closed;
  }
  expect(existsSync(join(root, 'beat')), 'a started background process', 'beat does not exist');
  expect(await hasStopped(root), 'no running background process', 'it still writes');
}

/** A command without network access cannot connect to a listener of this machine. */
async function checkNoConnection(fixture, kind, line) {
  const { root, host, roots } = await setUp(fixture);
  let connections = 0;
  const server =
    kind === 'http'
      ? createHttp((_, response) => response.end(`reached ${++connections}`))
      : createServer(() => void connections++);
  const addresses = {
    http: { port: 0, host: '127.0.0.1' },
    abstract: { path: `\0ra-${process.pid}-${fixture.folder.slice(-6)}` },
    path: { path: join(fixture.folder, 'out.sock') },
  };
  await new Promise((resolve) => server.listen(addresses[kind], () => resolve(undefined)));
  fixture.atEnd(() => server.close());
  const name = kind === 'http' ? server.address().port : addresses[kind].path.replace('\0', '');
  await runSandboxed(host, line.replaceAll('$N', String(name)).replaceAll('$R', root), { roots });
  expect(connections === 0, 'no connection', `${connections} connections`);
}

/**
 * A command cannot create a vsock, a socket to the hypervisor. Vsocks belong to no network namespace, so a port that is
 * bound outside is in use in the sandbox too. The case sends nothing.
 */
async function checkNoVsock(fixture) {
  const { host, roots } = await setUp(fixture);
  const bind = 'import socket; s = socket.socket(socket.AF_VSOCK); s.bind((0xffffffff, 48123))';
  const outside = spawn('python3', [
    '-c',
    `${bind}; s.listen(); print('bound', flush=True); import time; time.sleep(30)`,
  ]);
  fixture.atEnd(() => outside.kill('SIGKILL'));
  const firstOutput = await new Promise((resolve) => {
    outside.stdout.once('data', (chunk) => resolve(String(chunk)));
    outside.once('close', () => resolve('none'));
  });
  if (!firstOutput.includes('bound')) throw new Error('skipped: this machine has no vsock');
  const { output } = await runSandboxed(host, `python3 -c "${bind}" 2>&1`, { roots });
  expect(
    /not supported|not permitted/.test(output),
    'no vsock in the sandbox',
    output === '' ? 'it was bound' : output,
  );
}

/** A command of a host process on a terminal cannot write to that terminal. */
async function checkTerminal(fixture) {
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  writeFileSync(
    join(fixture.folder, 'go.mjs'),
    `
import { toolbox } from '${import.meta.resolve('rondo/toolbox')}';
const { execute } = toolbox({ roots: ['${root}'] }).run_command.withApproval('always_allow');
const command = '(printf T-title > /dev/tty); python3 -c "\\nimport os\\nfor n in range(3, 256):\\n    try: os.write(n, b\\'T-direct\\')\\n    except OSError: pass"; echo end > out.txt';
await execute({ command }, { toolCallId: 'c', messages: [], onToolOutputDelta: () => undefined });
`,
  );
  const child = spawn(
    'script',
    ['-qfec', `${process.execPath} ${join(fixture.folder, 'go.mjs')} 77>&1 2>&1`, '/dev/null'],
    { env: process.env, stdio: ['pipe', 'pipe', 'inherit'] },
  );
  let terminalOutput = '';
  child.stdout.on('data', (chunk) => {
    terminalOutput += chunk;
  });
  await new Promise((resolve) => child.once('close', resolve));
  expect(existsSync(join(root, 'out.txt')), 'a command that ran', terminalOutput);
  expect(
    !terminalOutput.includes('T-title') && !terminalOutput.includes('T-direct'),
    'no output of the command on the terminal',
    terminalOutput,
  );
}

export function cases() {
  const list = [];
  const add = (id, run) => list.push({ id: `sandbox.${id}`, run });
  for (const [name, [redirectFor, line]] of Object.entries(descriptors))
    add(`descriptor.${name}`, (fixture) => checkInheritedDescriptor(fixture, redirectFor, line));
  for (const [name, probe] of Object.entries(probes)) add(`look.${name}`, (fixture) => checkProbe(fixture, probe));
  for (const [name, line] of Object.entries(backgroundCommands))
    for (const ending of ['end', 'timeout', 'abort', 'host-killed'])
      add(`outlive.${name}.${ending}`, (fixture) => checkOutlive(fixture, line, ending));
  const connect = (family, address) =>
    `python3 -c "import socket; s = socket.socket(${family}); s.settimeout(2); s.connect(${address}); s.send(b'GET / HTTP/1.0\\r\\n\\r\\n')" 2>&1`;
  add('network.loopback', (fixture) =>
    checkNoConnection(fixture, 'http', connect('socket.AF_INET', "('127.0.0.1', $N)")),
  );
  add('network.node', (fixture) =>
    checkNoConnection(fixture, 'http', `node -e "fetch('http://127.0.0.1:$N').catch(() => {})"`),
  );
  add('network.abstract', (fixture) =>
    checkNoConnection(fixture, 'abstract', connect('socket.AF_UNIX', "chr(0) + '$N'")),
  );
  add('network.path', (fixture) => checkNoConnection(fixture, 'path', connect('socket.AF_UNIX', "'$N'")));
  add('network.hypervisor', checkNoVsock);
  add('terminal.direct', checkTerminal);
  return list;
}
