/**
 * The consistency of the effects and approvals of one receipt: an effect has the state that its entries show, and what
 * was executed is what was approved.
 */
import type { ReceiptApproval, ReceiptEffect, ReceiptPredicate } from '../../protocol/receipt.js';
import type { ReceiptReason } from './reasons.js';

/** Returns the first thing that is inconsistent; undefined if nothing is. */
export function effectProblem({ effects, approvals, journal }: ReceiptPredicate): ReceiptReason | undefined {
  const byKey = new Map<string, ReceiptEffect>();
  for (const effect of effects) {
    if (byKey.has(effect.key)) return 'effect_duplicate';
    byKey.set(effect.key, effect);
    const problem = stateProblem(effect, journal.count);
    if (problem !== undefined) return problem;
  }
  const approved = new Set<string>();
  for (const approval of approvals) {
    approved.add(approval.effect);
    const problem = approvalProblem(approval, byKey.get(approval.effect));
    if (problem !== undefined) return problem;
  }
  const isUnapproved = ({ key, arguments: executed }: ReceiptEffect): boolean =>
    executed !== undefined && !approved.has(key);
  return effects.some(isUnapproved) ? 'arguments_missing' : undefined;
}

function stateProblem({ state, intent, end, attempts }: ReceiptEffect, count: number): ReceiptReason | undefined {
  // guard: effect-leaf-in-range
  if ((intent ?? -1) >= count || (end ?? -1) >= count) return 'effect_leaf';
  if (intent === undefined && end === undefined) return 'effect_inconsistent';
  if (intent !== undefined && end !== undefined && end <= intent) return 'effect_inconsistent';
  if ((state === 'done' || state === 'failed') && end === undefined) return 'effect_inconsistent';
  if (state === 'denied' && (intent !== undefined || attempts !== undefined)) return 'effect_inconsistent';
  return undefined;
}

function approvalProblem(approval: ReceiptApproval, effect: ReceiptEffect | undefined): ReceiptReason | undefined {
  // An approved effect that was not started before the turn ended is not listed.
  if (effect === undefined) return undefined;
  // guard: denied-effect-not-executed
  if (!approval.approved && effect.state !== 'denied') return 'denied_effect_executed';
  if (effect.arguments === undefined) return effect.intent === undefined ? undefined : 'arguments_missing';
  // guard: executed-arguments-are-approved
  return effect.arguments === approval.arguments ? undefined : 'arguments_mismatch';
}
