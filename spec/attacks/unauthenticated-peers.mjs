// Unauthenticated peers at the socket: a peer without the secret receives the greeting with a nonce, and nothing else.

import { connect } from 'node:net';
import { expect, sleep, within } from '../support/store-attack.mjs';
import { nonce, proofOf, SharedOwner, VERSION, Wire } from './wire.mjs';

const shared = new SharedOwner();
const NONCE = '0123456789abcdef0123456789abcdef';
const PROOF = 'ab'.repeat(32);

/** Invalid replies to the greeting. Each function receives the owner's nonce, the secret and an earlier valid reply. */
const forgedReplies = {
  'empty-object': () => ({}),
  null: () => 'null\n',
  array: () => '[]\n',
  number: () => '7\n',
  text: () => '"proof"\n',
  'no-nonce': ({ good }) => ({ proof: good.proof }),
  'no-proof': () => ({ nonce: NONCE }),
  'wrong-proof': () => ({ nonce: NONCE, proof: PROOF }),
  'zero-proof': () => ({ nonce: NONCE, proof: '0'.repeat(64) }),
  'empty-proof': () => ({ nonce: NONCE, proof: '' }),
  'role-owner': ({ secret, ownerNonce }) => ({ nonce: NONCE, proof: proofOf(secret, 'owner', ownerNonce, NONCE) }),
  'nonces-swapped': ({ secret, ownerNonce }) => ({ nonce: NONCE, proof: proofOf(secret, 'client', NONCE, ownerNonce) }),
  'nonce-own-twice': ({ secret }) => ({ nonce: NONCE, proof: proofOf(secret, 'client', NONCE, NONCE) }),
  'nonce-theirs-twice': ({ secret, ownerNonce }) => ({
    nonce: NONCE,
    proof: proofOf(secret, 'client', ownerNonce, ownerNonce),
  }),
  'other-secret': ({ ownerNonce }) => ({ nonce: NONCE, proof: proofOf('cd'.repeat(32), 'client', ownerNonce, NONCE) }),
  'empty-secret': ({ ownerNonce }) => ({ nonce: NONCE, proof: proofOf('', 'client', ownerNonce, NONCE) }),
  'secret-as-proof': ({ secret }) => ({ nonce: NONCE, proof: secret }),
  replay: ({ earlierReply }) => earlierReply,
  reflection: ({ greeting }) => greeting,
  'reflected-with-proof': ({ greeting }) => ({ ...greeting, proof: greeting.nonce }),
  'nonce-upper': ({ good }) => ({ ...good, nonce: good.nonce.toUpperCase().replace(/^./, 'A') }),
  'nonce-short': ({ secret, ownerNonce }) => ({ nonce: 'ab', proof: proofOf(secret, 'client', ownerNonce, 'ab') }),
  'nonce-long': ({ secret, ownerNonce }) => ({
    nonce: NONCE + NONCE,
    proof: proofOf(secret, 'client', ownerNonce, NONCE + NONCE),
  }),
  'nonce-empty': ({ secret, ownerNonce }) => ({ nonce: '', proof: proofOf(secret, 'client', ownerNonce, '') }),
  'nonce-newline': ({ secret, ownerNonce }) => ({
    nonce: `${NONCE}\n`,
    proof: proofOf(secret, 'client', ownerNonce, `${NONCE}\n`),
  }),
  'nonce-list': ({ good }) => ({ ...good, nonce: [good.nonce] }),
  'nonce-number': ({ secret, ownerNonce }) => ({ nonce: 12, proof: proofOf(secret, 'client', ownerNonce, '12') }),
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
  'two-proofs': ({ good }) => `{"nonce":"${NONCE}","proof":"${good.proof}","proof":"${PROOF}"}\n`,
};
for (let cut = 0; cut < 64; cut += 7)
  forgedReplies[`proof-cut-${cut}`] = ({ good }) => ({ ...good, proof: good.proof.slice(0, cut) });
for (let bit = 0; bit < 64; bit += 9) {
  forgedReplies[`proof-digit-${bit}`] = ({ good }) => {
    const digits = [...good.proof];
    digits[bit] = digits[bit] === '0' ? '1' : '0';
    return { ...good, proof: digits.join('') };
  };
}

/** Bytes that are sent without waiting for the greeting. */
const rawMessages = {
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
  bom: `\ufeff{"nonce":"${NONCE}","proof":"${PROOF}"}\n`,
  crlf: `{"nonce":"${NONCE}","proof":"${PROOF}"}\r\n`,
  'empty-lines': '\n\n\n\n\n',
  'line-1001': `{"nonce":"${'a'.repeat(1001)}"}\n`,
  'line-1MB': `${'x'.repeat(1 << 20)}\n`,
  'no-line-16MB': 'x'.repeat(16 << 20),
  'deep-json': `${'['.repeat(900)}\n`,
  'open-brace': '{',
  'many-lines': '{}\n'.repeat(5000),
  'many-requests': '{"i":1,"op":"list"}\n'.repeat(200),
  'version-first': `{"rondo":${VERSION},"nonce":"00000000000000000000000000000000"}\n`,
};

