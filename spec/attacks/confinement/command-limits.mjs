// Commands that exceed a limit: processes, memory, file size, output or time. Each case bounds its own use. The note
// must name the limit, no process may remain, and the host must be able to run the next command.

import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';

const MB = 1024 * 1024;
const python = (code) => `python3 -c "${code}"`;
const smallMemory = { maxMemoryBytes: 256 * MB };
const fewProcesses = { maxProcesses: 20 };
const PROCESSES = /more than \d+ processes/;
const MEMORY = /more than .* of memory|cannot be monitored/;
const FILE = /larger than/;
const TIME = /killed after \d+ ms/;
const FLOOD = /printed too much/;

/** Python code that allocates and touches this many MiB. */
const fillMemory = (size) => `b = bytearray(${size} * 1048576)\nfor i in range(0, len(b), 4096): b[i] = 1\n`;
/** Python code that keeps the memory for three seconds and then prints KEPT. */
const KEEP = `import time; time.sleep(3); print('KEPT')`;

/** Python code that enters new user, mount and pid namespaces. */
const unshareNamespaces = `import ctypes, os, sys, time\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.unshare(0x10000000 | 0x20000 | 0x20000000))\n`;

/**
 * Command line, options, expectation and further input of each case. The expectation is a pattern of the note, the name
 * of another check in `checkLimit`, or undefined for a command that must succeed.
 */
