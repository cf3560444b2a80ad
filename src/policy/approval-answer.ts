/**
 * Answers to approvals: what an answer must contain, and why one is refused. An answer names an approval by its id;
 * every other detail that it states must match that approval.
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

/** Returns the id of the turn that an approval belongs to, which is the part of its id before the last `:`. */
export function turnIdOfApproval(id: string): string {
  return id.slice(0, Math.max(0, id.lastIndexOf(':')));
}

/**
 * Returns a validated copy of an answer. Throws a TypeError if it is malformed. The answer is read once, so a getter
 * cannot change it after the validation.
 */
export function validatedAnswer(input: ApprovalAnswer): ApprovalAnswer {
  // guard: answer-read-once
  const answer = { ...input };
  assertAnswer(answer);
  return answer;
}

function assertAnswer(answer: ApprovalAnswer): void {
  assertKnownKeys(answer, ANSWER_FIELDS, 'An answer has no');
  const { id, approved, by } = answer;
  const texts = [id, by, ...[answer.reason, answer.sessionId, answer.callId, answer.tool, answer.argumentsDigest]];
  if (texts.some((text) => text !== undefined && (typeof text !== 'string' || text.length > MAX_ANSWER_FIELD_CHARS)))
    throw new TypeError(`The fields of an answer are strings of at most ${MAX_ANSWER_FIELD_CHARS} characters.`);
  if (!isNonBlank(id) || !isNonBlank(by) || typeof approved !== 'boolean')
    throw new TypeError(
      'An answer needs an id, `approved` (true or false) and `by`, the name of the person who answers.',
    );
}

function isNonBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

/** Returns the standing grant that an answer gives, as it is journaled. */
export function standingGrantOf(approval: Approval, { by, standing = null }: ApprovalAnswer, at: number): Json {
  const { id, tool, definitionDigest, build, principal, grant, target } = approval;
  const limitedPaths = limitedArguments(standing, approval.arguments);
  const given = { tool, definition: definitionDigest, schema: standing, limitedPaths, by, approval: id, at };
  return {
    ...given,
    ...(build !== undefined && { build }),
    ...(principal !== undefined && { principal }),
    ...(grant !== undefined && { grant }),
    ...(target !== undefined && { target: { ...target } }),
  };
}

/**
 * Returns why an answer is refused; undefined if it is accepted. `state` is the state of its approval, undefined if
 * there is none; `now` is in milliseconds since the epoch.
 */
export function refusalReasonOf(
  answer: ApprovalAnswer,
  state: ApprovalState | undefined,
  now: number,
): string | undefined {
  if (state === undefined) return 'there is no such approval';
  // guard: second-answer-refused
  if (state.answer !== undefined) return 'it was answered before';
  const { approval } = state;
  // guard: answer-to-ended-turn-refused
  if (state.isAbandoned || approval === undefined) return 'its turn no longer waits for it';
  const mismatch = (['sessionId', 'callId', 'tool', 'argumentsDigest'] as const).find(
    (name) => answer[name] !== undefined && answer[name] !== approval[name],
  );
  // guard: answer-bound-to-its-call
  if (mismatch !== undefined) return `its ${mismatch} does not match`;
  // guard: agent-cannot-answer
  if (isAnsweredByAgent(answer.by, approval)) return 'an agent may not answer for itself';
  // guard: only-approvers-answer
  if (approval.approvers !== undefined && !approval.approvers.includes(answer.by))
    return `${answer.by} may not answer it`;
  // guard: expired-approval-takes-no-answer
  if (now > Date.parse(approval.expiresAt)) return `it expired at ${approval.expiresAt}`;
  return answer.standing === undefined ? undefined : predicateProblem(answer, approval);
}

/** True if the name starts with `agent:` or is that of a loop on the path of the call, in any spelling variant. */
function isAnsweredByAgent(by: string, { path }: Approval): boolean {
  // guard: name-of-answerer-normalized
  const name = normalizeName(by);
  return name.startsWith('agent:') || path.some((loop) => normalizeName(loop) === name);
}

/** Normalizes a name: variants in width, case, white space or invisible characters name the same person. */
function normalizeName(name: string): string {
  return name.replace(INVISIBLE_OR_BLANK, '').normalize('NFKC').replace(INVISIBLE_OR_BLANK, '').toLowerCase();
}

const INVISIBLE_OR_BLANK = new RegExp(`${HIDDEN_CHARACTER}|[\\p{Z}\\s]`, 'gu');

/**
 * Returns why a predicate cannot be granted; undefined if it can. The predicate must cover this call and limit the
 * value or range of an argument.
 */
function predicateProblem({ approved, standing = null }: ApprovalAnswer, approval: Approval): string | undefined {
  // guard: denial-is-no-grant
  if (!approved) return 'a denial cannot give a standing grant';
  const { arguments: input } = approval;
  if (!schemaAccepts(standing, input)) return 'its predicate is not a usable JSON Schema, or does not cover this call';
  // guard: grant-limits-an-argument
  if (limitedArguments(standing, input).length > 0) return undefined;
  return (
    'a standing grant needs a written predicate: a JSON Schema that limits the value or the range of at least one ' +
    `argument of this call, for example ${examplePredicate(input)}; type, required and not do not limit a value`
  );
}
