// Reads a hosted loop from the journal as it is stored, without the code under test: its turns, due times and signals.

import { createHash } from 'node:crypto';
import { expandLeaves } from 'rondo/host';

/** @typedef {import('rondo/host').Store} Store */
/** @typedef {Record<string, any>} Fields */
/**
 * A turn: its request, its end, and the receipts of its session that name it.
 * @typedef {{ key: string, request: Fields, ends: Fields[], receipts: { id: string, predicate: Fields }[], calls: number }} Turn
 */
/**
 * @typedef {object} StoredLoop
 * @property {string} id
 * @property {Fields} started
 * @property {Turn[]} turns
 * @property {Fields[]} skipped The due times that were dropped.
 * @property {{ id: string, value: Fields }[]} received
 * @property {{ key: string, value: Fields }[]} handedOff
 * @property {Fields | undefined} stopped
 * @property {Fields[]} plans
 */

const PREFIX = 'rondo:hosted:';

/** Returns canonical JSON of a value with ASCII member names. @param {any} value @returns {string} */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

/** @param {string} text */
export function sha256(text) {
  return createHash('sha256').update(text).digest('hex');
}

/** Returns the digest of a JSON value. @param {unknown} value */
export function digestOf(value) {
  return sha256(canonical(value));
}

/** Returns the head after an item. @param {string} head @param {unknown} item */
export function headAfter(head, item) {
  return sha256(`${head}\n${canonical(item)}`);
}

/** @param {Store} store @param {string} session */
async function entriesOf(store, session) {
  const entries = [];
  for await (const batch of store.journal.read(session, 0)) entries.push(...batch);
  return expandLeaves(entries);
}

/** Returns all hosted loops of a store. @param {Store} store @returns {Promise<StoredLoop[]>} */
export async function readLoops(store) {
  const sessions = (await store.journal.list()).map(({ session }) => session);
  const loops = [];
  for (const session of sessions)
    if (session.startsWith(PREFIX)) loops.push(await readLoop(store, session.slice(PREFIX.length)));
  return loops.filter(({ started }) => started.document !== undefined);
}

/** @param {Store} store @param {string} id @returns {Promise<StoredLoop>} */
async function readLoop(store, id) {
  /** @type {StoredLoop} */
  const loop = { id, started: {}, turns: [], skipped: [], received: [], handedOff: [], stopped: undefined, plans: [] };
  for (const { type, key, value } of await entriesOf(store, `${PREFIX}${id}`)) {
    const fields = /** @type {Fields} */ (value ?? {});
    if (type === 'rondo.hosted.started') loop.started = fields;
    else if (type === 'rondo.hosted.requested')
      loop.turns.push({ key, request: fields, ends: [], receipts: [], calls: 0 });
    else if (type === 'rondo.hosted.ended') turnOf(loop, key)?.ends.push(fields);
    else if (type === 'rondo.hosted.received') loop.received.push({ id: fields.id, value: fields });
    else if (type === 'rondo.hosted.handed-off') loop.handedOff.push({ key, value: fields });
    else if (type === 'rondo.hosted.stopped') loop.stopped = fields;
    else if (type === 'rondo.hosted.planned') {
      loop.plans.push(fields);
      if (fields.skipped !== undefined) loop.skipped.push(fields.skipped);
    }
  }
  for (const turn of loop.turns) await addReceipts(store, loop, turn);
  return loop;
}

/** @param {StoredLoop} loop @param {string} key */
function turnOf({ turns }, key) {
  return turns.find((turn) => turn.key === key);
}

/** Adds what the session of a turn says. @param {Store} store @param {StoredLoop} loop @param {Turn} turn */
async function addReceipts(store, { id, started }, turn) {
  const isShared = started.document.turn?.history === 'session';
  const session = isShared ? `hosted:${id}` : `hosted:${id}:${turn.request.turn}`;
  const turnId = turn.ends[0]?.turnId ?? '';
  for (const { type, key, value, blob } of await entriesOf(store, session)) {
    if (type === 'call.started' && (isShared ? key === turnId : !key.includes('/'))) turn.calls += 1;
    if (type !== 'rondo.receipt.sealed') continue;
    const sealed = /** @type {Fields} */ (value ?? JSON.parse((await store.blobs.get(session, blob ?? '')) ?? 'null'));
    const { predicate } = JSON.parse(Buffer.from(sealed.envelope.payload, 'base64').toString());
    if (!isShared || predicate.turn === turnId)
      turn.receipts.push({ id: `sha256:${digestOf(sealed.envelope)}`, predicate });
  }
}
