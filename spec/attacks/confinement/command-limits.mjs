// Commands that take too much: processes, memory, files, output, time. Each is bounded by itself. The limit must be told in words,
// nothing may go on, and the host must be able to run the next command.

import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';

const MB = 1024 * 1024;
const python = (code) => `python3 -c "${code}"`;
const small = { maxMemoryBytes: 256 * MB };
const few = { maxProcesses: 20 };
const PROCESSES = /more than \d+ processes/;
const MEMORY = /more than .* of memory|cannot be monitored/;
const FILE = /larger than/;
const TIME = /killed after \d+ ms/;
const FLOOD = /printed too much/;

/** Fills memory, keeps it for some seconds, and says so at the end. */
const hold = (size) => `b = bytearray(${size} * 1048576)\nfor i in range(0, len(b), 4096): b[i] = 1\n`;
const END = `import time; time.sleep(3); print('KEPT')`;

const unshared = `import ctypes, os, sys, time\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.unshare(0x10000000 | 0x20000 | 0x20000000))\n`;

/** Name, command line, options, and what the note must say; without a note the command must succeed. */
const all = {
  'processes.usual': ['for i in $(seq 400); do sleep 8 & done; sleep 8; echo KEPT', {}, PROCESSES],
  'processes.few': ['for i in $(seq 60); do sleep 8 & done; sleep 8; echo KEPT', few, PROCESSES],
  'processes.sessions': ['for i in $(seq 60); do setsid sleep 8 & done; sleep 8; echo KEPT', few, PROCESSES],
  'processes.chain': [
    python(`import os, time\nn = 0\nwhile n < 60 and os.fork() == 0: n += 1\ntime.sleep(6)`),
    few,
    PROCESSES,
  ],
  'processes.storm': [python(`import os, time\nfor n in range(8): os.fork()\ntime.sleep(6)`), few, PROCESSES],
  'processes.zombies': [
    python(`import os, time\nfor n in range(100):\n    if os.fork() == 0: os._exit(0)\ntime.sleep(6)`),
    few,
    PROCESSES,
  ],
  'processes.namespace': [
    python(
      `${unshared}if os.fork() == 0:\n    for n in range(60):\n        if os.fork() == 0: time.sleep(6); os._exit(0)\n    time.sleep(6)\nos.wait()`,
    ),
    few,
    PROCESSES,
  ],
  'processes.stopped': ['for i in $(seq 60); do sh -c "kill -STOP \\$\\$" & done; sleep 6; echo KEPT', few, PROCESSES],
  'processes.below': ['for i in $(seq 15); do sleep 1 & done; wait; echo fine', few, undefined],
  'processes.threads': [
    python(
      `import threading, time\nfor i in range(300): threading.Thread(target=time.sleep, args=(2,)).start()\nprint('fine')`,
    ),
    {},
    undefined,
  ],
  'processes.one-after-the-other': ['for i in $(seq 300); do /bin/true; done; echo fine', few, undefined],
  'memory.one': [python(`${hold(600)}${END}`), small, MEMORY],
  'memory.spread': [`for i in 1 2 3 4 5 6 7 8; do ${python(`${hold(60)}${END}`)} & done; wait`, small, MEMORY],
  'memory.after-fork': [
    python(
      `import os, time\n${hold(100)}for n in range(4):\n    if os.fork() == 0:\n        for i in range(0, len(b), 4096): b[i] = 2\n        time.sleep(4); os._exit(0)\ntime.sleep(4); print('KEPT')`,
    ),
    small,
    MEMORY,
  ],
  'memory.shared-map': [
    python(`import mmap, time\nm = mmap.mmap(-1, 400 * 1048576)\nfor i in range(0, len(m), 4096): m[i] = 1\n${END}`),
    small,
    MEMORY,
  ],
  'memory.tmp': ['head -c 400M /dev/zero > /tmp/f; sleep 3; echo KEPT', small, MEMORY],
  'memory.shm': ['head -c 400M /dev/zero > /dev/shm/f; sleep 3; echo KEPT', small, MEMORY],
  'memory.many-files': [
    'for i in $(seq 40); do head -c 10M /dev/zero > /tmp/f$i; done; sleep 3; echo KEPT',
    small,
    MEMORY,
  ],
  'memory.half-each': [`head -c 150M /dev/zero > /tmp/f; ${python(`${hold(150)}${END}`)}`, small, MEMORY],
  'memory.deleted-file': ['exec 5>/tmp/f; rm /tmp/f; head -c 400M /dev/zero >&5; sleep 3; echo KEPT', small, MEMORY],
  'memory.tmp-map': [
    python(
      `import mmap, os, time\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 400 << 20)\nm = mmap.mmap(f, 400 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\n${END}`,
    ),
    small,
    MEMORY,
  ],
  'memory.undumpable': [python(`import ctypes\nctypes.CDLL(None).prctl(4, 0)\n${hold(600)}${END}`), small, MEMORY],
  'memory.locked-name': [
    python(`import ctypes\nctypes.CDLL(None).prctl(15, b'RssAnon: 0')\n${hold(600)}${END}`),
    small,
    MEMORY,
  ],
  'memory.nested-tmpfs': [
    python(
      `${unshared}print(c.mount(b't', b'/tmp', b'tmpfs', 0, None))\nfor n in range(40): open('/tmp/f%d' % n, 'wb').write(bytes(10 << 20))\n${END}`,
    ),
    small,
    'no KEPT',
  ],
  'memory.nested-ramfs': [
    python(
      `${unshared}print(c.mount(b't', b'/dev/shm', b'ramfs', 0, None))\nfor n in range(40): open('/dev/shm/f%d' % n, 'wb').write(bytes(10 << 20))\n${END}`,
    ),
    small,
    'no KEPT',
  ],
  'memory.bubbles': [
    python(
      `import os, time\n${hold(200)}del b\nfor n in range(6):\n    b = bytearray(150 << 20); del b\nprint('fine')`,
    ),
    small,
    undefined,
  ],
  'memory.shared-by-many': [
    python(
      `import os, time\n${hold(100)}for n in range(10):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\ntime.sleep(1.5); print('fine')`,
    ),
    small,
    undefined,
  ],
  'memory.sparse': ['truncate -s 900M /tmp/f; sleep 1; echo fine', small, undefined],
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
  'file.shell-goes-on': ['head -c 3M /dev/zero > big; echo went on', { maxFileBytes: MB }, 'told'],
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
    { timeoutMs: 1500, ...few },
    TIME,
  ],
};