const limitCases = {
  'processes.usual': ['for i in $(seq 400); do sleep 8 & done; sleep 8; echo KEPT', {}, PROCESSES],
  'processes.few': ['for i in $(seq 60); do sleep 8 & done; sleep 8; echo KEPT', fewProcesses, PROCESSES],
  'processes.sessions': ['for i in $(seq 60); do setsid sleep 8 & done; sleep 8; echo KEPT', fewProcesses, PROCESSES],
  'processes.chain': [
    python(`import os, time\nn = 0\nwhile n < 60 and os.fork() == 0: n += 1\ntime.sleep(6)`),
    fewProcesses,
    PROCESSES,
  ],
  'processes.storm': [python(`import os, time\nfor n in range(8): os.fork()\ntime.sleep(6)`), fewProcesses, PROCESSES],
  'processes.zombies': [
    python(`import os, time\nfor n in range(100):\n    if os.fork() == 0: os._exit(0)\ntime.sleep(6)`),
    fewProcesses,
    PROCESSES,
  ],
  'processes.namespace': [
    python(
      `${unshareNamespaces}if os.fork() == 0:\n    for n in range(60):\n        if os.fork() == 0: time.sleep(6); os._exit(0)\n    time.sleep(6)\nos.wait()`,
    ),
    fewProcesses,
    PROCESSES,
  ],
  'processes.stopped': [
    'for i in $(seq 60); do sh -c "kill -STOP \\$\\$" & done; sleep 6; echo KEPT',
    fewProcesses,
    PROCESSES,
  ],
  'processes.below': ['for i in $(seq 15); do sleep 1 & done; wait; echo fine', fewProcesses, undefined],
  'processes.threads': [
    python(
      `import threading, time\nfor i in range(300): threading.Thread(target=time.sleep, args=(2,)).start()\nprint('fine')`,
    ),
    {},
    undefined,
  ],
  'processes.one-after-the-other': ['for i in $(seq 300); do /bin/true; done; echo fine', fewProcesses, undefined],
  'memory.one': [python(`${fillMemory(600)}${KEEP}`), smallMemory, MEMORY],
  'memory.spread': [
    `for i in 1 2 3 4 5 6 7 8; do ${python(`${fillMemory(60)}${KEEP}`)} & done; wait`,
    smallMemory,
    MEMORY,
  ],
  'memory.after-fork': [
    python(
      `import os, time\n${fillMemory(100)}for n in range(4):\n    if os.fork() == 0:\n        for i in range(0, len(b), 4096): b[i] = 2\n        time.sleep(4); os._exit(0)\ntime.sleep(4); print('KEPT')`,
    ),
    smallMemory,
    MEMORY,
  ],
  'memory.shared-map': [
    python(`import mmap, time\nm = mmap.mmap(-1, 400 * 1048576)\nfor i in range(0, len(m), 4096): m[i] = 1\n${KEEP}`),
    smallMemory,
    MEMORY,
  ],
  'memory.tmp': ['head -c 400M /dev/zero > /tmp/f; sleep 3; echo KEPT', smallMemory, MEMORY],
  'memory.shm': ['head -c 400M /dev/zero > /dev/shm/f; sleep 3; echo KEPT', smallMemory, MEMORY],
  'memory.many-files': [
    'for i in $(seq 40); do head -c 10M /dev/zero > /tmp/f$i; done; sleep 3; echo KEPT',
    smallMemory,
    MEMORY,
  ],
  'memory.half-each': [`head -c 150M /dev/zero > /tmp/f; ${python(`${fillMemory(150)}${KEEP}`)}`, smallMemory, MEMORY],
  'memory.deleted-file': [
    'exec 5>/tmp/f; rm /tmp/f; head -c 400M /dev/zero >&5; sleep 3; echo KEPT',
    smallMemory,
    MEMORY,
  ],
  'memory.tmp-map': [
    python(
      `import mmap, os, time\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 400 << 20)\nm = mmap.mmap(f, 400 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\n${KEEP}`,
    ),
    smallMemory,
    MEMORY,
  ],
  'memory.undumpable': [
    python(`import ctypes\nctypes.CDLL(None).prctl(4, 0)\n${fillMemory(600)}${KEEP}`),
    smallMemory,
    MEMORY,
  ],
  'memory.locked-name': [
    python(`import ctypes\nctypes.CDLL(None).prctl(15, b'RssAnon: 0')\n${fillMemory(600)}${KEEP}`),
    smallMemory,
    MEMORY,
  ],
  'memory.nested-tmpfs': [
    python(
      `${unshareNamespaces}print(c.mount(b't', b'/tmp', b'tmpfs', 0, None))\nfor n in range(40): open('/tmp/f%d' % n, 'wb').write(bytes(10 << 20))\n${KEEP}`,
    ),
    smallMemory,
    'no KEPT',
  ],
  'memory.nested-ramfs': [
    python(
      `${unshareNamespaces}print(c.mount(b't', b'/dev/shm', b'ramfs', 0, None))\nfor n in range(40): open('/dev/shm/f%d' % n, 'wb').write(bytes(10 << 20))\n${KEEP}`,
    ),
    smallMemory,
    'no KEPT',
  ],
  'memory.bubbles': [
    python(
      `import os, time\n${fillMemory(200)}del b\nfor n in range(6):\n    b = bytearray(150 << 20); del b\nprint('fine')`,
    ),
    smallMemory,
    undefined,
  ],
  'memory.shared-by-many': [
    python(
      `import os, time\n${fillMemory(100)}for n in range(10):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\ntime.sleep(1.5); print('fine')`,
    ),
    smallMemory,
    undefined,
  ],
  'memory.sparse': ['truncate -s 900M /tmp/f; sleep 1; echo fine', smallMemory, undefined],
  'file.beyond': ['head -c 3M /dev/zero > big', { maxFileBytes: MB }, FILE],
  'file.exec': ['exec head -c 3M /dev/zero > big', { maxFileBytes: MB }, FILE],
  'file.sparse': [
    python(`import os; os.truncate(os.open('big', os.O_CREAT | os.O_RDWR), 3 << 20)`),
    { maxFileBytes: MB },
    'small',
  ],
  'file.seek': ['dd if=/dev/zero of=big bs=1 count=1 seek=3000000 2>&1', { maxFileBytes: MB }, 'small'],
  'file.fallocate': ['fallocate -l 3M big', { maxFileBytes: MB }, 'small'],
  'file.ignored-signal': [
    python(
      `import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nf = open('big', 'wb', 0)\nfor n in range(30): f.write(bytes(100000))`,
    ),
    { maxFileBytes: MB },
    'small',
  ],
  'file.raised': [
    'ulimit -f unlimited 2>&1; ulimit -H -f unlimited 2>&1; head -c 3M /dev/zero > big',
    { maxFileBytes: MB },
    'small',
  ],
  'file.prlimit': [
    'prlimit --fsize=unlimited --pid $$ 2>&1; head -c 3M /dev/zero > big',
    { maxFileBytes: MB },
    'small',
  ],
  'file.several-writers': [
    'for i in 1 2 3; do head -c 900K /dev/zero >> big & done; wait',
    { maxFileBytes: MB },
    'small',
  ],
  'file.tmp': ['head -c 3M /dev/zero > /tmp/big; stat -c "size %s" /tmp/big', { maxFileBytes: MB }, 'no size 3145728'],
  'file.shell-goes-on': ['head -c 3M /dev/zero > big; echo went on', { maxFileBytes: MB }, 'stated'],
  'file.core': [python(`import os; os.abort()`), {}, 'no core'],
  'output.flood': ['yes', {}, FLOOD],
  'output.flood-stderr': ['yes >&2', {}, FLOOD],
  'output.flood-without-lines': ['cat /dev/zero', {}, FLOOD],
  'output.flood-of-children': ['for i in 1 2 3 4; do yes $i & done; wait', {}, FLOOD],
  'output.below-flood': ['head -c 20M /dev/zero; echo fine', {}, undefined],
  'time.loop': ['while :; do :; done', { timeoutMs: 1000 }, TIME],
  'time.sleep': ['sleep 30', { timeoutMs: 1000 }, TIME],
  'time.ignored': ["trap '' TERM INT HUP; while :; do sleep 1; done", { timeoutMs: 1000 }, TIME],
  'time.stopped': ['kill -STOP $$', { timeoutMs: 1000 }, TIME],
  'time.drip': ['while :; do echo .; sleep 0.1; done', { timeoutMs: 1500 }, TIME],
  'time.background-holds-output': ['sleep 30 & echo fine', { timeoutMs: 4000 }, undefined],
  'time.all-signals-ignored': [
    python(
      `import signal, time\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ntime.sleep(30)`,
    ),
    { timeoutMs: 1000 },
    TIME,
  ],
  'time.asked-for-more': ['sleep 30', { timeoutMs: 1000 }, TIME, { timeoutSeconds: 3600 }],
  'time.asked-for-less': ['sleep 30', {}, TIME, { timeoutSeconds: 1 }],
  'time.processes-and-loop': [
    'for i in $(seq 10); do (while :; do :; done) & done; wait',
    { timeoutMs: 1500, ...fewProcesses },
    TIME,
  ],
};

