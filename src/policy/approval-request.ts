/**
 * Approval requests: what an approval is bound to, and whether the call may still run after the answer. A change of the
 * arguments, the definition, the target or the authority (who may answer) requires another approval.
 */
import { LoopError } from '../base/errors.js';
import { escapeForDisplay } from '../base/escape-text.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';

/** The type of the entry that records an approval request. */
export const APPROVAL_REQUESTED = 'rondo.approval.requested';

/** Who may answer the approvals of a turn, and until when. An approval is bound to it. */
export interface ApprovalAuthority {
  readonly principal?: string;
  readonly approvers?: readonly string[];
  /** In milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** An approval request, as it is journaled. */
export interface ApprovalRequest extends ApprovalAuthority {
  readonly id: string;
  readonly tool: string;
  readonly argumentsDigest: string;
  readonly definition: string;
  readonly target?: ApprovalTarget;
  readonly description: string;
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
  { description, target }: { readonly description: string; readonly target?: ApprovalTarget },
  authority: ApprovalAuthority,
): ApprovalRequest {
  const bound = {
    tool: effect.name,
    argumentsDigest: argumentsDigestOf(effect),
    definition: definitionDigestOf(effect),
    ...withTarget(target),
    ...authority,
  };
  const [turn = ''] = key.split('/', 1);
  // Letters and digits only, because people type ids.
  const digest = digestOfText(canonicalJson({ key, ...bound } as unknown as Json)).replace(/[^A-Za-z0-9]/g, '');
  const id = `${turn}:${digest.slice(0, 16)}`;
  return { id, ...bound, description };
}

function argumentsDigestOf({ input }: Effect): string {
  return digestOfText(canonicalJson(input as Json));
}

/** Returns the digest of the definition that an effect belongs to; of an empty text if it has none. */
export function definitionDigestOf({ definition = '' }: Effect): string {
  return digestOfText(definition);
}

/**
 * Checks the answer before a tool runs. Throws APPROVAL_DENIED unless it approves the call. Throws TOOL_NOT_ADMITTED if
 * the answer came too late, or if the arguments or the definition have changed. The target is checked later, on each
 * attempt.
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
  const changed =
    // guard: approval-bound-to-arguments
    request.argumentsDigest !== argumentsDigestOf(effect)
      ? 'its arguments'
      : /* guard: approval-bound-to-definition */ request.definition !== definitionDigestOf(effect)
        ? 'its definition'
        : undefined;
  if (changed !== undefined) throw notAdmittedError(name, `${changed} changed after it was approved`);
  // guard: late-approval-refused
  if (!(at <= request.expiresAt)) throw notAdmittedError(name, 'the approval came too late');
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
