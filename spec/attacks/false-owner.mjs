// A process that listens in place of the owner, with or without the secret. The client refuses it or reports in time
// that it does not answer; the client does not reveal the secret, crash or wait forever.

import { readFileSync } from 'node:fs';
import { ExpectationError, expect, expectFault, LONGEST_MS, sleep } from '../support/store-attack.mjs';
import { authenticateAsOwner, falseOwner, proofOf, startOf, VERSION } from './wire.mjs';

const NONCE = '00112233445566778899aabbccddeeff';
const OWN_PROCESS = { pid: process.pid, start: startOf(process.pid) };

/** Invalid greetings. */
const greetings = {
  mute: () => {},
  'hangs-up': (wire) => wire.socket.destroy(),
  'half-closes': (wire) => wire.socket.end(),
  'no-json': (wire) => wire.send('hello\n'),
  null: (wire) => wire.send('null\n'),
  array: (wire) => wire.send('[]\n'),
  number: (wire) => wire.send('1\n'),
  'half-a-line': (wire) => wire.send(`{"rondo":${VERSION},"non`),
  'line-10MB': (wire) => wire.send(`${'x'.repeat(10 << 20)}\n`),
  'no-line-10MB': (wire) => wire.send('x'.repeat(10 << 20)),
  'many-lines': (wire) => wire.send('{}\n'.repeat(10_000)),
  'bytes-ff': (wire) => wire.send(Buffer.alloc(3000, 0xff)),
  'deep-json': (wire) => wire.send(`${'['.repeat(900)}\n`),
  'byte-by-byte': async (wire) => {
    for (const byte of `{"rondo":${VERSION},"nonce":"${NONCE}"   `) {
      wire.send(byte);
      await sleep(400);
    }
  },
  'no-nonce': (wire) => wire.send({ rondo: VERSION }),
  'nonce-short': (wire) => wire.send({ rondo: VERSION, nonce: 'ab' }),
  'nonce-list': (wire) => wire.send({ rondo: VERSION, nonce: [NONCE] }),
  'nonce-number': (wire) => wire.send({ rondo: VERSION, nonce: 5 }),
  'nonce-newline': (wire) => wire.send({ rondo: VERSION, nonce: `${NONCE}\n` }),
  'nonce-upper': (wire) => wire.send({ rondo: VERSION, nonce: NONCE.toUpperCase() }),
  http: (wire) => wire.send('HTTP/1.1 400 Bad Request\r\n\r\n'),
};
for (const [name, version] of Object.entries({
  zero: 0,
  earlier: VERSION - 1,
  later: VERSION + 1,
  text: String(VERSION),
  null: null,
  list: [VERSION],
  object: { toString: String(VERSION) },
  long: 'x'.repeat(900),
})) {
  greetings[`version-${name}`] = (wire) => wire.send({ rondo: version, nonce: NONCE });
}

/** Invalid messages in place of the owner's proof. Each function receives the message of the client and the secret. */
const proofs = {
  mute: () => {},
  'hangs-up': (wire) => wire.socket.destroy(),
  zero: (wire) => wire.send({ proof: '0'.repeat(64) }),
  empty: (wire) => wire.send({ proof: '' }),
  wide: (wire) => wire.send({ proof: 'é'.repeat(64) }),
  list: (wire) => wire.send({ proof: ['x'] }),
  missing: (wire) => wire.send({}),
  null: (wire) => wire.send('null\n'),
  reflected: (wire, { proof }) => wire.send({ proof }),
  'nonce-as-proof': (wire, { nonce: clientNonce }) => wire.send({ proof: clientNonce + clientNonce }),
  'of-other-secret': (wire, { nonce: clientNonce }) =>
    wire.send({ proof: proofOf('00'.repeat(32), 'owner', NONCE, clientNonce) }),
  'of-empty-secret': (wire, { nonce: clientNonce }) => wire.send({ proof: proofOf('', 'owner', NONCE, clientNonce) }),
  'second-greeting': (wire) => wire.send({ rondo: VERSION, nonce: NONCE }),
  'hello-answered': (wire) => wire.send('{"i":1,"ok":{"report":{"damage":[]}}}\n'),
  'request-at-once': (wire) => wire.send('{"a":1,"session":"x","request":{}}\n'),
  'cut-proof': (wire, _, secret, clientNonce) =>
    wire.send({ proof: proofOf(secret, 'owner', NONCE, clientNonce).slice(0, 63) }),
  'client-proof': (wire, _, secret, clientNonce) => wire.send({ proof: proofOf(secret, 'client', NONCE, clientNonce) }),
  'swapped-proof': (wire, _, secret, clientNonce) => wire.send({ proof: proofOf(secret, 'owner', clientNonce, NONCE) }),
  'proof-of-the-last': (() => {
    let last;
    return (wire, _, secret, clientNonce) => {
      wire.send({ proof: last ?? '0'.repeat(64) });
      last = proofOf(secret, 'owner', NONCE, clientNonce);
    };
  })(),
};