/** Runs one command, checks its expectation, and runs another command afterwards. */
async function checkLimit(fixture, [line, commands, expected, input = {}]) {
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  const host = await fixture.host();
  const { ok, fault } = await host.command(line, { roots: [root], commands, input: { timeoutSeconds: 25, ...input } });
  expect(fault === undefined, 'a result', fault);
  const { note, output, ms } = ok;
  const result = { ...ok, output: output.slice(0, 300), streamed: undefined };
  if (expected instanceof RegExp) {
    expect(expected.test(note ?? ''), `a note that matches ${expected.source}`, result);
    expect(!output.includes('KEPT'), 'a command that was killed', result);
  }
  // A shell continues after its child was killed, and prints the reason.
  if (expected === 'stated')
    expect(/limit exceeded|larger than/.test(`${note} ${output}`), 'the limit in the note or the output', result);
  if (expected === undefined) expect(note === undefined && output.includes('fine'), 'a command that succeeds', result);
  if (expected === 'small') {
    const { size } = statSync(join(root, 'big'), { throwIfNoEntry: false }) ?? { size: 0 };
    expect(size <= MB, 'a file of 1 MiB at most', { size, ...result });
  }
  if (typeof expected === 'string' && expected.startsWith('no '))
    expect(!output.includes(expected.slice(3)), expected, result);
  if (expected === 'no core')
    expect(statSync(join(root, 'core'), { throwIfNoEntry: false }) === undefined, 'no core file', result);
  if (expected === TIME) expect(ms < 6000, 'an end within 6 seconds', result);
  expect(output.length < 80_000, 'less than 80,000 characters of output', output.length);
  const next = await host.command('echo alive', { roots: [root] });
  expect(next.ok?.output === 'alive\n', 'the next command to run', next);
}

export function cases() {
  return Object.entries(limitCases).map(([id, limitCase]) => ({
    id: `limits.${id}`,
    run: (fixture) => checkLimit(fixture, limitCase),
  }));
}