async function taken(fixture, [line, commands, expected, input = {}]) {
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  const host = await fixture.host();
  const { ok, fault } = await host.command(line, { roots: [root], commands, input: { timeoutSeconds: 25, ...input } });
  expect(fault === undefined, 'a result', fault);
  const { note, output, ms } = ok;
  const told = { ...ok, output: output.slice(0, 300), streamed: undefined };
  if (expected instanceof RegExp) {
    expect(expected.test(note ?? ''), `a note that says ${expected.source}`, told);
    expect(!output.includes('KEPT'), 'that it was ended', told);
  }
  // A shell whose child was ended goes on, and says what became of it.
  if (expected === 'told') expect(/limit exceeded|larger than/.test(`${note} ${output}`), 'the limit in words', told);
  if (expected === undefined) expect(note === undefined && output.includes('fine'), 'a command that may go on', told);
  if (expected === 'small') {
    const { size } = statSync(join(root, 'big'), { throwIfNoEntry: false }) ?? { size: 0 };
    expect(size <= MB, 'a file of 1 MiB at most', { size, ...told });
  }
  if (typeof expected === 'string' && expected.startsWith('no '))
    expect(!output.includes(expected.slice(3)), expected, told);
  if (expected === 'no core')
    expect(statSync(join(root, 'core'), { throwIfNoEntry: false }) === undefined, 'no core file', told);
  if (expected === TIME) expect(ms < 6000, 'an end in time', told);
  expect(output.length < 80_000, 'a bounded output', output.length);
  const next = await host.command('echo alive', { roots: [root] });
  expect(next.ok?.output === 'alive\n', 'the next command to run', next);
}

export function cases() {
  return Object.entries(all).map(([id, one]) => ({ id: `limits.${id}`, run: (fixture) => taken(fixture, one) }));
}
