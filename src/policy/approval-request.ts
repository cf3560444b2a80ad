/**
 * Approval requests: what an approval is bound to, and whether the call may still run after the answer. A change of the
 * arguments, the definition, the build, the target or the authority (who may answer) requires another approval.
 */
import { LoopError } from '../base/errors.js';
import { escapeForDisplay } from '../base/escape-text.js';
import { ownProperty } from '../base/own-property.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef } from '../protocol/loop.js';

/** The type of the entry that records an approval request. */
export const APPROVAL_REQUESTED = 'rondo.approval.requested';

/** Who may answer the approvals of a turn, and until when. An approval is bound to it. */
export interface ApprovalAuthority {
  readonly principal?: string;
  readonly approvers?: readonly string[];
  /** The id of the grant of the turn, if it has one. */
  readonly grant?: string;
  /** In milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** An approval request, as it is journaled. */
export interface ApprovalRequest extends ApprovalAuthority {
  readonly id: string;
  readonly tool: string;
  readonly argumentsDigest: string;
  readonly definition: string;
  /** The build of the host that requested it, if it has one. */
  readonly build?: string;
  readonly target?: ApprovalTarget;
  /** The models that may answer in place of the first one. */
  readonly fallback?: readonly BackendRef[];
  readonly description: string;
}

/** What a request says, and the code that it is for. */
interface RequestDetails {
  readonly description: string;
  readonly target?: ApprovalTarget;
  /** The build of the host. */
  readonly build: string | undefined;
  /** How often an approval of the call was requested before, because the call changed. */
  readonly earlierRequests: number;
}

/** An answer, as the host delivers it to the waiting call. */
export interface ApprovalAnswerPayload {
  readonly approved: boolean;
  readonly by: string;
  readonly at: number;
  readonly reason?: string;
  /** True if the approval expired without an answer. */
  readonly expired?: boolean;
}

/** Creates the request for an effect. Its id is derived from everything that the approval is bound to. */
export function approvalRequestOf(
  effect: Effect,
  key: string,
  { description, target, build, earlierRequests }: RequestDetails,
  authority: ApprovalAuthority,
): ApprovalRequest {
  const fallback = fallbackOf(effect);
  const bound = {
    tool: effect.name,
    argumentsDigest: argumentsDigestOf(effect),
    definition: definitionDigestOf(effect),
    ...(build !== undefined && { build }),
    ...withTarget(target),
    ...(fallback.length > 0 && { fallback }),
    ...authority,
  };
  const [turn = ''] = key.split('/', 1);
  // Letters and digits only, because people type ids.
  const call = earlierRequests === 0 ? { key } : { key, earlierRequests };
  const digest = digestOfText(canonicalJson({ ...call, ...bound } as unknown as Json)).replace(/[^A-Za-z0-9]/g, '');
  const id = `${turn}:${digest.slice(0, 16)}`;
  return { id, ...bound, description };
}

function argumentsDigestOf({ input }: Effect): string {
  return digestOfText(canonicalJson(input as Json));
}

/** Returns the models that may answer in place of the first one. */
export function fallbackOf(effect: Effect): readonly BackendRef[] {
  // Own property only: a polluted prototype must not add models.
  return (Object.hasOwn(effect, 'policy') ? effect.policy?.fallback : undefined) ?? [];
}

/**
 * Returns the digest of the definition that an effect belongs to; of an empty text if it has none. Code can name other
 * fallback models under one definition, so they are part of the digest.
 */
export function definitionDigestOf(effect: Effect): string {
  const { definition = '' } = effect;
  const fallback = fallbackOf(effect);
  // guard: approval-bound-to-fallback
  return digestOfText(fallback.length === 0 ? definition : canonicalJson([definition, fallback] as unknown as Json));
}

/**
 * Checks the answer before a tool runs. Throws APPROVAL_DENIED unless it approves the call. Throws TOOL_NOT_ADMITTED if
 * the answer came too late, or if the arguments have changed. The target is checked later, on each attempt.
 */
export function assertApproved(effect: Effect, request: ApprovalRequest, answer: ApprovalAnswerPayload): void {
  const { name } = effect;
  const { approved, by, reason, at, expired } = answer ?? {};
  // guard: denied-call-refused
  if (approved !== true) {
    // Bounded: the journal drops the data of a large error, and with it the fact that a person refused.
    const denier = escapeForDisplay(String(by), 200);
    const shownReason = reason === undefined ? undefined : escapeForDisplay(String(reason), 1000);
    const message = `${denier} did not approve "${name}"${shownReason === undefined ? '' : `: ${shownReason}`}.`;
    const data = { name, rejected: expired !== true, by: denier };
    throw new LoopError('APPROVAL_DENIED', message, {
      ...data,
      ...(shownReason !== undefined && { reason: shownReason }),
    });
  }
  // guard: approval-bound-to-arguments
  if (request.argumentsDigest !== argumentsDigestOf(effect))
    throw notAdmittedError(name, 'its arguments changed after it was approved');
  // guard: late-approval-refused
  if (!(at <= request.expiresAt)) throw notAdmittedError(name, 'the approval came too late');
}

/** The code that an approval or a grant was used for: the digest of the definition and, if there is one, the build. */
export type ApprovedCode = Pick<ApprovalRequest, 'definition' | 'build'>;

/**
 * Returns what has changed in the code of a call since it was approved, as text for people; undefined if nothing has. A
 * host without a build compares the definition only.
 */
export function codeChangeSince(approved: ApprovedCode, current: ApprovedCode): string | undefined {
  // guard: approval-bound-to-definition
  if (approved.definition !== current.definition) return 'its definition';
  // guard: approval-bound-to-build
  if (current.build !== undefined && approved.build !== current.build) return 'the build of the host';
  return undefined;
}

/** Returns an object with the target, or an empty one without it, to spread into another object. */
export function withTarget(target: ApprovalTarget | undefined): { readonly target?: ApprovalTarget } {
  return target === undefined ? {} : { target };
}

/** Returns the error of a tool that its policy blocks. */
export function blockedError(name: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `The policy of "${name}" blocks it.`, { name });
}

/** Returns the error of a call that needs another approval, because it has changed or the answer came too late. */
export function notAdmittedError(name: string, reason: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `"${name}" did not run: ${reason}. Ask again.`, { name });
}

/** Returns the error of an attempt whose code has changed since its approval, so that the approval is requested again. */
export function outdatedApprovalError(name: string, change: string): LoopError {
  const message = `"${name}" did not run: ${change} changed after it was approved. The approval is requested again.`;
  return new LoopError('TOOL_NOT_ADMITTED', message, { name, isRequestedAgain: true });
}

/** Returns the error of an attempt that a retry of the turn makes at an approved call, so that the approval is requested again. */
export function usedApprovalError(name: string): LoopError {
  const message = `"${name}" did not run again: its approval was for one run. The approval is requested again.`;
  return new LoopError('TOOL_NOT_ADMITTED', message, { name, isRequestedAgain: true });
}

/** True if the approval of an attempt is requested again. */
export function isRequestedAgain(thrown: unknown): boolean {
  return thrown instanceof LoopError && ownProperty(thrown.data, 'isRequestedAgain') === true;
}
