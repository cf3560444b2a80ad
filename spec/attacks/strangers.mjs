// Strangers at the socket: a peer that does not know the secret receives a random number and nothing else.

import { connect } from 'node:net';
import { expect, sleep, within } from '../support/store-attack.mjs';
import { nonce, proofOf, SharedOwner, Wire } from './wire.mjs';

const shared = new SharedOwner();
const N = '0123456789abcdef0123456789abcdef';
const P = 'ab'.repeat(32);

/** Replies to a greeting that prove nothing. Each gets the owner's nonce, the secret, and a proof seen before. */
const forged = {
  'empty-object': () => ({}),
  null: () => 'null\n',
  array: () => '[]\n',
  number: () => '7\n',
  text: () => '"proof"\n',
  'no-nonce': ({ good }) => ({ proof: good.proof }),
  'no-proof': () => ({ nonce: N }),
  'wrong-proof': () => ({ nonce: N, proof: P }),
  'zero-proof': () => ({ nonce: N, proof: '0'.repeat(64) }),
  'empty-proof': () => ({ nonce: N, proof: '' }),
  'role-owner': ({ secret, theirs }) => ({ nonce: N, proof: proofOf(secret, 'owner', theirs, N) }),
  'nonces-swapped': ({ secret, theirs }) => ({ nonce: N, proof: proofOf(secret, 'client', N, theirs) }),
  'nonce-own-twice': ({ secret }) => ({ nonce: N, proof: proofOf(secret, 'client', N, N) }),
  'nonce-theirs-twice': ({ secret, theirs }) => ({ nonce: N, proof: proofOf(secret, 'client', theirs, theirs) }),
  'other-secret': ({ theirs }) => ({ nonce: N, proof: proofOf('cd'.repeat(32), 'client', theirs, N) }),
  'empty-secret': ({ theirs }) => ({ nonce: N, proof: proofOf('', 'client', theirs, N) }),
  'secret-as-proof': ({ secret }) => ({ nonce: N, proof: secret }),
  replay: ({ before }) => before,
  reflection: ({ greeting }) => greeting,
  'reflected-with-proof': ({ greeting }) => ({ ...greeting, proof: greeting.nonce }),
  'nonce-upper': ({ good }) => ({ ...good, nonce: good.nonce.toUpperCase().replace(/^./, 'A') }),
  'nonce-short': ({ secret, theirs }) => ({ nonce: 'ab', proof: proofOf(secret, 'client', theirs, 'ab') }),
  'nonce-long': ({ secret, theirs }) => ({ nonce: N + N, proof: proofOf(secret, 'client', theirs, N + N) }),
  'nonce-empty': ({ secret, theirs }) => ({ nonce: '', proof: proofOf(secret, 'client', theirs, '') }),
  'nonce-newline': ({ secret, theirs }) => ({ nonce: `${N}\n`, proof: proofOf(secret, 'client', theirs, `${N}\n`) }),
  'nonce-list': ({ good }) => ({ ...good, nonce: [good.nonce] }),
  'nonce-number': ({ secret, theirs }) => ({ nonce: 12, proof: proofOf(secret, 'client', theirs, '12') }),
  'nonce-object': ({ good }) => ({ ...good, nonce: { toString: good.nonce } }),
  'proof-upper': ({ good }) => ({ ...good, proof: `${good.proof.toUpperCase().slice(0, -1)}G` }),
  'proof-list': ({ good }) => ({ ...good, proof: [good.proof] }),
  'proof-wide': ({ good }) => ({ ...good, proof: 'é'.repeat(64) }),
  'proof-surrogates': ({ good }) => ({ ...good, proof: '\ud800'.repeat(64) }),
  'proof-with-space': ({ good }) => ({ ...good, proof: `${good.proof} ` }),
  'proof-zero-byte': ({ good }) => ({ ...good, proof: `${good.proof.slice(0, -1)}\0` }),
  'proof-true': ({ good }) => ({ ...good, proof: true }),
  'in-proto': ({ good }) => `{"__proto__":${JSON.stringify(good)}}\n`,
  nested: ({ good }) => ({ greeting: good }),
  'in-array': ({ good }) => [good],
  'two-proofs': ({ good }) => `{"nonce":"${N}","proof":"${good.proof}","proof":"${P}"}\n`,
};
for (let cut = 0; cut < 64; cut += 7)
  forged[`proof-cut-${cut}`] = ({ good }) => ({ ...good, proof: good.proof.slice(0, cut) });
for (let bit = 0; bit < 64; bit += 9) {
  forged[`proof-digit-${bit}`] = ({ good }) => {
    const digits = [...good.proof];
    digits[bit] = digits[bit] === '0' ? '1' : '0';
    return { ...good, proof: digits.join('') };
  };
}

