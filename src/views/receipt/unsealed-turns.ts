/**
 * What the receipts of a session do not cover: entries of turns after the last receipt of the turn, and entries after
 * the terminal receipt. A process that is killed leaves such entries, and they are what an effect without a receipt is
 * noticed by.
 */
import { ownProperty } from '../../base/own-property.js';
import type { Entry } from '../../protocol/entry.js';
import { APPROVAL_SIGNAL_PREFIX, forkedEntryOf, TURN_OPENED } from '../turns.js';
import { receiptIn } from './sealed-receipts.js';
import { isTurnFact } from './turn-fold.js';

/** What is known about a turn of the session. */
interface TurnCover {
  /** The sequence number of the last entry that a receipt covers. */
  coveredTo: number;
  lastSeq: number;
  startSeq: number | undefined;
  isSealed: boolean;
}

/** Returns the turns that have entries which no receipt covers, in their order. The entries have their values. */
export function unsealedTurns(entries: readonly Entry[]): readonly string[] {
  const turns = new Map<string, TurnCover>();
  const coverOf = (turn: string): TurnCover => {
    const known = turns.get(turn) ?? { coveredTo: -1, lastSeq: -1, startSeq: undefined, isSealed: false };
    turns.set(turn, known);
    return known;
  };
  for (const entry of entries) {
    const receipt = receiptIn(entry);
    if (receipt !== undefined) {
      Object.assign(coverOf(receipt.turn), { coveredTo: receipt.to, isSealed: true });
      continue;
    }
    const turn = turnOf(entry);
    if (turn === undefined) continue;
    const cover = coverOf(turn);
    cover.lastSeq = entry.seq;
    if (entry.type === 'call.started' && entry.key === turn) cover.startSeq = entry.seq;
    if (entry.type === TURN_OPENED && ownProperty(entry.value, 'sealed') === true) cover.isSealed = true;
  }
  const copiedTo = lastCopiedSeq(entries);
  return [...turns].flatMap(([turn, { coveredTo, lastSeq, startSeq, isSealed }]) => {
    // The other turns of a fork are history: their receipts are in the session that they were copied from.
    const isHistory = startSeq === undefined || (!isSealed && startSeq <= copiedTo);
    // guard: unsealed-turn-noticed
    return lastSeq > coveredTo && !isHistory ? [turn] : [];
  });
}

/** Returns how many entries follow the terminal receipt of a session; 0 if it has none. */
export function entriesAfterClosed(entries: readonly Entry[]): number {
  const at = entries.findIndex((entry) => receiptIn(entry)?.state === 'closed');
  return at === -1 ? 0 : entries.length - at - 1;
}

/** Returns the turn that an entry belongs to; undefined for those of the session. */
function turnOf({ key, type, name = '', turnId }: Entry): string | undefined {
  if (type === 'signal.received')
    return name.startsWith(APPROVAL_SIGNAL_PREFIX)
      ? name.slice(APPROVAL_SIGNAL_PREFIX.length, name.lastIndexOf(':'))
      : turnId;
  if (key.startsWith('#')) return isTurnFact(type) ? key.slice(1) : undefined;
  const slash = key.indexOf('/');
  return slash === -1 ? key : key.slice(0, slash);
}

/** Returns the sequence number of the last entry that a fork copied; -1 if the session is no fork. */
function lastCopiedSeq(entries: readonly Entry[]): number {
  const forked = forkedEntryOf(entries);
  const copied = ownProperty(forked?.value, 'copied');
  return forked === undefined || typeof copied !== 'number' ? -1 : forked.seq + copied;
}
