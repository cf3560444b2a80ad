/**
 * Answers to approvals: what an answer must contain and why one is refused. An answer refers to an approval that the runtime
 * holds; whatever else it states must agree with it.
 */
import { HIDDEN_CHARACTER } from '../base/hidden-characters.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import type { Approval, ApprovalAnswer, ApprovalState } from '../protocol/approval.js';
import type { Json } from '../protocol/json.js';
import { examplePredicate, limitedArguments, schemaAccepts } from './grant-predicate.js';

/** The type of the entry that records a standing grant. */
export const GRANT_GIVEN = 'rondo.grant.given';
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

/** The grant that an answer gives, as it is journaled. */
export function standingGrantOf(approval: Approval, { by, standing = null }: ApprovalAnswer, at: number): Json {
  const { id, tool, definitionDigest, principal, target } = approval;
  const limits = limitedArguments(standing, approval.arguments);
  const grant = { tool, definition: definitionDigest, schema: standing, limits, by, approval: id, at };
  return {
    ...grant,
    ...(principal !== undefined && { principal }),
    ...(target !== undefined && { target: { ...target } }),
  };
}

/** Why an answer is refused; undefined if it is accepted. `known` is the state of the approval that it names. */
export function refusalReasonOf(
  answer: ApprovalAnswer,
  known: ApprovalState | undefined,
  now: number,
): string | undefined {
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
