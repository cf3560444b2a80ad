/**
 * The approval gate of a host: returns the approval rule of an effect, the authority that its approval is bound to, and
 * the standing grants that cover it. Every effect of every turn passes this gate. The loop inspector finds the loops
 * whose turns need it.
 */
import { assertNothingClaimed } from '../journal/runtime-effects.js';
import type { ApprovalGate, StandingGrantRef } from '../layers/approval.js';
import type { RegisteredLoop } from '../loops/registry.js';
import { rootKeyOf } from '../loops/services.js';
import { splitImplementation, type ToolImplementation } from '../loops/tool-implementation.js';
import { type ApprovalAuthority, definitionDigestOf } from '../policy/approval-request.js';
import { type ApprovalRule, approvalRuleFor } from '../policy/approval-rule.js';
import { reviewOfEffect } from '../policy/grant-admission.js';
import type { RestrictionFlag } from '../policy/restrictions.js';
import { stricterPolicy } from '../policy/restrictions.js';
import { grantApplies } from '../policy/standing-grant.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { PinnedLoop } from './pin.js';
import type { RunningTurn } from './running-turn.js';

interface ApprovalGateDeps {
  readonly restrictionFlag: RestrictionFlag;
  readonly now: () => number;
  /** Returns the turn with this id if it runs in this process. */
  readonly runningTurn: (turnId: string) => RunningTurn | undefined;
  /** How long an approval can be answered, in milliseconds. */
  readonly approvalMs: number;
  /** The build of the host. */
  readonly build: string | undefined;
}

/** Finds the loops that contain agents or approvals. Turns of such loops need the earlier entries of their session. */
export class LoopInspector {
  private results: WeakMap<PinnedLoop, boolean> | undefined;
  private readonly implementations: ReadonlyMap<string, ToolImplementation>;

  constructor(implementations: ReadonlyMap<string, ToolImplementation>) {
    this.implementations = implementations;
  }

  /**
   * Returns true if the loop or a loop that it calls is an agent, declares an approval policy, or is a tool that asks
   * for approval by default. The result is cached.
   */
  hasAgentsOrApprovals(pinned: PinnedLoop): boolean {
    this.results ??= new WeakMap();
    const cached = this.results.get(pinned);
    if (cached !== undefined) return cached;
    const result = pinned.definitions.some((registered) => this.isAgentOrNeedsApproval(registered));
    this.results.set(pinned, result);
    return result;
  }

  private isAgentOrNeedsApproval({
    definition: { composite, policy, tool },
    origin,
    definedLoop,
  }: RegisteredLoop): boolean {
    // A plan can ask a person itself: at a gate, or when the attempts at a step have failed.
    if (composite?.plan !== undefined) return true;
    if (composite?.agent !== undefined || policy?.approval !== undefined || definedLoop?.asksByDefault === true)
      return true;
    if (tool === undefined) return false;
    const { scheme, target } = splitImplementation(tool.implementation);
    return this.implementations.get(scheme)?.approvalDescriber(target, origin, tool.config ?? {}) !== undefined;
  }
}

/** The approval gate of the layers of a host. */
export class HostApprovalGate implements ApprovalGate {
  /** The build that approvals are bound to. */
  readonly build: string | undefined;
  private readonly deps: ApprovalGateDeps;

  constructor(deps: ApprovalGateDeps) {
    this.deps = deps;
    this.build = deps.build;
  }

  /**
   * Returns the approval rule of an effect, from its own policy and the restrictions of the agents above it; undefined
   * if nothing restricts the effect. Throws VALUE_INVALID for an effect in code that claims to be one of the runtime.
   */
  ruleFor(effect: Effect, key: string): ApprovalRule | undefined {
    const turn = this.deps.restrictionFlag.isSet ? this.deps.runningTurn(rootKeyOf(key)) : undefined;
    // guard: claims-of-code-refused
    assertNothingClaimed(effect, turn?.governed !== undefined);
    const rule = approvalRuleFor(effect, key, turn?.activeRestrictions);
    const grant = turn?.governed?.grant;
    const review = grant && reviewOfEffect(grant, effect);
    // guard: review-of-grant-applies
    return review === undefined ? rule : withReview(rule, review, effect.mode);
  }

  /** Returns the check of the grant of the turn at `key`; undefined if the turn has none. */
  admissionAt(key: string): ((effect: Effect) => void) | undefined {
    const governed = this.deps.runningTurn(rootKeyOf(key))?.governed;
    return governed && ((effect) => governed.assertAdmitted(effect));
  }

  /** Returns the principals and the expiry that an approval requested now is bound to. */
  authorityFor(key: string): ApprovalAuthority {
    const turn = this.deps.runningTurn(rootKeyOf(key));
    const grant = turn?.governed?.grant.id;
    const expiresAt = this.deps.now() + this.deps.approvalMs;
    return { ...(turn && principalsUnderGrant(turn)), ...(grant !== undefined && { grant }), expiresAt };
  }

  /** Returns the standing grants that cover a call. Their targets are not compared; the caller does that. */
  grantsFor(effect: Effect, key: string): readonly StandingGrantRef[] {
    const turn = this.deps.runningTurn(rootKeyOf(key));
    if (turn === undefined) return [];
    const grant = turn.governed?.grant;
    const call = {
      ...principalsUnderGrant(turn),
      tool: effect.name,
      definitionDigest: definitionDigestOf(effect),
      build: this.build,
      input: effect.input as Json,
      reviewedUnder: grant && reviewOfEffect(grant, effect) !== undefined ? (grant.id ?? '') : undefined,
    };
    return turn.agentState.approvals.standingGrants().filter((standing) => grantApplies(standing, call));
  }
}

/** Returns the principals of a turn. Those who may answer are the approvers of the turn that its grant names too. */
function principalsUnderGrant(turn: RunningTurn): Pick<ApprovalAuthority, 'principal' | 'approvers'> {
  const { principals } = turn.agentState;
  const granted = turn.governed?.grant.approvers;
  // guard: approvers-of-grant-apply
  const approvers = granted && (principals.approvers?.filter((name) => granted.includes(name)) ?? granted);
  return { ...principals, ...(approvers && { approvers }) };
}

/** Returns the rule with the review that a grant demands. */
function withReview(rule: ApprovalRule | undefined, review: 'ask' | 'blocked', mode: string | undefined): ApprovalRule {
  const { policy = 'always_allow', modes = [mode] } = rule ?? {};
  return { ...rule, policy: stricterPolicy(policy, review), modes, isReviewed: true };
}
