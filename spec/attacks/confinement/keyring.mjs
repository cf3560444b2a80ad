// Sandboxed commands that try to read, list, link, add or request keys of the operator, with every system call and
// through every keyring.

import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';
import { runProgram } from './fixture.mjs';

/** The numbers of the system calls add_key, request_key and keyctl. */
const NUMBERS =
  process.arch === 'x64' ? { add: 248, request: 249, control: 250 } : { add: 217, request: 218, control: 219 };

/** Python definitions that every program starts with. */
const prelude = `
import ctypes, os, sys
c = ctypes.CDLL(None, use_errno=True)
ADD, REQUEST, CONTROL = ${NUMBERS.add}, ${NUMBERS.request}, ${NUMBERS.control}
S = lambda n: ctypes.c_long(n)
def call(*a):
    ctypes.set_errno(0)
    r = c.syscall(*a)
    return r
`;

/** A Python program that adds a key with a secret to the session and user keyrings, then executes another program. */
const keyAdder = `${prelude}
call(CONTROL, S(1), None)
for ring in (-3, -4):
    key = call(ADD, b'user', sys.argv[1].encode(), sys.argv[2].encode(), ctypes.c_size_t(len(sys.argv[2])), S(ring))
    call(CONTROL, S(15), S(key), ctypes.c_uint(90))
    print('key', key, file=sys.stderr)
call(CONTROL, S(5), S(call(CONTROL, S(10), S(-3), b'user', sys.argv[1].encode(), S(0))), ctypes.c_uint(0x3f3f3f3f))
os.execvp(sys.argv[3], sys.argv[3:])
`;

const RINGS = { thread: -1, process: -2, session: -3, user: -4, 'user-session': -5 };
/** A Python function that reads a key. */
const readFunction = `
def read(key):
    b = ctypes.create_string_buffer(4096)
    n = call(CONTROL, S(11), S(key), b, ctypes.c_size_t(4096))
    return b.raw[:max(0, min(n, 4096))]
`;

/** Python programs that print GOT and the result of a call. NAME is the description of the key. */
const attempts = {
  request: `print('GOT', call(REQUEST, b'user', b'NAME', None, S(0)))`,
  'request-callout': `print('GOT', call(REQUEST, b'user', b'NAME', b'x', S(-3)))`,
  'join-new': `print('GOT', call(CONTROL, S(1), b'mine'))`,
  'session-to-parent': `print('GOT', call(CONTROL, S(18)))`,
  persistent: `print('GOT', call(CONTROL, S(22), S(-1), S(-3)))`,
  capabilities: `b = ctypes.create_string_buffer(64); print('GOT', call(CONTROL, S(31), b, ctypes.c_size_t(64)))`,
  'high-half': `print('GOT', call(S(CONTROL | (1 << 32)), S(0), S(-3), S(0)))`,
  'by-numbers': `${readFunction}
for key in range(1, 3000): read(key)
print('none' if all(not read(key) for key in range(-8, 0)) else 'GOT')`,
  'proc-keys': `print(open('/proc/keys').read(), open('/proc/key-users').read())`,
  'proc-keys-of-others': `
for p in ('/proc/1/root/proc/keys', '/proc/self/root/proc/keys', '/proc/thread-self/../../../keys'):
    try: print(open(p).read())
    except OSError as e: print(e)`,
  'in-child': `
if os.fork() == 0: print('GOT', call(CONTROL, S(0), S(-3), S(0))); sys.stdout.flush(); os._exit(0)
os.wait()`,
  'in-thread': `
import threading
t = threading.Thread(target=lambda: print('GOT', call(CONTROL, S(0), S(-3), S(0)))); t.start(); t.join()`,
  'in-namespace': `c.unshare(0x10000000); print('GOT', call(CONTROL, S(0), S(-4), S(0)), call(CONTROL, S(10), S(-3), b'user', b'NAME', S(0)))`,
  'after-exec': `os.execvp('python3', ['python3', '-c', 'import ctypes; print(chr(71) + "OT", ctypes.CDLL(None).syscall(%d, ctypes.c_long(0), ctypes.c_long(-3), ctypes.c_long(0)))' % CONTROL])`,
};

for (const [name, ring] of Object.entries(RINGS)) {
  attempts[`id-${name}`] = `print('GOT', call(CONTROL, S(0), S(${ring}), S(0)))`;
  attempts[`read-${name}`] = `${readFunction}print('GOT' if read(${ring}) else 'nothing')`;
  attempts[`search-${name}`] = `${readFunction}
k = call(CONTROL, S(10), S(${ring}), b'user', b'NAME', S(0)); print('GOT', k, read(k))`;
  attempts[`add-${name}`] = `print('GOT', call(ADD, b'user', b'planted', b'x', ctypes.c_size_t(1), S(${ring})))`;
  attempts[`clear-${name}`] = `print('GOT', call(CONTROL, S(7), S(${ring})))`;
}

