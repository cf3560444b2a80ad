// Authenticated peers that send what no client of Rondo sends. The owner refuses the request or closes the connection,
// and other processes are not affected.

import { createHash } from 'node:crypto';
import { expect, sleep, within } from '../support/store-attack.mjs';
import { connectAuthenticated, connectClient, nonce, SharedOwner, startOf } from './wire.mjs';

const shared = new SharedOwner();
const ownProcess = { pid: process.pid, start: startOf(process.pid) };
const digest = (text) => createHash('sha256').update(text).digest('base64url');
const bodyOf = (first, value = 'x') =>
  JSON.stringify([{ seq: first, at: 0, key: `t/${first}`, type: 'step.taken', value }]);

/** Returns an append to the session of the owner. @param {object} fields */
const appendRequest = (fields) => ({ op: 'append', i: 1, session: 'honest-owner', count: 1, ...fields });

/** One valid request of each operation. */
const validRequests = {
  hello: { id: 'x', process: ownProcess, held: [] },
  claim: { session: 'evil' },
  append: { session: 'evil', fence: 1, firstSeq: 0, count: 1, body: bodyOf(0) },
  read: { session: 'honest-owner', from: 0 },
  list: {},
  remove: { session: 'evil' },
  get: { session: 'honest-owner', digest: 'x' },
  load: { session: 'honest-owner' },
  save: { session: 'evil', snapshot: { nextSeq: 0, tailDigest: '', state: {} } },
  acquire: { session: 'evil', turn: 't' },
  release: { session: 'evil' },
  holdings: {},
  ask: { session: 'evil', request: {} },
  bye: {},
};

/** Values that are invalid for nearly every field of the protocol. */
const invalidValues = {
  missing: undefined,
  null: null,
  true: true,
  list: [['a']],
  object: { toString: 'x', length: 1 },
  half: 0.5,
  minus: -1,
  huge: 1e300,
};
/** True if the value is valid for the field. */
const isValidFor = (field, name) => field === 'request' && name !== 'missing';

/**
 * The owner answers an invalid request with an error or closes the connection.
 * @param {object} request @param {(path: string) => Promise<any>} [open]
 */
async function assertRefused(request, open = connectClient) {
  const { path } = await shared.get();
  const wire = await open(path);
  wire.send(request);
  const answer = await wire.answer(1);
  expect(answer === undefined || answer.error !== undefined, 'an error or the end of the connection', answer);
  wire.socket.destroy();
  await shared.assertUnaffected();
}

/** One case for each operation before hello, and for each field and invalid value. */
function invalidRequestCases() {
  const all = [];
  for (const [op, fields] of Object.entries(validRequests)) {
    if (op !== 'hello') {
      all.push({
        id: `socket.before-hello.${op}`,
        run: () => assertRefused({ op, i: 1, ...fields }, connectAuthenticated),
      });
    }
    for (const field of Object.keys(fields)) {
      for (const [name, value] of Object.entries(invalidValues)) {
        if (isValidFor(field, name)) continue;
        const open = op === 'hello' ? connectAuthenticated : connectClient;
        const run = () => assertRefused({ op, i: 1, ...fields, [field]: value }, open);
        all.push({ id: `socket.field.${op}.${field}.${name}`, run });
      }
    }
  }
  return all;
}

