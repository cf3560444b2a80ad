/**
 * The one gate of a host: which rule holds for an effect at its place, what its approval is bound to, and which standing
 * grants there are. Every effect of every turn is asked about here, whoever makes it.
 */
import type { ApprovalGate, StandingGrantRef } from '../layers/approval.js';
import type { RegisteredLoop } from '../loops/registry.js';
import { rootKeyOf } from '../loops/services.js';
import { splitImplementation, type ToolImplementation } from '../loops/tool-implementation.js';
import type { ApprovalAuthority } from '../policy/approval-request.js';
import { type ApprovalRule, approvalRuleFor } from '../policy/approval-rule.js';
import type { RestrictionFlag } from '../policy/restrictions.js';
import { grantApplies } from '../policy/standing-grant.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { PinnedLoop } from './pin.js';
import type { RunningTurn } from './running-turn.js';

interface ApprovalGateDeps {
  readonly restrictionFlag: RestrictionFlag;
  readonly now: () => number;
  /** The turn that runs, by its id. */
  readonly runningTurn: (turnId: string) => RunningTurn | undefined;
  /** How long an approval may wait, in milliseconds. */
  readonly approvalMs: number;
}

/** Which loops have agents or approvals in them, found out once for each: their turns need to know what came before. */
export class LoopInspector {
  private results: WeakMap<PinnedLoop, boolean> | undefined;
  private readonly implementations: ReadonlyMap<string, ToolImplementation>;

  constructor(implementations: ReadonlyMap<string, ToolImplementation>) {
    this.implementations = implementations;
  }

  hasAgentsOrApprovals(pinned: PinnedLoop): boolean {
    this.results ??= new WeakMap();
    const known = this.results.get(pinned);
    if (known !== undefined) return known;
    const asks = pinned.definitions.some((part) => this.isAgentOrNeedsApproval(part));
    this.results.set(pinned, asks);
    return asks;
  }

  private isAgentOrNeedsApproval({
    definition: { composite, policy, tool },
    origin,
    definedLoop,
  }: RegisteredLoop): boolean {
    if (composite?.agent !== undefined || policy?.approval !== undefined || definedLoop?.asksByDefault === true)
      return true;
    if (tool === undefined) return false;
    const { scheme, target } = splitImplementation(tool.implementation);
    return this.implementations.get(scheme)?.approvalDescriber(target, origin, tool.config ?? {}) !== undefined;
  }
}

export class HostApprovalGate implements ApprovalGate {
  private readonly deps: ApprovalGateDeps;

  constructor(held: ApprovalGateDeps) {
    this.deps = held;
  }

  ruleFor(effect: Effect, key: string): ApprovalRule | undefined {
    const turn = this.deps.restrictionFlag.isSet ? this.deps.runningTurn(rootKeyOf(key)) : undefined;
    return approvalRuleFor(effect, key, turn?.activeRestrictions);
  }

  authorityFor(key: string): ApprovalAuthority {
    const principals = this.deps.runningTurn(rootKeyOf(key))?.agentState.principals ?? {};
    return { ...principals, expiresAt: this.deps.now() + this.deps.approvalMs };
  }

  /** The standing grants that cover a call. */
  grantsFor(tool: string, definitionDigest: string, input: Json, key: string): readonly StandingGrantRef[] {
    const { approvals, principals } = this.deps.runningTurn(rootKeyOf(key))?.agentState ?? {};
    const call = { tool, definitionDigest, input, ...principals };
    return (approvals?.standingGrants() ?? []).filter((grant) => grantApplies(grant, call));
  }
}
