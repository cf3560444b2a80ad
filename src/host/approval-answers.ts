/**
 * Answers to approvals. An answer only points at what the runtime holds: whatever it says beside that must agree, and
 * what does not is refused, runs nothing, and is journaled with its reason. The first answer that is taken is the answer.
 */

import { LoopError } from '../base/errors.js';
import { HIDDEN_CHARACTER } from '../base/hidden-characters.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import type { Ids } from '../journal/clock.js';
import type { Session, Signal } from '../kernel/session.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Json } from '../protocol/json.js';
import { Approvals } from '../views/approvals.js';
import type { StoredTurn } from './archive.js';
import { examplePredicate, limitedArguments, schemaAccepts } from './grant-predicate.js';

/** The session in which answers are journaled that belong to no session there is. */
export const REFUSALS_SESSION = 'rondo:refusals';
const APPROVAL_REFUSED = 'rondo.approval.refused';
const GRANT_GIVEN = 'rondo.grant.given';
const MAX_ANSWER_FIELD_CHARS = 4000;

const ANSWER_FIELDS = optionKeys<ApprovalAnswer>({
  id: true,
  approved: true,
  by: true,
  reason: true,
  sessionId: true,
  callId: true,
  tool: true,
  argumentsDigest: true,
  standing: true,
});

/** Where an answer is given: a session that is open, and what is known of its approvals. */
export interface AnswerContext {
  readonly session: Session;
  readonly approvals: Approvals | undefined;
  readonly now: number;
  readonly ids: Ids;
}

/** The turn that an approval's id names. */
export function turnIdOfApproval(id: string): string {
  return id.slice(0, Math.max(0, id.lastIndexOf(':')));
}

/** A copy of an answer, read once; what is no answer at all is refused before anything is looked up. */
export function validatedAnswer(given: ApprovalAnswer): ApprovalAnswer {
  // guard: answer-read-once
  const answer = { ...given };
  assertAnswer(answer);
  return answer;
}

function assertAnswer(answer: ApprovalAnswer): void {
  assertKnownKeys(answer, ANSWER_FIELDS, 'An answer has no');
  const { id, approved, by } = answer;
  const texts = [id, by, ...[answer.reason, answer.sessionId, answer.callId, answer.tool, answer.argumentsDigest]];
  if (texts.some((text) => text !== undefined && (typeof text !== 'string' || text.length > MAX_ANSWER_FIELD_CHARS)))
    throw new TypeError(`The parts of an answer are text of at most ${MAX_ANSWER_FIELD_CHARS} characters.`);
  if (id === '' || by.trim() === '' || typeof approved !== 'boolean')
    throw new TypeError('An answer needs an id, whether it approves (true or false), and who gives it.');
}

/** Takes an answer, or refuses and journals it. */
export async function answerApproval(answer: ApprovalAnswer, place: AnswerContext): Promise<Approval> {
  const { id, approved, by, reason, standing } = answer;
  const { session, approvals, now } = place;
  const why = refusalReasonOf(answer, approvals, now);
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

function standingGrantOf(approval: Approval, { by, standing = null }: ApprovalAnswer, at: number): Json {
  const { id, tool, definitionDigest, principal, target } = approval;
  const limits = limitedArguments(standing, approval.arguments);
  const grant = { tool, definition: definitionDigest, schema: standing, limits, by, approval: id, at };
  return {
    ...grant,
    ...(principal !== undefined && { principal }),
    ...(target !== undefined && { target: { ...target } }),
  };
}

/** Why an answer cannot be taken; undefined if it can. */
function refusalReasonOf(answer: ApprovalAnswer, approvals: Approvals | undefined, now: number): string | undefined {
  const known = approvals?.get(answer.id);
  if (known === undefined) return 'there is no such approval';
  // guard: second-answer-refused
  if (known.answer !== undefined) return 'it was answered before';
  const { approval } = known;
  // guard: answer-to-ended-turn-refused
  if (known.isAbandoned || approval === undefined) return 'nobody waits for it any more';
  const other = (['sessionId', 'callId', 'tool', 'argumentsDigest'] as const).find(
    (name) => answer[name] !== undefined && answer[name] !== approval[name],
  );
  // guard: answer-bound-to-its-call
  if (other !== undefined) return `its ${other} is another`;
  // guard: agent-cannot-answer
  if (isAnsweredByAgent(answer.by, approval)) return 'an agent may not answer for itself';
  // guard: only-approvers-answer
  if (approval.approvers !== undefined && !approval.approvers.includes(answer.by))
    return `${answer.by} may not answer it`;
  // guard: expired-approval-takes-no-answer
  if (now > Date.parse(approval.expiresAt)) return `it expired at ${approval.expiresAt}`;
  return answer.standing === undefined ? undefined : predicateProblem(answer, approval);
}

/** Whoever is part of the call, or says to be an agent, is none of those who are asked; however the name is spelt. */
function isAnsweredByAgent(by: string, { path }: Approval): boolean {
  // guard: name-of-answerer-normalized
  const name = normalizeName(by);
  return name.startsWith('agent:') || path.some((loop) => normalizeName(loop) === name);
}

/** A name as it reads: width, case, and what cannot be seen make no other person. */
function normalizeName(name: string): string {
  return name.replace(INVISIBLE_OR_BLANK, '').normalize('NFKC').replace(INVISIBLE_OR_BLANK, '').toLowerCase();
}

const INVISIBLE_OR_BLANK = new RegExp(`${HIDDEN_CHARACTER}|[\\p{Z}\\s]`, 'gu');

/** A grant must limit the value or range of an argument, and hold for the call that it is given with. */
function predicateProblem({ approved, standing = null }: ApprovalAnswer, approval: Approval): string | undefined {
  // guard: denial-is-no-grant
  if (!approved) return 'a denial cannot stand for further calls';
  const { arguments: given } = approval;
  if (!schemaAccepts(standing, given)) return 'its predicate does not hold for this very call, or cannot be used';
  // guard: grant-limits-an-argument
  if (limitedArguments(standing, given).length > 0) return undefined;
  return (
    'a standing grant needs a written predicate: a JSON Schema that limits the value or the range of at least one argument ' +
    `of this call, like ${examplePredicate(given)}; type, required and not limit no value`
  );
}

/** What ends an approval that nobody answered in time. */
export function expirySignal(id: string, expiresAt: string, at: number): Signal {
  const value = { approved: false, by: 'rondo', at, expired: true, reason: `nobody answered before ${expiresAt}` };
  return { id: `approval ${id}`, name: `approval ${id}`, value };
}