/** The client refuses the impostor in time, reports its pid, and sends only a nonce and a proof. */
async function assertImpostorRefused(fixture, behave) {
  const { path } = fixture;
  const owner = await falseOwner(path, behave);
  fixture.atEnd(owner.close);
  const actor = await fixture.actor();
  const at = Date.now();
  const answer = await actor.do('open', { path });
  expectFault(answer, ['STORE_OWNED']);
  expect(answer.fault.message.includes(String(process.pid)), 'the pid of the listener', answer.fault.message);
  expect(Date.now() - at < LONGEST_MS, 'an answer in time', Date.now() - at);
  for (const { received } of owner.wires) {
    expect(!received.includes(owner.secret), 'the client not to send the secret', received);
    const keys = received
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => Object.keys(JSON.parse(line)).join(','));
    expect(
      keys.every((key) => key === 'nonce,proof'),
      'a nonce and a proof and nothing else',
      received,
    );
  }
  expect(owner.wires.length < 1500, 'no flood of connections', owner.wires.length);
}

/** Answers of a hostile owner to hello. */
const hellos = {
  mute: () => {},
  'ok-null': (wire) => wire.send({ i: 1, ok: null }),
  'ok-number': (wire) => wire.send({ i: 1, ok: 5 }),
  'no-report': (wire) => wire.send({ i: 1, ok: {} }),
  'error-null': (wire) => wire.send({ i: 1, error: null }),
  'error-empty': (wire) => wire.send({ i: 1, error: {} }),
  'error-code': (wire) => wire.send({ i: 1, error: { family: 'fault', code: 'constructor', message: 'x' } }),
  'error-number': (wire) => wire.send({ i: 1, error: 5 }),
  'error-message-object': (wire) => wire.send({ i: 1, error: { family: 'fault', code: 'STORE_FULL', message: {} } }),
  'other-number': (wire) => wire.send({ i: 99, ok: { report: { damage: [] } } }),
  null: (wire) => wire.send('null\n'),
  'hangs-up': (wire) => wire.socket.destroy(),
  'no-json': (wire) => wire.send('x\n'),
  heartbeat: (wire) => sendHeartbeats(wire, {}),
  'piece-first': (wire) => wire.send('{"i":1,"piece":1}\n{"i":1,"asked":null}\n{"i":1,"ack":true}\n'),
};

/** Sends a message that answers no request every 500 ms. */
async function sendHeartbeats(wire, message) {
  while (!wire.ended) {
    wire.send(message);
    await sleep(500);
  }
}

/** The client finishes its opening in time: it succeeds or throws a Fault. */
async function hostileHello(fixture, behave) {
  const { path } = fixture;
  let secret = '';
  const owner = await falseOwner(path, async (wire) => {
    await authenticateAsOwner(wire, secret);
    await wire.next(20_000);
    await behave(wire);
  });
  ({ secret } = owner);
  fixture.atEnd(owner.close);
  const actor = await fixture.actor();
  const answer = await actor.do('open', { path });
  if (answer.ok === undefined) expectFault(answer, ['STORE_OWNED', 'STORE_FAILED', 'STORE_FULL']);
  const open = owner.wires.filter(({ ended }) => !ended).length;
  expect(open <= 1, 'unused connections to be closed', `${open} are open`);
}

/** Answers of a hostile owner to an operation: the command of the client, and the messages of the owner. */
const answers = {
  'claim-null': ['claim', () => ({ ok: null })],
  'claim-text': ['claim', () => ({ ok: 'x' })],
  'list-null': ['list', () => ({ ok: null })],
  'list-object': ['list', () => ({ ok: {} })],
  'values-null': ['values', () => ({ ok: null })],
  'values-endless': ['values', () => ({ ok: { entries: [], more: true } })],
  'values-entries-null': ['values', () => ({ ok: { entries: null, more: false } })],
  'load-number': ['load', () => ({ ok: 5 })],
  'holdings-null': ['holdings', () => ({ ok: null })],
  'error-null': ['list', () => ({ error: null })],
  'error-empty': ['list', () => ({ error: {} })],
  'error-deep': [
    'list',
    () => ({
      error: {
        family: 'fault',
        code: 'STORE_FULL',
        message: 'x',
        data: JSON.parse('['.repeat(2000) + ']'.repeat(2000)),
      },
    }),
  ],
  'error-proto': ['list', () => ({ error: { family: 'fault', code: '__proto__', message: 'x' } })],
  'nothing-at-all': ['list', () => ({})],
  'wrong-number': ['list', (i) => ({ i: i + 1000, ok: [] })],
  'number-as-text': ['list', (i) => ({ i: String(i), ok: [] })],
  'asked-null': ['ask', () => ({ asked: null })],
  'asked-empty': ['ask', () => ({ asked: {} })],
  'asked-text': ['ask', () => ({ asked: { pid: 'x', start: 5 } })],
  'asked-self-then-ack': [
    'ask',
    () => [{ asked: OWN_PROCESS }, { ack: true }, { ok: { status: 'answered', value: 1 } }],
  ],
  'asked-null-ack': ['ask', () => [{ asked: null }, { ack: true }]],
  'asked-empty-ack': ['ask', () => [{ asked: {} }, { ack: true }]],
  'asked-pid-only-ack': ['ask', () => [{ asked: { pid: 1 } }, { ack: true }]],
  'ack-first': ['ask', () => [{ ack: true }, { ok: { status: 'not-held' } }]],
  'reply-null': ['ask', () => ({ ok: null })],
  'reply-number': ['ask', () => ({ ok: 5 })],
  twice: ['list', () => [{ ok: [] }, { ok: [] }, { error: { family: 'fault', code: 'STORE_FULL', message: 'x' } }]],
  'hangs-up': ['list', (_, wire) => wire.socket.destroy()],
  mute: ['list', () => []],
  heartbeat: ['list', (_, wire) => void sendHeartbeats(wire, { i: 12_345, ok: 1 })],
};

