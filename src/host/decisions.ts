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
import type { Known } from './archive.js';
import { examplePredicate, fits, limitedArguments } from './predicate.js';

/** The session in which answers are journaled that belong to no session there is. */
export const NOBODY = 'rondo:refusals';
const REFUSED = 'rondo.approval.refused';
const GRANTED = 'rondo.grant.given';
const LONGEST = 4000;

const MEMBERS = optionKeys<ApprovalAnswer>({
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
export interface Place {
  readonly session: Session;
  readonly approvals: Approvals | undefined;
  readonly now: number;
  readonly ids: Ids;
}

/** The turn that an approval's id names. */
export function turnOfApproval(id: string): string {
  return id.slice(0, Math.max(0, id.lastIndexOf(':')));
}

/** A copy of an answer, read once; what is no answer at all is refused before anything is looked up. */
export function answerOf(given: ApprovalAnswer): ApprovalAnswer {
  // guard: answer-read-once
  const answer = { ...given };
  assertAnswer(answer);
  return answer;
}

function assertAnswer(answer: ApprovalAnswer): void {
  assertKnownKeys(answer, MEMBERS, 'An answer has no');
  const { id, approved, by } = answer;
  const texts = [id, by, ...[answer.reason, answer.sessionId, answer.callId, answer.tool, answer.argumentsDigest]];
  if (texts.some((text) => text !== undefined && (typeof text !== 'string' || text.length > LONGEST)))
    throw new TypeError(`The parts of an answer are text of at most ${LONGEST} characters.`);
  if (id === '' || by.trim() === '' || typeof approved !== 'boolean')
    throw new TypeError('An answer needs an id, whether it approves (true or false), and who gives it.');
}

/** Takes an answer, or refuses and journals it. */
export async function decide(answer: ApprovalAnswer, place: Place): Promise<Approval> {
  const { id, approved, by, reason, standing } = answer;
  const { session, approvals, now } = place;
  const why = refusalOf(answer, approvals, now);
  const approval = approvals?.get(id)?.approval;
  if (why !== undefined || approval === undefined)
    throw await refuse(answer, place, why ?? 'there is no such approval');
  const value = { approved, by, at: now, ...(reason !== undefined && { reason }) };
  // One delivery for each approval: a second answer, given in the same moment, conflicts with the first.
  const signal = { id: `approval ${id}`, name: `approval ${id}`, value };
  const taken = await session.signal(signal).catch((thrown: unknown) => {
    if (thrown instanceof LoopError && thrown.code === 'SIGNAL_CONFLICT') return false;
    throw thrown;
  });
  if (!taken) throw await refuse(answer, place, 'it was answered before');
  if (standing !== undefined) await session.note(GRANTED, id, grantOf(approval, answer, now));
  return approval;
}

/** The approval that this very answer was taken for, if it was: then its acknowledgement was lost on the way. */
export function answeredAlike({ id, approved, by }: ApprovalAnswer, known: Known): Approval | undefined {
  const { turnId, sessionId } = known.identity;
  const approvals = new Approvals(sessionId);
  // Details of an approval are kept until its turn ends.
  for (const entry of known.entries) if (entry.key !== turnId || entry !== known.turn.ended) approvals.apply(entry);
  const found = approvals.get(id);
  return found?.answered?.approved === approved && found.answered.by === by ? found.approval : undefined;
}

/** Journals why an answer was not taken; the error to throw. */
export async function refuse(answer: ApprovalAnswer, { session, ids }: Place, why: string): Promise<LoopError> {
  const { id, approved, by } = answer;
  const message = `The answer of ${by} to ${id} was not taken: ${why}.`;
  // guard: refused-answer-recorded
  await session.note(REFUSED, ids.id(), { id, approved, by, code: 'DECISION_REFUSED', message });
  return new LoopError('DECISION_REFUSED', message, { id, reason: why });
}

function grantOf(approval: Approval, { by, standing = null }: ApprovalAnswer, at: number): Json {
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
function refusalOf(answer: ApprovalAnswer, approvals: Approvals | undefined, now: number): string | undefined {
  const known = approvals?.get(answer.id);
  if (known === undefined) return 'there is no such approval';
  // guard: second-answer-refused
  if (known.answered !== undefined) return 'it was answered before';
  const { approval } = known;
  // guard: answer-to-ended-turn-refused
  if (known.over || approval === undefined) return 'nobody waits for it any more';
  const other = (['sessionId', 'callId', 'tool', 'argumentsDigest'] as const).find(
    (name) => answer[name] !== undefined && answer[name] !== approval[name],
  );
  // guard: answer-bound-to-its-call
  if (other !== undefined) return `its ${other} is another`;
  // guard: agent-cannot-answer
  if (isAgent(answer.by, approval)) return 'an agent may not answer for itself';
  // guard: only-approvers-answer
  if (approval.approvers !== undefined && !approval.approvers.includes(answer.by))
    return `${answer.by} may not answer it`;
  // guard: expired-approval-takes-no-answer
  if (now > Date.parse(approval.expiresAt)) return `it expired at ${approval.expiresAt}`;
  return answer.standing === undefined ? undefined : predicateFlaw(answer, approval);
}

/** Whoever is part of the call, or says to be an agent, is none of those who are asked; however the name is spelt. */
function isAgent(by: string, { path }: Approval): boolean {
  // guard: name-of-answerer-normalized
  const name = spelt(by);
  return name.startsWith('agent:') || path.some((loop) => spelt(loop) === name);
}

/** A name as it reads: width, case, and what cannot be seen make no other person. */
function spelt(name: string): string {
  return name.replace(BLANK, '').normalize('NFKC').replace(BLANK, '').toLowerCase();
}

const BLANK = new RegExp(`${HIDDEN_CHARACTER}|[\\p{Z}\\s]`, 'gu');

/** A grant must limit the value or range of an argument, and hold for the call that it is given with. */
function predicateFlaw({ approved, standing = null }: ApprovalAnswer, approval: Approval): string | undefined {
  // guard: denial-is-no-grant
  if (!approved) return 'a denial cannot stand for further calls';
  const { arguments: given } = approval;
  if (!fits(standing, given)) return 'its predicate does not hold for this very call, or cannot be used';
  // guard: grant-limits-an-argument
  if (limitedArguments(standing, given).length > 0) return undefined;
  return (
    'a standing grant needs a written predicate: a JSON Schema that limits the value or the range of at least one argument ' +
    `of this call, like ${examplePredicate(given)}; type, required and not limit no value`
  );
}

/** What ends an approval that nobody answered in time. */
export function expiry(id: string, expiresAt: string, at: number): Signal {
  const value = { approved: false, by: 'rondo', at, expired: true, reason: `nobody answered before ${expiresAt}` };
  return { id: `approval ${id}`, name: `approval ${id}`, value };
}
