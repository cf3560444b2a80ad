/**
 * Answers to approvals. An answer only points at what the runtime holds: whatever it says beside that must agree, and
 * what does not is refused, runs nothing, and is journaled with its reason. The first answer that is taken is the answer.
 */

import { LoopError } from '../base/errors.js';
import type { Ids } from '../journal/clock.js';
import type { Session } from '../kernel/session.js';
import { GRANT_GIVEN, refusalReasonOf, standingGrantOf } from '../policy/approval-answer.js';
import { APPROVAL_REQUESTED } from '../policy/approval-request.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Signal } from '../protocol/session.js';
import { Approvals } from '../views/approvals.js';
import type { StoredTurn } from './archive.js';
import type { RunningTurn } from './running-turn.js';

/** The session in which answers are journaled that belong to no session there is. */
export const REFUSALS_SESSION = 'rondo:refusals';
const APPROVAL_REFUSED = 'rondo.approval.refused';
/** Where an answer is given: a session that is open, and what is known of its approvals. */
export interface AnswerContext {
  readonly session: Session;
  readonly approvals: Approvals | undefined;
  readonly now: number;
  readonly ids: Ids;
}

/** Takes an answer, or refuses and journals it. */
export async function answerApproval(answer: ApprovalAnswer, place: AnswerContext): Promise<Approval> {
  const { id, approved, by, reason, standing } = answer;
  const { session, approvals, now } = place;
  const why = refusalReasonOf(answer, approvals?.get(id), now);
  const approval = approvals?.get(id)?.approval;
  if (why !== undefined || approval === undefined)
    throw await refuseAnswer(answer, place, why ?? 'there is no such approval');
  const value = { approved, by, at: now, ...(reason !== undefined && { reason }) };
  // One delivery for each approval: a second answer, given in the same moment, conflicts with the first.
  const signal = { id: `approval ${id}`, name: `approval ${id}`, value };
  const taken = await session.signal(signal).catch((thrown: unknown) => {
    if (thrown instanceof LoopError && thrown.code === 'SIGNAL_CONFLICT') return false;
    throw thrown;
  });
  if (!taken) throw await refuseAnswer(answer, place, 'it was answered before');
  if (standing !== undefined) await session.recordFact(GRANT_GIVEN, id, standingGrantOf(approval, answer, now));
  return approval;
}

/** The approval that this very answer was taken for, if it was: then its acknowledgement was lost on the way. */
export function findIdenticalAnswer({ id, approved, by }: ApprovalAnswer, known: StoredTurn): Approval | undefined {
  const { turnId, sessionId } = known.identity;
  const approvals = new Approvals(sessionId);
  // Details of an approval are kept until its turn ends.
  for (const entry of known.entries)
    if (entry.key !== turnId || entry !== known.turn.endedEntry) approvals.apply(entry);
  const found = approvals.get(id);
  return found?.answer?.approved === approved && found.answer.by === by ? found.approval : undefined;
}

/** Journals why an answer was not taken; the error to throw. */
export async function refuseAnswer(
  answer: ApprovalAnswer,
  { session, ids }: AnswerContext,
  why: string,
): Promise<LoopError> {
  const { id, approved, by } = answer;
  const message = `The answer of ${by} to ${id} was not taken: ${why}.`;
  // guard: refused-answer-recorded
  await session.recordFact(APPROVAL_REFUSED, ids.id(), { id, approved, by, code: 'ANSWER_REFUSED', message });
  return new LoopError('ANSWER_REFUSED', message, { id, reason: why });
}

/** What ends an approval that nobody answered in time. */
function expirySignal(id: string, expiresAt: string, at: number): Signal {
  const value = { approved: false, by: 'rondo', at, expired: true, reason: `nobody answered before ${expiresAt}` };
  return { id: `approval ${id}`, name: `approval ${id}`, value };
}

/** Ends the approvals of a turn that expired while it waited. Call it before the turn continues. */
export async function expireApprovals(turn: RunningTurn, session: Session, now: number): Promise<void> {
  if (!turn.entries.some(({ type }) => type === APPROVAL_REQUESTED)) return;
  for (const { id, expiresAt } of turn.agentState.approvals.pending()) {
    if (now > Date.parse(expiresAt)) await session.signal(expirySignal(id, expiresAt, now));
  }
}
