/**
 * Approval requests: what an approval is bound to, and whether a call may still run once it was answered. Any change of the
 * arguments, the definition, the target or the authority makes it another approval.
 */
import { LoopError } from '../base/errors.js';
import { escapeForDisplay } from '../base/escape-text.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import type { ApprovalTarget } from '../protocol/approval.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';

/** The type of the entry that records a request. */
export const APPROVAL_REQUESTED = 'rondo.approval.requested';

/** Who answers for a turn: part of what an approval is bound to. */
export interface ApprovalAuthority {
  readonly principal?: string;
  readonly approvers?: readonly string[];
  readonly expiresAt: number;
}

/** What was asked, as it is journaled. */
export interface ApprovalRequest extends ApprovalAuthority {
  readonly id: string;
  readonly tool: string;
  readonly argumentsDigest: string;
  readonly definition: string;
  readonly target?: ApprovalTarget;
  readonly description: string;
}

/** What was answered, as the host lets it in. */
export interface ApprovalAnswerPayload {
  readonly approved: boolean;
  readonly by: string;
  readonly at: number;
  readonly reason?: string;
  /** Nobody answered in time. */
  readonly expired?: boolean;
}

/** The id is made of everything that the approval is bound to: with any of it changed it is another approval. */
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
  // Letters and digits only: a person has to type it.
  const name = digestOfText(canonicalJson({ key, ...bound } as unknown as Json)).replace(/[^A-Za-z0-9]/g, '');
  const id = `${turn}:${name.slice(0, 16)}`;
  return { id, ...bound, description };
}

function argumentsDigestOf({ input }: Effect): string {
  return digestOfText(canonicalJson(input as Json));
}

export function definitionDigestOf({ definition = '' }: Effect): string {
  return digestOfText(definition);
}

/** The last look before the tool runs: that it was approved, in time, and that it is still what was approved. */
export function assertApproved(effect: Effect, request: ApprovalRequest, answer: ApprovalAnswerPayload): void {
  const { name } = effect;
  const { approved, by, reason, at, expired } = answer ?? {};
  // guard: denied-call-refused
  if (approved !== true) {
    // Bounded: the journal drops the data of an error that is too large, and with it that a person said no.
    const [who, why] = [
      escapeForDisplay(String(by), 200),
      reason === undefined ? undefined : escapeForDisplay(String(reason), 1000),
    ];
    const data = { name, rejected: expired !== true, by: who, ...(why !== undefined && { reason: why }) };
    throw new LoopError(
      'APPROVAL_DENIED',
      `${who} did not approve "${name}"${why === undefined ? '' : `: ${why}`}.`,
      data,
    );
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

/** A target as a spreadable member. */
export function withTarget(target: ApprovalTarget | undefined): { readonly target?: ApprovalTarget } {
  return target === undefined ? {} : { target };
}

export function blockedError(name: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `The policy of "${name}" blocks it.`, { name });
}

export function notAdmittedError(name: string, why: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `"${name}" did not run: ${why}. Ask again.`, { name });
}