/** Lines that are not valid requests. */
const invalidLines = {
  null: 'null\n',
  array: '[]\n',
  'array-of-requests': '[{"op":"list","i":1}]\n',
  number: '1\n',
  text: '"list"\n',
  empty: '{}\n',
  'no-json': 'list\n',
  'op-unknown': '{"op":"drop","i":1}\n',
  'op-constructor': '{"op":"constructor","i":1}\n',
  'op-proto': '{"op":"__proto__","i":1}\n',
  'op-tostring': '{"op":"toString","i":1}\n',
  'op-number': '{"op":7,"i":1}\n',
  'op-list': '{"op":["list"],"i":1}\n',
  'op-twice': '{"op":"list","op":"drop","i":1}\n',
  'i-text': '{"op":"list","i":"1"}\n',
  'i-minus': '{"op":"list","i":-1}\n',
  'i-null': '{"op":"list","i":null}\n',
  'i-list': '{"op":"list","i":[1]}\n',
  'fields-of-proto': '{"op":"claim","i":1,"__proto__":{"session":"evil"}}\n',
  'held-proto': `{"op":"hello","i":1,"id":"x","process":${JSON.stringify(ownProcess)},"held":[null]}\n`,
  'second-hello': `{"op":"hello","i":1,"id":"x","process":${JSON.stringify(ownProcess)},"held":[]}\n`,
  'deep-request': `{"op":"ask","i":1,"session":"evil","request":${'['.repeat(600)}${']'.repeat(600)}}\n`,
  'very-deep-request': `{"op":"ask","i":1,"session":"evil","request":${'['.repeat(1e5)}${']'.repeat(1e5)}}\n`,
  'very-deep-answer': `{"a":1,"ok":${'['.repeat(1e5)}${']'.repeat(1e5)}}\n`,
  'answer-and-request': '{"a":"x","op":"claim","session":["evil"],"i":1}\n',
  'answer-bad-error': '{"a":1,"error":null}\n',
  'answer-error-list': '{"a":1,"error":[]}\n',
  'long-session': `{"op":"claim","i":1,"session":"${'e'.repeat(1001)}"}\n`,
  'empty-session': '{"op":"claim","i":1,"session":""}\n',
  'control-session': '{"op":"claim","i":1,"session":"e\\u0000vil"}\n',
  'newline-session': '{"op":"claim","i":1,"session":"e\\nvil"}\n',
  'tab-session': '{"op":"claim","i":1,"session":"e\\tvil"}\n',
  'surrogate-session': '{"op":"claim","i":1,"session":"\\ud800evil"}\n',
  'session-257': `{"op":"claim","i":1,"session":"${'e'.repeat(257)}"}\n`,
};

/** The owner answers an invalid line with an error or closes the connection. @param {string} bytes */
async function assertLineRefused(bytes) {
  const { path } = await shared.get();
  const wire = await connectClient(path);
  wire.send(bytes);
  const answer = await wire.answer(1);
  expect(answer === undefined || answer.error !== undefined, 'an error or the end of the connection', answer);
  wire.socket.destroy();
  await shared.assertUnaffected();
}

/** Bodies of an append that do not match its fields. */
const invalidBodies = {
  empty: '',
  'no-json': 'x',
  object: '{}',
  'no-entries': '[]',
  numbers: '[1]',
  nulls: '[null]',
  'other-seq': bodyOf(1),
  'seq-text': '[{"seq":"0","key":"k"}]',
  'seq-minus': '[{"seq":-1,"key":"k"}]',
  'no-key': '[{"seq":0}]',
  'key-number': '[{"seq":0,"key":1}]',
  'two-for-one': '[{"seq":0,"key":"k"},{"seq":1,"key":"l"}]',
  'with-rest': `${bodyOf(0)} x`,
  half: bodyOf(0).slice(0, -3),
};

/** @param {string} body */
async function assertBodyRefused(body) {
  const { path } = await shared.get();
  const wire = await connectClient(path);
  const session = `honest-${nonce()}`;
  wire.send({ op: 'claim', i: 1, session });
  const { ok } = await wire.answer(1);
  wire.send({ op: 'append', i: 2, session, fence: ok.fence, firstSeq: 0, count: 1, body });
  const answer = await wire.answer(2);
  expect(answer === undefined || answer.error !== undefined, 'the append to be refused', answer);
  wire.socket.destroy();
  await shared.assertUnaffected();
}