/** Bytes that are sent without waiting for anything. */
const raw = {
  'request-list': '{"i":1,"op":"list"}\n',
  'request-hello': '{"i":1,"op":"hello","id":"x","process":{"pid":1,"start":""},"held":[]}\n',
  'request-remove': '{"i":1,"op":"remove","session":"honest-owner"}\n',
  'answer-never-asked': '{"a":1,"ok":{"status":"answered","value":1}}\n',
  http: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  'http-post': 'POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}',
  tls: Buffer.from('16030100c8010000c40303', 'hex'),
  'bytes-ff': Buffer.alloc(4000, 0xff),
  'zero-bytes': Buffer.alloc(4000),
  'bad-utf8': Buffer.from([0xc3, 0x28, 0x0a, 0xed, 0xa0, 0x80, 0x0a]),
  bom: `\ufeff{"nonce":"${N}","proof":"${P}"}\n`,
  crlf: `{"nonce":"${N}","proof":"${P}"}\r\n`,
  'empty-lines': '\n\n\n\n\n',
  'line-1001': `{"nonce":"${'a'.repeat(1001)}"}\n`,
  'line-1MB': `${'x'.repeat(1 << 20)}\n`,
  'no-line-16MB': 'x'.repeat(16 << 20),
  'deep-json': `${'['.repeat(900)}\n`,
  'open-brace': '{',
  'many-lines': '{}\n'.repeat(5000),
  'many-requests': '{"i":1,"op":"list"}\n'.repeat(200),
  'version-first': '{"rondo":1,"nonce":"00000000000000000000000000000000"}\n',
};

/** Nothing but the greeting was ever said. @param {Wire} wire */
function assertSilent(wire) {
  const said = wire.said.split('\n').filter((line) => line !== '');
  const keys = said.map((line) => Object.keys(JSON.parse(line)).join(','));
  expect(said.length <= 1 && keys.every((key) => key === 'rondo,nonce'), 'a greeting and nothing else', said);
}

/** @param {(given: any) => unknown} forge */
async function forgery(forge) {
  const { record } = await shared.get();
  const { socket, secret } = record;
  const seen = await Wire.to(socket);
  const { nonce: earlier } = await seen.next();
  const own = nonce();
  const before = { nonce: own, proof: proofOf(secret, 'client', earlier, own) };
  seen.send(before);
  await seen.next();
  const wire = await Wire.to(socket);
  const greeting = await wire.next();
  const good = { nonce: N, proof: proofOf(secret, 'client', greeting.nonce, N) };
  wire.send(forge({ good, secret, before, greeting, theirs: greeting.nonce }));
  wire.send('{"i":1,"op":"list"}\n');
  await within(wire.closed, 3000, 'the connection to be cut');
  assertSilent(wire);
  seen.socket.destroy();
  await shared.assertWell();
}

/** @param {string | Buffer} bytes */
async function rawBytes(bytes) {
  const { record } = await shared.get();
  const wire = await Wire.to(record.socket);
  wire.send(bytes);
  await Promise.race([wire.closed, sleep(150)]);
  assertSilent(wire);
  wire.socket.destroy();
  await shared.assertWell();
}

/** @param {number} count @param {(socket: import('node:net').Socket) => void} act */
async function crowd(count, act) {
  const { record, client, path } = await shared.get();
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ path: record.socket });
    socket.on('error', () => undefined);
    socket.on('connect', () => act(socket));
    return socket;
  });
  await sleep(50);
  const opened = await client.must('open', { path, store: 'other' }, 5000);
  expect(opened.owner.here === false, 'another client to get in', opened);
  await client.must('close', { store: 'other' });
  await shared.assertWell();
  for (const socket of sockets) socket.destroy();
}

/** Strangers that come again and again, while a client wants in. @param {number} width */
async function flood(width) {
  const { record, client, path } = await shared.get();
  let going = true;
  const again = () => {
    if (!going) return;
    const socket = connect({ path: record.socket });
    socket.on('error', () => undefined);
    socket.once('data', () => socket.destroy());
    socket.on('close', () => setImmediate(again));
  };
  for (let n = 0; n < width; n++) again();
  try {
    for (let n = 0; n < 3; n++) {
      await client.must('open', { path, store: `f${n}` });
      await client.must('close', { store: `f${n}` });
    }
  } finally {
    going = false;
  }
  await sleep(50);
  await shared.assertWell();
}

const crowds = {
  'silent-30': () => crowd(30, () => {}),
  'silent-64': () => crowd(64, () => {}),
  'silent-65': () => crowd(65, () => {}),
  'silent-200': () => crowd(200, () => {}),
  'silent-600': () => crowd(600, () => {}),
  'half-closed-100': () => crowd(100, (socket) => socket.end()),
  'reset-300': () => crowd(300, (socket) => socket.destroy()),
  'paused-100': () => crowd(100, (socket) => socket.pause()),
  'half-a-line-100': () => crowd(100, (socket) => socket.write('{"nonce":"')),
  'byte-by-byte-50': () =>
    crowd(50, (socket) => {
      const timer = setInterval(() => socket.writable && socket.write('x'), 5);
      socket.on('close', () => clearInterval(timer));
    }),
  'flood-1': () => flood(1),
  'flood-8': () => flood(8),
  'flood-40': () => flood(40),
};

/** A stranger that says nothing is not kept for ever. */
async function longSilence() {
  const { record } = await new SharedOwner().get();
  const wire = await Wire.to(record.socket);
  await within(wire.closed, 12_000, 'a silent stranger to be cut off');
  assertSilent(wire);
}

export function cases() {
  return [
    ...Object.entries(forged).map(([name, forge]) => ({ id: `socket.forged.${name}`, run: () => forgery(forge) })),
    ...Object.entries(raw).map(([name, bytes]) => ({ id: `socket.raw.${name}`, run: () => rawBytes(bytes) })),
    ...Object.entries(crowds).map(([name, run]) => ({ id: `socket.crowd.${name}`, run })),
    { id: 'socket.crowd.long-silence', run: longSilence, waits: true },
  ];
}
