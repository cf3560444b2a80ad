/**
 * Delivers answers to approvals. An answer names a pending approval by its id; if it also has a session, call, tool or
 * digest of arguments, these must be the ones of the approval. The first accepted answer wins. A refused answer is
 * journaled with its reason and has no other effect.
 */

import { LoopError } from '../base/errors.js';
import type { Ids } from '../journal/clock.js';
import { RESERVED_SESSION_PREFIX } from '../journal/reserved-sessions.js';
import type { Session } from '../kernel/session.js';
import { GRANT_GIVEN, refusalReasonOf, standingGrantOf } from '../policy/approval-answer.js';
import { APPROVAL_REQUESTED } from '../policy/approval-request.js';
import type { Approval, ApprovalAnswer, RecordedAnswer } from '../protocol/approval.js';
import type { PendingStep, Signal } from '../protocol/session.js';
import { Approvals } from '../views/approvals.js';
import { isoTime } from '../views/iso-time.js';
import { pendingSignalOf } from '../views/turns.js';
import type { StoredTurn } from './archive.js';
import type { RunningTurn } from './running-turn.js';

/** The id of the session that records refused answers to approvals of unknown turns. */
export const REFUSALS_SESSION_ID = `${RESERVED_SESSION_PREFIX}refusals`;
const APPROVAL_REFUSED = 'rondo.approval.refused';

/** What `answerApproval` needs to check and record an answer. */
interface AnswerContext {
  /** The open session of the approval, or of refusals if the turn is unknown. */
  readonly session: Session;
  /** The approvals of that session; undefined if the turn is unknown. */
  readonly approvals: Approvals | undefined;
  /** The current time in milliseconds since the epoch. */
  readonly now: number;
  readonly ids: Ids;
}

/**
 * Delivers an answer to its turn, records the standing grant that it contains, and returns the approval. Throws
 * ANSWER_REFUSED, and journals the refusal, if the answer is not accepted.
 */
export async function answerApproval(answer: ApprovalAnswer, context: AnswerContext): Promise<Approval> {
  const { id, approved, by, reason, standing } = answer;
  const { session, approvals, now } = context;
  const refusal = refusalReasonOf(answer, approvals?.get(id), now);
  const approval = approvals?.get(id)?.approval;
  if (refusal !== undefined || approval === undefined)
    throw await refuseAnswer(answer, context, refusal ?? 'there is no such approval');
  const value = { approved, by, at: now, ...(reason !== undefined && { reason }) };
  // The signal id is the same for all answers to an approval, so of two concurrent answers the second conflicts.
  const signal = { id: `approval ${id}`, name: `approval ${id}`, value };
  const isAccepted = await session.signal(signal).catch((thrown: unknown) => {
    if (thrown instanceof LoopError && thrown.code === 'SIGNAL_CONFLICT') return false;
    throw thrown;
  });
  if (!isAccepted) throw await refuseAnswer(answer, context, 'it was answered before');
  if (standing !== undefined) await session.recordFact(GRANT_GIVEN, id, standingGrantOf(approval, answer, now));
  return approval;
}

/**
 * Returns the approval that an answer names if the same answer (approved or denied) by the same person is recorded for
 * it; undefined otherwise. A client that lost the reply to its answer sends the answer again and gets this approval.
 */
export function findAnsweredApproval({ id, approved, by }: ApprovalAnswer, stored: StoredTurn): Approval | undefined {
  const { sessionId } = stored.identity;
  const approvals = new Approvals(sessionId);
  // The view drops the details of approvals when their turn ends, so the end of the turn is left out.
  for (const entry of stored.entries) if (entry !== stored.turn.endedEntry) approvals.apply(entry);
  const state = approvals.get(id);
  return state?.answer?.approved === approved && state.answer.by === by ? state.approval : undefined;
}

/** Journals a refused answer and returns the error to throw. */
async function refuseAnswer(
  answer: ApprovalAnswer,
  { session, approvals, ids }: AnswerContext,
  reason: string,
): Promise<LoopError> {
  const { id, approved, by } = answer;
  const refusal = `The answer of ${by} to ${id} was refused: ${reason}`;
  const fact = { id, approved, by, code: 'ANSWER_REFUSED', message: `${refusal}.` };
  // guard: refused-answer-recorded
  await session.recordFact(APPROVAL_REFUSED, ids.id(), fact);
  const earlier = approvals?.get(id)?.answer;
  if (earlier === undefined) return new LoopError('ANSWER_REFUSED', fact.message, { id, reason });
  const message = `${refusal} (${describeAnswer(earlier)}).`;
  return new LoopError('ANSWER_REFUSED', message, { id, reason, earlier: { ...earlier } });
}

function describeAnswer({ approved, by, at }: RecordedAnswer): string {
  return `it was ${approved ? 'approved' : 'denied'} by ${by} at ${isoTime(at)}`;
}

/** Returns the signal that denies an expired approval. */
function expirySignal(id: string, expiresAt: string, at: number): Signal {
  const value = { approved: false, by: 'rondo', at, expired: true, reason: `it was not answered before ${expiresAt}` };
  return { id: `approval ${id}`, name: `approval ${id}`, value };
}

/** Denies the approvals that expired while a turn was paused. Call it before the turn continues. */
export async function expireApprovals(turn: RunningTurn, session: Session, now: number): Promise<void> {
  if (!turn.entries.some(({ type }) => type === APPROVAL_REQUESTED)) return;
  for (const { id, expiresAt } of turn.agentState.approvals.pending()) {
    if (now > Date.parse(expiresAt)) await session.signal(expirySignal(id, expiresAt, now));
  }
}

/**
 * Returns when the first of the approvals that a paused turn waits for has expired, in milliseconds since the epoch;
 * undefined if it waits for none.
 */
export function nextExpiryOf(turn: RunningTurn, pending: readonly PendingStep[]): number | undefined {
  const ids = new Set<string | undefined>();
  for (const step of pending) if (step.kind === 'signal') ids.add(pendingSignalOf(step.key, step.name).id);
  ids.delete(undefined);
  if (ids.size === 0) return undefined;
  const waiting = turn.agentState.approvals.pending().filter(({ id }) => ids.has(id));
  if (waiting.length === 0) return undefined;
  // At `expiresAt` itself an answer is still accepted.
  return Math.min(...waiting.map(({ expiresAt }) => Date.parse(expiresAt))) + 1;
}
