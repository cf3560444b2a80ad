/**
 * The one gate of a host: which rule holds for an effect at its place, what its approval is bound to, and which standing
 * grants there are. Every effect of every turn is asked about here, whoever makes it.
 */
import type { Authority, Gate, Grant, Rule } from '../layers/approval.js';
import { type Alert, stricter, type Watches } from '../loops/agent/watch.js';
import { rootOf } from '../loops/bench.js';
import { type Implementation, splitImplementation } from '../loops/implementation.js';
import type { Registered } from '../loops/registry.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy } from '../protocol/loop.js';
import type { Attendance } from './attendance.js';
import type { Pinned } from './pin.js';
import { covers } from './predicate.js';

interface Held {
  readonly alert: Alert;
  readonly now: () => number;
  /** The turn that runs, by its id. */
  readonly turn: (turnId: string) => Attendance | undefined;
  /** How long an approval may wait, in milliseconds. */
  readonly approvalMs: number;
}

/** Which loops have agents or approvals in them, found out once for each: their turns need to know what came before. */
export class GovernedLoops {
  private known: WeakMap<Pinned, boolean> | undefined;
  private readonly implementations: ReadonlyMap<string, Implementation>;

  constructor(implementations: ReadonlyMap<string, Implementation>) {
    this.implementations = implementations;
  }

  has(pinned: Pinned): boolean {
    this.known ??= new WeakMap();
    const known = this.known.get(pinned);
    if (known !== undefined) return known;
    const asks = pinned.parts.some((part) => this.asks(part));
    this.known.set(pinned, asks);
    return asks;
  }

  private asks({ definition: { composite, policy, tool }, origin, code }: Registered): boolean {
    if (composite?.agent !== undefined || policy?.approval !== undefined || code?.asks === true) return true;
    if (tool === undefined) return false;
    const { scheme, target } = splitImplementation(tool.implementation);
    return this.implementations.get(scheme)?.question(target, origin, tool.config ?? {}) !== undefined;
  }
}

export class HostGate implements Gate {
  private readonly held: Held;

  constructor(held: Held) {
    this.held = held;
  }

  rule(effect: Effect, key: string): Rule | undefined {
    const { kind, name } = effect;
    const watches = this.held.alert.on ? this.held.turn(rootOf(key))?.watching : undefined;
    const own = ownPolicy(effect, key, watches);
    if (watches === undefined) return own === 'always_allow' ? undefined : { policy: own, modes: [effect.mode] };
    // What judges a call is no action of its own.
    if (kind === 'gate') return undefined;
    // guard: agent-policy-applies-to-tools
    const policy = kind === 'tool' ? stricter(own, watches.policy(key, name)) : own;
    const deadline = watches.deadline(key);
    if (policy === 'always_allow') return deadline === undefined ? undefined : { policy, deadline };
    const modes = own === 'ask' ? ownModes(effect, key, watches) : [];
    // guard: enclosing-asks-apply
    const asking = kind === 'tool' ? watches.askingModes(key, name) : [];
    return { policy, deadline, modes: [...modes, ...asking], limitMs: watches.errand(key)?.limitMs };
  }

  authority(key: string): Authority {
    const principals = this.held.turn(rootOf(key))?.governed.principals ?? {};
    return { ...principals, expiresAt: this.held.now() + this.held.approvalMs };
  }

  /** A grant stands in for its giver: where he may not answer, or for somebody else, it does not either. */
  granted(tool: string, definition: string, input: Json, key: string): readonly Grant[] {
    const { approvals, principals } = this.held.turn(rootOf(key))?.governed ?? {};
    const mayAnswer = (by: string): boolean => principals?.approvers?.includes(by) !== false;
    const grants = approvals?.grants() ?? [];
    return grants.filter(
      (given) =>
        given.tool === tool &&
        // guard: grant-bound-to-definition
        given.definition === definition &&
        // guard: grant-bound-to-principal
        given.principal === principals?.principal &&
        // guard: grant-giver-may-answer
        mayAnswer(given.by) &&
        // guard: grant-predicate-holds
        covers(given, input),
    );
  }
}

/** The policy of the tool itself. One that can say what to ask is asked about, unless the agent that has it allows it. */
function ownPolicy(effect: Effect, key: string, watches: Watches | undefined): ApprovalPolicy {
  const explicit = effect.policy?.approval;
  if (explicit !== undefined) return explicit;
  // guard: asking-tool-asked-by-default
  return effect.asksByDefault === true && watches?.allows(key, effect.name) !== true ? 'ask' : 'always_allow';
}

/** The modes for the tool's own policy: its own mode, or those of all enclosing agents, so that none loosens another. */
function ownModes({ mode }: Effect, key: string, watches: Watches): readonly (string | undefined)[] {
  if (mode !== undefined) return [mode];
  const modes = watches.modes(key);
  return modes.length === 0 ? [undefined] : /* guard: every-enclosing-mode-asked */ modes;
}
