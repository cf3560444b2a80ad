/**
 * Forks a turn: copies the entries of its session up to one of them into a new session, whose turn continues from there.
 * The copy has an incarnation of its own, and with it other idempotency keys. Only the store is used: a fork runs no body
 * and performs no effect. The whole copy is one append, so a fork exists completely or not at all.
 */
import { LoopError } from '../base/errors.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import { isObject } from '../base/own-property.js';
import { splitIntoBlobs } from '../journal/blob-parts.js';
import { digestOfText } from '../journal/record.js';
import type { Store } from '../journal/store.js';
import type { Entry } from '../protocol/entry.js';
import { forkPointsOf, nearestPoint } from '../views/fork-points.js';
import { FORK_KEY, RECEIPT_SEALED, SESSION_FORKED, TURN_OPENED, TURN_REFUSED } from '../views/turns.js';
import { turnNotFoundError } from './archive.js';
import type { HostOptions } from './host-options.js';
import { readSession } from './read-session.js';
import { SessionRenamer } from './session-renamer.js';
import { sessionIdOf } from './turn-result.js';

/** Where a fork begins. */
export interface ForkOptions {
  /** The sequence number of the last entry that the fork has in common with the turn. */
  readonly at: number;
}

/** A fork, and where it comes from. */
export interface ForkedTurn {
  readonly sessionId: string;
  /** The turn that continues from the entry. */
  readonly turnId: string;
  readonly origin: { readonly sessionId: string; readonly turnId: string; readonly at: number };
}

/** The types of entries that belong to a session itself: its receipts are a chain, and refused turns are not in a fork. */
const UNCOPIED_TYPES: ReadonlySet<string> = new Set(['session.opened', SESSION_FORKED, RECEIPT_SEALED, TURN_REFUSED]);

const FORK_OPTION_KEYS = optionKeys<ForkOptions>({ at: true });

/**
 * Forks a turn. Throws TURN_NOT_FOUND for an unknown turn, and FORK_REFUSED, which names the nearest entry that can be
 * used, if the turn is not open at the entry, or an effect has not ended there that was started or whose approval is
 * answered.
 */
export async function forkTurn(
  { store, clock, ids }: Pick<HostOptions, 'store' | 'clock' | 'ids'>,
  turnId: string,
  options: ForkOptions,
): Promise<ForkedTurn> {
  assertKnownKeys(options, FORK_OPTION_KEYS, 'A fork has no option');
  const { at } = options;
  if (!Number.isSafeInteger(at) || at < 0) throw new TypeError('The option `at` of a fork is a sequence number.');
  const origin = { sessionId: sessionIdOf(turnId), turnId, at };
  const entries = await readSession(store, origin.sessionId);
  if (!entries.some(({ key, type }) => key === turnId && type === 'call.started')) throw turnNotFoundError(turnId);
  assertForkPoint(turnId, at, entries);
  const id = ids.id();
  const sessionId = `s-${id.slice(0, 4)}${id.slice(-12)}`;
  const now = clock.now();
  const copied = copiedEntries(turnId, entries.slice(0, at + 1));
  const forkedFrom = { session: origin.sessionId, turn: turnId, at, copied: copied.length };
  const first: readonly Entry[] = [
    {
      seq: 0,
      at: now,
      type: 'session.opened',
      key: 'session',
      incarnationId: /* guard: fork-incarnation-new */ ids.id(),
    },
    { seq: 1, at: now, type: SESSION_FORKED, key: FORK_KEY, value: forkedFrom },
  ];
  const ends = openRootsIn(copied).flatMap((root) => (root === turnId ? [] : [endOf(root, now)]));
  const newIds = newIdsOf([...rootsIn(copied)], origin.sessionId, sessionId);
  const renamer = new SessionRenamer(newIds);
  const renamed = [...copied, /* guard: other-open-turns-end-in-fork */ ...ends].map((entry) => renamer.entry(entry));
  const newTurnId = newIds.get(turnId) ?? '';
  await writeSession(store, { from: origin.sessionId, to: sessionId, turnId: newTurnId }, [...first, ...renamed]);
  return { sessionId, turnId: newTurnId, origin };
}

/**
 * Returns the entries that a fork gets. A turn with receipts ends with its final one, and receipts are not copied: in the
 * fork, the turns that it does not continue are history without receipts.
 */
