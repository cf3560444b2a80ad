/**
 * The comparison of a receipt with the journal that it is about: its root is that of the entries, and the loop, the
 * outcome, the effects and the approvals that it names are those of the entries. It needs the secret salt of the receipt.
 */
import { jsonEquals } from '../../json/value.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptEffect, ReceiptPredicate } from '../../protocol/receipt.js';
import { foldTurn, isEntryOfTurn, type TurnFoldOptions } from './turn-fold.js';

/** What differs between a receipt and the journal. */
export type TurnMismatch =
  | 'entries_mismatch'
  | 'root_mismatch'
  | 'loop_mismatch'
  | 'principal_mismatch'
  | 'outcome_mismatch'
  | 'approvals_mismatch'
  | 'effects_mismatch';

/**
 * Compares a receipt with the stored entries of its session, of which those of other turns are ignored. Returns what
 * differs; empty if nothing does.
 */
export function verifyTurnEntries(
  predicate: ReceiptPredicate,
  entries: readonly Entry[],
  salt: Uint8Array,
  options?: TurnFoldOptions,
): readonly TurnMismatch[] {
  const { turn, journal } = predicate;
  const { from, to, count } = journal;
  const covered = entries.filter((entry) => entry.seq <= to && isEntryOfTurn(entry, turn));
  const part = foldTurn(turn, covered, from, salt, options);
  const differs = (a: unknown, b: unknown): boolean => !jsonEquals(a as Json, b as Json);
  const found: TurnMismatch[] = [];
  const isWholeRange = part.journal.from === from && part.journal.to === to && part.journal.count === count;
  if (!isWholeRange) found.push('entries_mismatch');
  // guard: receipt-root-compared
  if (part.journal.root !== journal.root) found.push('root_mismatch');
  // guard: receipt-loop-compared
  if (differs(part.loop, predicate.loop)) found.push('loop_mismatch');
  if (part.principal !== predicate.principal) found.push('principal_mismatch');
  if (hasOtherOutcome(part, predicate)) found.push('outcome_mismatch');
  if (differs(part.approvals, predicate.approvals)) found.push('approvals_mismatch');
  // guard: receipt-effects-compared
  if (differs(asStated(part.effects, predicate.effects), predicate.effects)) found.push('effects_mismatch');
  return found;
}

/** Returns the effects without the resolutions of those whose receipt names none: earlier versions did not. */
function asStated(effects: readonly ReceiptEffect[], stated: readonly ReceiptEffect[]): readonly ReceiptEffect[] {
  return effects.map((effect, index) => {
    const { resolutions, ...rest } = effect;
    return resolutions !== undefined && stated[index]?.resolutions === undefined ? rest : effect;
  });
}

type Outcome = Pick<ReceiptPredicate, 'state' | 'final' | 'code' | 'reason'>;

/**
 * True if the outcome of a receipt is not that of the entries. While a turn has no end, the host may state why it did
 * not continue; a stated end must be recorded. A turn that failed can be retried, so it need not be final.
 */
function hasOtherOutcome(recorded: Outcome, stated: Outcome): boolean {
  if (!recorded.final) return stated.state === 'ok' || (stated.final && stated.state !== 'refused');
  if (recorded.state === 'ok' && !stated.final) return true;
  return recorded.state !== stated.state || recorded.code !== stated.code || recorded.reason !== stated.reason;
}
