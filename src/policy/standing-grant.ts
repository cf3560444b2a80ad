/** Standing grants: which further calls an approval with a predicate covers. */
import { targetDifference } from '../base/approval-target.js';
import type { ApprovalTarget, StandingGrant } from '../protocol/approval.js';
import type { Json } from '../protocol/json.js';
import { grantCovers } from './grant-predicate.js';

/** A call that may be covered by a grant, and the authority of its turn. */
interface GrantableCall {
  readonly tool: string;
  readonly definitionDigest: string;
  /** The build of the host; undefined if it has none, which compares nothing. */
  readonly build: string | undefined;
  readonly input: Json;
  readonly principal?: string;
  readonly approvers?: readonly string[];
  /** The id of the grant of the turn, if that demands a review of the call. */
  readonly reviewedUnder?: string | undefined;
}

/** True if a grant covers a call, apart from its target. A grant applies only if its author could approve this call. */
export function grantApplies(grant: StandingGrant, call: GrantableCall): boolean {
  return (
    grant.tool === call.tool &&
    // guard: grant-bound-to-definition
    grant.definitionDigest === call.definitionDigest &&
    // guard: grant-bound-to-build
    (call.build === undefined || grant.build === call.build) &&
    // guard: grant-bound-to-principal
    grant.principal === call.principal &&
    // guard: grant-giver-may-answer
    call.approvers?.includes(grant.by) !== false &&
    // A grant that demands a review is not satisfied by what a person decided under another one.
    // guard: standing-bound-to-reviewing-grant
    (call.reviewedUnder === undefined || grant.grant === call.reviewedUnder) &&
    // guard: grant-predicate-holds
    grantCovers(grant, call.input)
  );
}

/** True if a grant for a call on one target covers a call on another target. */
export function coversTarget(granted: ApprovalTarget | undefined, target: ApprovalTarget | undefined): boolean {
  if (targetDifference(granted, target) === undefined) return true;
  // The predicate sees the path of a file or directory as it is written. A symbolic link or `..` would lead to a target
  // that it does not see. A program is bound to its bytes, so another program is never covered.
  return (
    granted !== undefined &&
    granted.kind !== 'program' &&
    granted.kind === target?.kind &&
    granted.confinement === target.confinement &&
    target.isIndirect !== true
  );
}