/** After a valid opening and a hostile answer, the operation ends in time and the client process keeps running. */
async function hostileAnswer(fixture, [op, answersTo]) {
  const { path } = fixture;
  let secret = '';
  const owner = await falseOwner(path, async (wire) => {
    await authenticateAsOwner(wire, secret);
    for (let message = await wire.next(60_000); message !== undefined; message = await wire.next(60_000)) {
      const { i } = message;
      if (message.op === 'hello') wire.send({ i, ok: { report: { checked: 'heads', damage: [] } } });
      else if (i !== undefined) for (const reply of [answersTo(i, wire) ?? []].flat()) wire.send({ i, ...reply });
    }
  });
  ({ secret } = owner);
  fixture.atEnd(owner.close);
  const actor = await fixture.actor();
  await actor.must('open', { path });
  const answer = await actor
    .do(op, { session: 'a' }, 11_500)
    .catch((thrown) => ({ late: thrown instanceof ExpectationError ? thrown.message : thrown }));
  await sleep(700);
  expect(actor.crash === undefined && !actor.ended, 'the client to keep running', actor.crash ?? answer);
  if (op !== 'ask') expect(answer.late === undefined, 'an answer in time', answer.late);
}

/** Forwarded requests that a hostile owner invents. */
const forwardedRequests = {
  'no-session': { a: 1 },
  'session-number': { a: 1, session: 5, request: {} },
  'a-text': { a: 'x', session: 'h', request: {} },
  'a-null': { a: null, session: 'h', request: {} },
  'a-object': { a: { x: 1 }, session: 'h', request: {} },
  'request-null': { a: 1, session: 'h', request: null },
  'request-deep': { a: 1, session: 'h', request: JSON.parse('['.repeat(2000) + ']'.repeat(2000)) },
  'not-held': { a: 1, session: 'never', request: {} },
};

/** The client survives invented forwarded requests. */
async function hostileForwardedRequest(fixture, message) {
  const { path } = fixture;
  let secret = '';
  const owner = await falseOwner(path, async (wire) => {
    await authenticateAsOwner(wire, secret);
    for (let request = await wire.next(60_000); request !== undefined; request = await wire.next(60_000)) {
      const { i, op } = request;
      if (op === 'hello') wire.send({ i, ok: { report: { checked: 'heads', damage: [] } } });
      else if (op === 'acquire') {
        wire.send({ i, ok: true });
        for (let n = 0; n < 50; n++) wire.send(message);
      } else if (i !== undefined) wire.send({ i, ok: [] });
    }
  });
  ({ secret } = owner);
  fixture.atEnd(owner.close);
  const actor = await fixture.actor();
  await actor.must('open', { path });
  await actor.must('acquire', { session: 'h' });
  await sleep(200);
  await actor.must('list');
}

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `socket.${id}`, run, waits: true });
  for (const [name, behave] of Object.entries(greetings))
    add(`false-owner.greeting.${name}`, (fixture) => assertImpostorRefused(fixture, behave));
  for (const [name, prove] of Object.entries(proofs)) {
    add(`false-owner.proof.${name}`, (fixture) => {
      const behave = async (wire) => {
        wire.send({ rondo: VERSION, nonce: NONCE });
        const answer = await wire.next(20_000);
        const { secret } = JSON.parse(readFileSync(`${fixture.path}.owner`, 'utf8'));
        if (answer !== undefined) await prove(wire, answer, secret, answer.nonce);
      };
      return assertImpostorRefused(fixture, behave);
    });
  }
  for (const [name, behave] of Object.entries(hellos))
    add(`hostile-owner.hello.${name}`, (fixture) => hostileHello(fixture, behave));
  for (const [name, answer] of Object.entries(answers))
    add(`hostile-owner.answer.${name}`, (fixture) => hostileAnswer(fixture, answer));
  for (const [name, message] of Object.entries(forwardedRequests))
    add(`hostile-owner.demand.${name}`, (fixture) => hostileForwardedRequest(fixture, message));
  return all;
}