/** Valid requests with hostile effects. Each function receives a connection that has sent hello. */
const hostileRequests = {
  'append-of-another': async (wire) => {
    wire.send(appendRequest({ fence: shared.first.fence + 1, firstSeq: 1, body: bodyOf(1) }));
    expect((await wire.answer(1))?.error?.code === 'STALE_WRITER', 'STALE_WRITER', 'something else');
  },
  'append-same-place': async (wire) => {
    wire.send(appendRequest({ fence: shared.first.fence, firstSeq: 0, body: bodyOf(0, 'other') }));
    expect((await wire.answer(1))?.error?.code === 'STALE_WRITER', 'STALE_WRITER', 'something else');
  },
  'append-far-away': async (wire) => {
    const first = Number.MAX_SAFE_INTEGER - 1;
    wire.send(appendRequest({ fence: shared.first.fence, firstSeq: first, body: bodyOf(first) }));
    expect((await wire.answer(1))?.error !== undefined, 'an error', 'a success');
  },
  'blob-of-other-digest': async (wire) => {
    wire.send(appendRequest({ fence: shared.first.fence, firstSeq: 9e9, body: bodyOf(9e9), blobs: [['x', 'y']] }));
    expect((await wire.answer(1))?.error !== undefined, 'an error', 'a success');
  },
  'read-far-away': async (wire) => {
    wire.send({ op: 'read', i: 1, session: 'honest-owner', from: Number.MAX_SAFE_INTEGER });
    const { ok } = await wire.answer(1);
    expect(ok?.entries.length === 0 && ok.more === false, 'no entries', ok);
  },
  'release-of-another': async (wire, { client, path }) => {
    await client.must('acquire', { session: 'honest-held' });
    wire.send({ op: 'release', i: 1, session: 'honest-held' });
    await wire.answer(1);
    wire.send({ op: 'acquire', i: 2, session: 'honest-held', turn: 't' });
    expect((await wire.answer(2)).ok === false, 'the session to stay with its holder', path);
    await client.must('release', { session: 'honest-held' });
  },
  'claims-held-by-another': async (_wire, { client, path }) => {
    await client.must('acquire', { session: 'honest-kept' });
    const second = await connectClient(path, { held: [{ session: 'honest-kept', turn: 't' }] });
    second.send({ op: 'holdings', i: 1 });
    const { ok } = await second.answer(1);
    expect(ok.find(({ session }) => session === 'honest-kept')?.pid === client.pid, 'the first holder', ok);
    second.socket.destroy();
    await client.must('release', { session: 'honest-kept' });
  },
  'answers-never-asked': async (wire) => {
    for (let a = 0; a < 500; a++) wire.send({ a, ok: { status: 'answered', value: a } });
    for (let a = 0; a < 500; a++) wire.send({ a, piece: a });
    for (let a = 0; a < 500; a++) wire.send({ a, error: { family: 'fault', message: 'x' } });
  },
  'same-number': async (wire) => {
    for (let n = 0; n < 200; n++) wire.send({ op: 'list', i: 1 });
    await wire.answer(1);
  },
  'no-number': async (wire) => {
    for (let n = 0; n < 200; n++) wire.send({ op: 'list' });
    wire.send({ op: 'list', i: 1 });
    expect((await wire.answer(1)).ok !== undefined, 'an answer', 'none');
  },
  'ask-itself': async (wire) => {
    wire.send({ op: 'acquire', i: 1, session: 'honest-self', turn: 't' });
    await wire.answer(1);
    wire.send({ op: 'ask', i: 2, session: 'honest-self', request: {} });
    expect((await wire.answer(2)).ok?.status === 'not-held', 'no holder', 'a holder');
  },
  'bye-and-more': async (wire) => {
    wire.send({ op: 'bye', i: 1 });
    wire.send({ op: 'acquire', i: 2, session: 'honest-after', turn: 't' });
    const answer = await wire.answer(2);
    expect(answer === undefined || answer.ok === false, 'no lease after bye', answer);
  },
  'pipelined-10000': async (wire) => {
    for (let i = 1; i <= 10_000; i++) wire.send({ op: 'load', i, session: 'honest-owner' });
    expect((await wire.answer(10_000))?.ok === null, 'the last answer', 'another');
  },
  'line-50MB': async (wire) => {
    wire.send({ op: 'ask', i: 1, session: 'evil', request: 'x'.repeat(50 << 20) });
    expect((await within(wire.answer(1), 8000, 'an answer'))?.ok?.status === 'not-held', 'no holder', 'a holder');
  },
  'half-a-line-50MB': async (wire) => {
    wire.send(`{"op":"ask","i":1,"session":"evil","request":"${'x'.repeat(50 << 20)}`);
    await sleep(300);
  },
  'gone-in-the-middle': async (wire) => {
    wire.send('{"op":"claim","i":1,"sess');
    await sleep(20);
  },
  'holds-20000-sessions': async (wire, { path }) => {
    const held = Array.from({ length: 20_000 }, (_, n) => ({ session: `s${n}`, turn: 't' }));
    const second = await connectClient(path, { held });
    second.send({ op: 'bye', i: 1 });
    second.socket.destroy();
    wire.send({ op: 'holdings', i: 2 });
    expect(
      (await wire.answer(2)).ok.every(({ session }) => !/^s\d/.test(session)),
      'its sessions to be released',
      'they are held',
    );
  },
  'slow-reader': async (wire) => {
    wire.socket.pause();
    for (let i = 1; i <= 500; i++) wire.send({ op: 'read', i, session: 'honest-owner', from: 0 });
    await sleep(500);
  },
  'fence-reused': async (wire) => {
    wire.send({ op: 'claim', i: 1, session: 'honest-fenced' });
    const first = (await wire.answer(1)).ok;
    wire.send({ op: 'remove', i: 2, session: 'honest-fenced' });
    await wire.answer(2);
    wire.send({ op: 'claim', i: 3, session: 'honest-fenced' });
    const second = (await wire.answer(3)).ok;
    expect(second.fence > first.fence, 'another fence after a removal', [first, second]);
  },
  'deep-body': async (wire) => {
    wire.send({ op: 'claim', i: 1, session: 'honest-deep' });
    const { fence } = (await wire.answer(1)).ok;
    const deep = `[{"seq":0,"at":0,"key":"k","type":"step.taken","value":${'['.repeat(50_000)}${']'.repeat(50_000)}}]`;
    wire.send({ op: 'append', i: 2, session: 'honest-deep', fence, firstSeq: 0, count: 1, body: deep });
    await wire.answer(2);
    wire.send({ op: 'read', i: 3, session: 'honest-deep', from: 0 });
    const answer = await wire.answer(3);
    expect(answer !== undefined, 'an answer to the read request', 'the end of the connection');
    wire.send({ op: 'remove', i: 4, session: 'honest-deep' });
    await wire.answer(4);
  },
};