function copiedEntries(turnId: string, entries: readonly Entry[]): readonly Entry[] {
  return entries.flatMap((entry) => {
    if (UNCOPIED_TYPES.has(entry.type)) return [];
    if (entry.type !== TURN_OPENED || entry.key === `#${turnId}` || !isObject(entry.value)) return [entry];
    const { sealed: _, ...value } = entry.value;
    return [{ ...entry, value }];
  });
}

function assertForkPoint(turnId: string, at: number, entries: readonly Entry[]): void {
  const points = forkPointsOf(turnId, entries);
  // guard: fork-point-checked
  if (points.includes(at)) return;
  const nearest = nearestPoint(points, at);
  const [first = 0, last = 0] = [points[0], points.at(-1)];
  const reason =
    nearest === undefined
      ? 'no entry of it leaves every effect ended'
      : at < first || at > last
        ? `it is open from entry ${first} to ${last}`
        : 'it has ended there, an effect was started and its end is not recorded, so it may have happened, or an ' +
          'approval is answered and what it is for has not ended, so the answer would count twice';
  const advice = nearest === undefined ? '' : ` The nearest entry that works is ${nearest}.`;
  const message = `Turn ${turnId} cannot be forked at entry ${at}: ${reason}.${advice}`;
  throw new LoopError('FORK_REFUSED', message, { turnId, at, ...(nearest !== undefined && { nearest }) });
}

function rootsIn(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(entries.flatMap(({ key, type }) => (type === 'call.started' && !key.includes('/') ? [key] : [])));
}

/** Returns the turns that have started and not ended. */
function openRootsIn(entries: readonly Entry[]): readonly string[] {
  const open = new Set<string>();
  for (const { key, type } of entries) {
    if (key.includes('/')) continue;
    if (type === 'call.started' || type === 'call.reopened') open.add(key);
    else if (type === 'call.completed' || type === 'call.errored') open.delete(key);
  }
  return [...open];
}

/** Returns the end of another turn that is open at the entry: the fork must not continue it. */
function endOf(root: string, at: number): Entry {
  const reason = 'it is not the turn that was forked';
  const error = { code: 'CANCELLED', message: `The run ${root} was cancelled: ${reason}`, data: { reason } };
  return { seq: 0, at, type: 'call.errored', key: root, error };
}

function newIdsOf(turnIds: readonly string[], from: string, to: string): ReadonlyMap<string, string> {
  const prefixed = turnIds.filter((turnId) => turnId.startsWith(`${from}.`));
  return new Map(prefixed.map((turnId) => [turnId, `${to}${turnId.slice(from.length)}`]));
}

/** Writes all entries of a new session in one append, with their blobs, and makes its turn due. */
async function writeSession(
  store: Store,
  { from, to, turnId }: { readonly from: string; readonly to: string; readonly turnId: string },
  entries: readonly Entry[],
): Promise<void> {
  const { fence } = await store.journal.claim(to);
  try {
    for (const digest of new Set(entries.flatMap(({ definitionDigest }) => definitionDigest ?? [])))
      await copyBlob(store, from, to, digest);
    const stored: Entry[] = [];
    for (const [seq, entry] of entries.entries()) stored.push({ ...(await withBlobs(store, to, entry)), seq });
    const due = [{ turn: turnId, dueAt: 0 }];
    await store.journal.append({ session: to, fence, firstSeq: 0, entries: stored, due });
  } catch (thrown) {
    // An empty session would stay in the store. The reason of the failure matters more than that of the removal.
    await store.journal.remove(to).catch(() => undefined);
    throw thrown;
  }
}

async function copyBlob(store: Store, from: string, to: string, digest: string): Promise<void> {
  const text = await store.blobs.get(from, digest);
  if (text !== undefined) await store.blobs.put(to, digest, text);
}

/** Stores the value of an entry whose value was a blob; renaming may have changed it. */
async function withBlobs(store: Store, session: string, entry: Entry): Promise<Entry> {
  if (entry.blob === undefined) return entry;
  const { text, parts } = splitIntoBlobs(entry.value);
  const blob = digestOfText(text);
  for (const [digest, part] of [[blob, text] as const, ...parts]) await store.blobs.put(session, digest, part);
  return { ...entry, blob };
}