/** Asserts that the owner sent its greeting at most. @param {Wire} wire */
function assertGreetingOnly(wire) {
  const lines = wire.received.split('\n').filter((line) => line !== '');
  const keys = lines.map((line) => Object.keys(JSON.parse(line)).join(','));
  expect(lines.length <= 1 && keys.every((key) => key === 'rondo,nonce'), 'a greeting and nothing else', lines);
}

/** The owner closes the connection after a forged reply. @param {(context: any) => unknown} forge */
async function sendForgedReply(forge) {
  const { ownerFile } = await shared.get();
  const { socket, secret } = ownerFile;
  const earlierWire = await Wire.connect(socket);
  const { nonce: earlierNonce } = await earlierWire.next();
  const clientNonce = nonce();
  const earlierReply = { nonce: clientNonce, proof: proofOf(secret, 'client', earlierNonce, clientNonce) };
  earlierWire.send(earlierReply);
  await earlierWire.next();
  const wire = await Wire.connect(socket);
  const greeting = await wire.next();
  const good = { nonce: NONCE, proof: proofOf(secret, 'client', greeting.nonce, NONCE) };
  wire.send(forge({ good, secret, earlierReply, greeting, ownerNonce: greeting.nonce }));
  wire.send('{"i":1,"op":"list"}\n');
  await within(wire.closed, 3000, 'the owner to close the connection');
  assertGreetingOnly(wire);
  earlierWire.socket.destroy();
  await shared.assertUnaffected();
}

/** The owner answers raw bytes with its greeting at most. @param {string | Buffer} bytes */
async function sendRawBytes(bytes) {
  const { ownerFile } = await shared.get();
  const wire = await Wire.connect(ownerFile.socket);
  wire.send(bytes);
  await Promise.race([wire.closed, sleep(150)]);
  assertGreetingOnly(wire);
  wire.socket.destroy();
  await shared.assertUnaffected();
}

/**
 * A client can connect while many unauthenticated connections are open.
 * @param {number} count @param {(socket: import('node:net').Socket) => void} act
 */
async function openConnections(count, act) {
  const { ownerFile, client, path } = await shared.get();
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ path: ownerFile.socket });
    socket.on('error', () => undefined);
    socket.on('connect', () => act(socket));
    return socket;
  });
  await sleep(50);
  const opened = await client.must('open', { path, store: 'other' }, 5000);
  expect(opened.owner.here === false, 'another client to connect', opened);
  await client.must('close', { store: 'other' });
  await shared.assertUnaffected();
  for (const socket of sockets) socket.destroy();
}

/** A client can connect while unauthenticated peers reconnect all the time. @param {number} width */
async function floodConnections(width) {
  const { ownerFile, client, path } = await shared.get();
  let isFlooding = true;
  const reconnect = () => {
    if (!isFlooding) return;
    const socket = connect({ path: ownerFile.socket });
    socket.on('error', () => undefined);
    socket.once('data', () => socket.destroy());
    socket.on('close', () => setImmediate(reconnect));
  };
  for (let n = 0; n < width; n++) reconnect();
  try {
    for (let n = 0; n < 3; n++) {
      await client.must('open', { path, store: `f${n}` });
      await client.must('close', { store: `f${n}` });
    }
  } finally {
    isFlooding = false;
  }
  await sleep(50);
  await shared.assertUnaffected();
}

const connectionCases = {
  'silent-30': () => openConnections(30, () => {}),
  'silent-64': () => openConnections(64, () => {}),
  'silent-65': () => openConnections(65, () => {}),
  'silent-200': () => openConnections(200, () => {}),
  'silent-600': () => openConnections(600, () => {}),
  'half-closed-100': () => openConnections(100, (socket) => socket.end()),
  'reset-300': () => openConnections(300, (socket) => socket.destroy()),
  'paused-100': () => openConnections(100, (socket) => socket.pause()),
  'half-a-line-100': () => openConnections(100, (socket) => socket.write('{"nonce":"')),
  'byte-by-byte-50': () =>
    openConnections(50, (socket) => {
      const timer = setInterval(() => socket.writable && socket.write('x'), 5);
      socket.on('close', () => clearInterval(timer));
    }),
  'flood-1': () => floodConnections(1),
  'flood-8': () => floodConnections(8),
  'flood-40': () => floodConnections(40),
};

/** The owner closes a connection that stays silent. */
async function waitSilently() {
  const { ownerFile } = await new SharedOwner().get();
  const wire = await Wire.connect(ownerFile.socket);
  await within(wire.closed, 12_000, 'the owner to close a silent connection');
  assertGreetingOnly(wire);
}

export function cases() {
  return [
    ...Object.entries(forgedReplies).map(([name, forge]) => ({
      id: `socket.forged.${name}`,
      run: () => sendForgedReply(forge),
    })),
    ...Object.entries(rawMessages).map(([name, bytes]) => ({
      id: `socket.raw.${name}`,
      run: () => sendRawBytes(bytes),
    })),
    ...Object.entries(connectionCases).map(([name, run]) => ({ id: `socket.crowd.${name}`, run })),
    { id: 'socket.crowd.long-silence', run: waitSilently, waits: true },
  ];
}
