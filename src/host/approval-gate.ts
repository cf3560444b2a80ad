/**
 * The one gate of a host: which rule holds for an effect at its place, what its approval is bound to, and which standing
 * grants there are. Every effect of every turn is asked about here, whoever makes it.
 */
import type { ApprovalAuthority, ApprovalGate, ApprovalRule, StandingGrantRef } from '../layers/approval.js';
import { type RestrictionFlag, type RestrictionTable, stricterPolicy } from '../loops/agent/restrictions.js';
import type { RegisteredLoop } from '../loops/registry.js';
import { rootKeyOf } from '../loops/services.js';
import { splitImplementation, type ToolImplementation } from '../loops/tool-implementation.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy } from '../protocol/loop.js';
import { grantCovers } from './grant-predicate.js';
import type { PinnedLoop } from './pin.js';
import type { RunningTurn } from './running-turn.js';

interface ApprovalGateDeps {
  readonly alert: RestrictionFlag;
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
    const { kind, name } = effect;
    const watches = this.deps.alert.isSet ? this.deps.runningTurn(rootKeyOf(key))?.activeRestrictions : undefined;
    const own = ownPolicy(effect, key, watches);
    if (watches === undefined) return own === 'always_allow' ? undefined : { policy: own, modes: [effect.mode] };
    // What judges a call is no action of its own.
    if (kind === 'gate') return undefined;
    // guard: agent-policy-applies-to-tools
    const policy = kind === 'tool' ? stricterPolicy(own, watches.approvalPolicy(key, name)) : own;
    const deadline = watches.earliestDeadline(key);
    if (policy === 'always_allow') return deadline === undefined ? undefined : { policy, deadlineAt: deadline };
    const modes = own === 'ask' ? ownModes(effect, key, watches) : [];
    // guard: enclosing-asks-apply
    const asking = kind === 'tool' ? watches.askingModes(key, name) : [];
    return {
      policy,
      deadlineAt: deadline,
      modes: [...modes, ...asking],
      toolTimeoutMs: watches.activeToolCall(key)?.timeoutMs,
    };
  }

  authorityFor(key: string): ApprovalAuthority {
    const principals = this.deps.runningTurn(rootKeyOf(key))?.agentState.principals ?? {};
    return { ...principals, expiresAt: this.deps.now() + this.deps.approvalMs };
  }

  /** A grant stands in for its giver: where he may not answer, or for somebody else, it does not either. */
  grantsFor(tool: string, definition: string, input: Json, key: string): readonly StandingGrantRef[] {
    const { approvals, principals } = this.deps.runningTurn(rootKeyOf(key))?.agentState ?? {};
    const mayAnswer = (by: string): boolean => principals?.approvers?.includes(by) !== false;
    const grants = approvals?.standingGrants() ?? [];
    return grants.filter(
      (given) =>
        given.tool === tool &&
        // guard: grant-bound-to-definition
        given.definitionDigest === definition &&
        // guard: grant-bound-to-principal
        given.principal === principals?.principal &&
        // guard: grant-giver-may-answer
        mayAnswer(given.by) &&
        // guard: grant-predicate-holds
        grantCovers(given, input),
    );
  }
}

/** The policy of the tool itself. One that can say what to ask is asked about, unless the agent that has it allows it. */
function ownPolicy(effect: Effect, key: string, watches: RestrictionTable | undefined): ApprovalPolicy {
  const explicit = effect.policy?.approval;
  if (explicit !== undefined) return explicit;
  // guard: asking-tool-asked-by-default
  return effect.asksByDefault === true && watches?.isExplicitlyAllowed(key, effect.name) !== true
    ? 'ask'
    : 'always_allow';
}

/** The modes for the tool's own policy: its own mode, or those of all enclosing agents, so that none loosens another. */
function ownModes({ mode }: Effect, key: string, watches: RestrictionTable): readonly (string | undefined)[] {
  if (mode !== undefined) return [mode];
  const modes = watches.enclosingModes(key);
  return modes.length === 0 ? [undefined] : /* guard: every-enclosing-mode-asked */ modes;
}