/** The sandbox denies each call. No key is disclosed or added. */
async function checkDenied(fixture, code, commands = {}) {
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  const name = `ra-${process.pid}-${fixture.folder.slice(-6)}`;
  const secret = `Ky4-secret-of-${name}`;
  const adder = fixture.file('add-key.py', keyAdder);
  const host = await fixture.host({ as: ['python3', adder, name, secret] });
  const script = fixture.file('w/try.py', `${prelude}${code.replaceAll('NAME', name)}\n`);
  chmodSync(script, 0o755);
  const { ok } = await host.command('/usr/bin/python3 try.py 2>&1', { roots: [root], commands });
  expect(ok?.sandboxed === true, 'a command that ran in the sandbox', ok);
  expect(!ok.output.includes(secret) && !ok.output.includes(name), 'no secret and no name of the key', ok.output);
  const results = [...ok.output.matchAll(/GOT (-?\d+)/g)].map(([, n]) => Number(n));
  expect(results.every((n) => n < 0) && !/GOT(?! -)/.test(ok.output), 'each call to fail', ok.output);
  const after = await runProgram('python3', ['-c', `${prelude}print(open('/proc/keys').read())`], { env: process.env });
  expect(!after.stdout.includes('planted'), 'no new key', after.stdout);
}

/** Outside of the sandbox the same program reads the key, so that the other cases are meaningful. */
async function checkUnconfined(fixture) {
  const name = `ra-${process.pid}-${fixture.folder.slice(-6)}`;
  const adder = fixture.file('add-key.py', keyAdder);
  const code = `${prelude}${attempts['search-session'].replaceAll('NAME', name)}`;
  const { stdout } = await runProgram('python3', [adder, name, 'Ky4-readable', 'python3', '-c', code], {
    env: process.env,
  });
  if (!stdout.includes('Ky4-readable')) throw new Error(`skipped: this machine has no keyrings (${stdout})`);
}

/**
 * Returns an ELF program for 32-bit ARM or x86, whose system calls have other numbers. It exits with code 77 if the
 * call succeeds.
 */
function foreignProgram() {
  const isArm = process.arch === 'arm64';
  // keyctl(GET_KEYRING_ID, SESSION, 0); exit(result < 0 ? 1 : 77)
  const arm = [
    0xe3a00000, 0xe3e01002, 0xe3a02000, 0xe3007137, 0xef000000, 0xe3500000, 0xb3a00001, 0xa3a0004d, 0xe3a07001,
    0xef000000,
  ];
  const x86 = [0xb8, 0x20, 1, 0, 0, 0x31, 0xdb, 0xb9, 0xfd, 0xff, 0xff, 0xff, 0x31, 0xd2, 0xcd, 0x80].concat([
    0xbb, 1, 0, 0, 0, 0x85, 0xc0, 0x78, 5, 0xbb, 77, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xcd, 0x80,
  ]);
  const code = isArm ? Buffer.from(new Uint32Array(arm).buffer) : Buffer.from(x86);
  const header = Buffer.alloc(84);
  header[0] = 0x7f;
  header.write('ELF', 1, 'latin1');
  header.set([1, 1, 1], 4);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(isArm ? 40 : 3, 18);
  header.writeUInt32LE(1, 20);
  header.writeUInt32LE(0x10054, 24);
  header.writeUInt32LE(52, 28);
  header.writeUInt32LE(isArm ? 0x05000000 : 0, 36);
  header.writeUInt16LE(52, 40);
  header.writeUInt16LE(32, 42);
  header.writeUInt16LE(1, 44);
  for (const [n, value] of [1, 0, 0x10000, 0x10000, 84 + code.length, 84 + code.length, 5, 0x1000].entries())
    header.writeUInt32LE(value, 52 + 4 * n);
  return Buffer.concat([header, code]);
}

/** A program for another architecture cannot call keyctl. */
async function checkForeignArchitecture(fixture) {
  const root = join(fixture.folder, 'w');
  mkdirSync(root);
  const file = fixture.file('w/foreign', foreignProgram());
  chmodSync(file, 0o755);
  const host = await fixture.host();
  const { ok } = await host.command('./foreign; echo "code $?"', { roots: [root] });
  expect(!ok.output.includes('code 77'), 'no successful call', ok.output);
}

export function cases() {
  const list = Object.entries(attempts).map(([name, code]) => ({
    id: `keyring.${name}`,
    run: (fixture) => checkDenied(fixture, code),
  }));
  list.push({
    id: 'keyring.with-network',
    run: (fixture) => checkDenied(fixture, attempts['search-session'], { network: true }),
  });
  list.push(
    { id: 'keyring.control', run: checkUnconfined },
    { id: 'keyring.foreign-architecture', run: checkForeignArchitecture },
  );
  return list;
}
