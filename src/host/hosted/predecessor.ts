/**
 * The turn before: reads its session, verifies its receipts against the entries and the keys of the store, and returns
 * its output. Nothing else of an earlier turn reaches the next one.
 */
import { TrustedKeys } from '../../base/trusted-keys.js';
import type { HostedStop } from '../../policy/stop-policy.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptStatement } from '../../protocol/receipt.js';
import type { EndedTurn } from '../../views/hosted-loop.js';
import { receiptsIn } from '../../views/receipt/sealed-receipts.js';
import type { SessionReceipts } from '../../views/receipt/verify-log.js';
import { verifySession } from '../../views/receipt/verify-store.js';
import { TURN_OPENED } from '../../views/turns.js';
import type { ReceiptKeys } from '../host-options.js';
import { sessionIdOf } from '../turn-result.js';

/** What the verification of a turn reads. */
export interface PredecessorDeps {
  readonly keys: ReceiptKeys;
  /** Returns the stored entries of a session; empty for an unknown one. */
  storedEntriesOf(sessionId: string): Promise<readonly Entry[]>;
  /** Returns the position in the log of each receipt of a session, by the hash of its envelope. It reads the whole log. */
  logIndexes(session: SessionReceipts): Promise<ReadonlyMap<string, number>>;
}

/** A verified turn, or why the loop stops because of it. */
export type VerifiedTurn =
  | { readonly output: Json | undefined; readonly stop?: undefined }
  | { readonly stop: HostedStop };

/**
 * Verifies an ended turn of a hosted loop, of which the loop has recorded `ended`. If turns share a session, what the open
 * turn did there is verified after its end: no receipt covers it yet.
 */
export async function verifyPredecessor(
  deps: PredecessorDeps,
  loop: string,
  ended: EndedTurn,
  openTurnId?: string,
): Promise<VerifiedTurn> {
  const { turnId, receipt, turn } = ended;
  const sessionId = sessionIdOf(turnId);
  const name = `turn ${loop}#${turn} (${turnId})`;
  const entries = beforeTurn(openTurnId, await deps.storedEntriesOf(sessionId));
  const receipts = receiptsIn(entries).filter((each) => each.turn === turnId);
  const recorded = receipts.find(({ hash }) => receipt === `sha256:${hash}`);
  // guard: predecessor-has-its-receipt
  if (recorded === undefined) return missing(`The receipt ${receipt} of ${name} is not in the store.`);
  // guard: newer-receipt-is-stale
  if (receipts.at(-1) !== recorded)
    return { stop: { reason: 'stale_projection', message: `The ${name} went on after its receipt ${receipt}.` } };
  const { reasons, statements } = await verifiedSession(deps, sessionId, entries);
  // guard: invalid-receipt-stops
  if (reasons.length > 0) return missing(`The receipt of ${name} is not valid: ${reasons.join(', ')}.`);
  const statement = statements.find(({ predicate }) => predicate.sequence === recorded.sequence);
  const difference = statement === undefined ? 'its receipt' : differenceOf(statement, loop, ended);
  // guard: receipt-is-that-of-the-turn
  if (difference !== undefined)
    return missing(`The receipt of ${name} is that of another turn: it has another ${difference}.`);
  return { output: outputOf(turnId, entries) };
}

function beforeTurn(turnId: string | undefined, entries: readonly Entry[]): readonly Entry[] {
  const opened = entries.findIndex(({ type, key }) => type === TURN_OPENED && key === `#${turnId}`);
  return opened === -1 ? entries : entries.slice(0, opened);
}

function missing(message: string): VerifiedTurn {
  return { stop: { reason: 'missing_receipt', message } };
}

/** Verifies a session. The log, which can be long, is read only if a key is limited to a part of it. */
async function verifiedSession(
  { keys, logIndexes }: PredecessorDeps,
  sessionId: string,
  entries: readonly Entry[],
): Promise<ReturnType<typeof verifySession>> {
  const trusted = new TrustedKeys((await keys.list()).keys);
  const verified = verifySession(sessionId, entries, trusted);
  if (!verified.reasons.includes('key_needs_log_proof')) return verified;
  const indexes = await logIndexes({ id: sessionId, receipts: receiptsIn(entries) });
  return verifySession(sessionId, entries, trusted, (hash) => indexes.get(hash));
}

/** Returns what a receipt says of another turn than the one that the loop recorded; undefined if nothing. */
function differenceOf({ predicate }: ReceiptStatement, loop: string, ended: EndedTurn): string | undefined {
  const { hosted, state, final } = predicate;
  if (hosted?.loop !== loop || hosted.turn !== ended.turn) return 'number';
  if (hosted.head !== ended.head) return 'projection';
  if (hosted.previous !== ended.previous) return 'predecessor';
  return final && state === ended.status ? undefined : 'state';
}

function outputOf(turnId: string, entries: readonly Entry[]): Json | undefined {
  return entries.findLast(({ key, type }) => key === turnId && type === 'call.completed')?.value;
}
