/** Standing grants: which further calls an approval given with a predicate covers. */
import { targetDifference } from '../base/approval-target.js';
import type { ApprovalTarget, StandingGrant } from '../protocol/approval.js';
import type { Json } from '../protocol/json.js';
import { grantCovers } from './grant-predicate.js';

/** A call that may be covered by a grant, and the authority of its turn. */
export interface GrantableCall {
  readonly tool: string;
  readonly definitionDigest: string;
  readonly input: Json;
  readonly principal?: string;
  readonly approvers?: readonly string[];
}

/** True if a grant covers a call, apart from its target. A grant applies only if its author could approve this call. */
export function grantApplies(grant: StandingGrant, call: GrantableCall): boolean {
  return (
    grant.tool === call.tool &&
    // guard: grant-bound-to-definition
    grant.definitionDigest === call.definitionDigest &&
    // guard: grant-bound-to-principal
    grant.principal === call.principal &&
    // guard: grant-giver-may-answer
    call.approvers?.includes(grant.by) !== false &&
    // guard: grant-predicate-holds
    grantCovers(grant, call.input)
  );
}

/** True if a grant that was given with a call on one target covers a call on another. */
export function coversTarget(granted: ApprovalTarget | undefined, found: ApprovalTarget | undefined): boolean {
  if (targetDifference(granted, found) === undefined) return true;
  // Files of one grant differ by its predicate. A symbolic link or `..` would lead away from the path that the predicate reads.
  return (
    granted !== undefined &&
    granted.kind !== 'program' &&
    granted.kind === found?.kind &&
    granted.confinement === found.confinement &&
    found.isLinked !== true
  );
}