/** Identities that a peer may claim in its hello. */
const claimedIdentities = {
  'id-empty': { id: '' },
  'id-zero-byte': { id: 'a\0b' },
  'id-surrogate': { id: '\ud800' },
  'id-long': { id: 'x'.repeat(1000) },
  'id-quotes': { id: `'; DROP TABLE clients; --` },
  'pid-zero': { process: { pid: 0, start: '' } },
  'pid-one': { process: { pid: 1, start: 'x' } },
  'pid-huge': { process: { pid: Number.MAX_SAFE_INTEGER, start: '' } },
  'start-empty': { process: { pid: 5, start: '' } },
  'start-zero-byte': { process: { pid: 5, start: '\0' } },
  'start-surrogate': { process: { pid: 5, start: '\udfff' } },
  'start-other-container': { process: { pid: 5, start: ownProcess.start.replace(/\[\d+\]/, '[1]') } },
  'start-of-another': { process: { pid: process.ppid, start: ownProcess.start } },
};

/** Leases and commits of other processes continue, whatever identity a peer claims. @param {object} hello */
async function claimIdentity(hello) {
  const { path, client } = await shared.get();
  const wire = await connectClient(path, hello);
  wire.send({ op: 'acquire', i: 1, session: 'honest-strange', turn: 't' });
  const concurrentLoad = client.must('load', { session: 'honest-client' });
  const answer = await wire.answer(1);
  expect(
    answer?.ok === true || answer?.error !== undefined || answer === undefined,
    'a lease, an error or the end of the connection',
    answer,
  );
  await concurrentLoad;
  wire.send({ op: 'bye', i: 2 });
  wire.socket.destroy();
  await shared.assertUnaffected();
}

/** Owner and client continue after hostile requests. @param {(wire: any, shared: SharedOwner) => Promise<void>} act */
async function runHostileRequests(act) {
  const { path } = await shared.get();
  const wire = await connectClient(path);
  try {
    await act(wire, shared);
  } finally {
    wire.socket.destroy();
  }
  await shared.assertUnaffected();
}

/** The owner stores a blob that is sent with an append, under its digest. */
async function appendWithBlob() {
  const { path } = await shared.get();
  const wire = await connectClient(path);
  const [session, text] = [`honest-${nonce()}`, 'a large value'];
  wire.send({ op: 'claim', i: 1, session });
  const { fence } = (await wire.answer(1)).ok;
  wire.send({
    op: 'append',
    i: 2,
    session,
    fence,
    firstSeq: 0,
    count: 1,
    body: bodyOf(0),
    blobs: [[digest(text), text]],
  });
  expect((await wire.answer(2)).ok === null, 'an acknowledgement', 'something else');
  wire.send({ op: 'get', i: 3, session, digest: digest(text) });
  expect((await wire.answer(3)).ok === text, 'the value', 'something else');
  wire.socket.destroy();
  await shared.assertUnaffected();
}

export function cases() {
  const casesOf = (family, table, run) =>
    Object.entries(table).map(([name, item]) => ({ id: `socket.${family}.${name}`, run: () => run(item) }));
  return [
    ...invalidRequestCases(),
    ...casesOf('odd', invalidLines, assertLineRefused),
    ...casesOf('body', invalidBodies, assertBodyRefused),
    ...casesOf('hostile', hostileRequests, runHostileRequests),
    ...casesOf('self', claimedIdentities, claimIdentity),
    { id: 'socket.hostile.blob-of-append', run: appendWithBlob },
  ];
}
