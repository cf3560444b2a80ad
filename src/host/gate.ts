/**
 * The one gate of a host: which rule holds for an effect at its place, what its approval is bound to, and which standing
 * grants there are. Every effect of every turn is asked about here, whoever makes it.
 */
import type { Authority, Gate, Rule } from '../layers/approval.js';
import type { GovernedEffect } from '../layers/policy.js';
import { type Alert, stricter } from '../loops/agent/watch.js';
import { rootOf } from '../loops/bench.js';
import { type Implementation, splitImplementation } from '../loops/implementation.js';
import type { Registered } from '../loops/registry.js';
import { compileSchema } from '../loops/schema.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import type { Attendance } from './attendance.js';
import type { Pinned } from './pin.js';

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
  private readonly known = new WeakMap<Pinned, boolean>();
  private readonly implementations: ReadonlyMap<string, Implementation>;

  constructor(implementations: ReadonlyMap<string, Implementation>) {
    this.implementations = implementations;
  }

  has(pinned: Pinned): boolean {
    const known = this.known.get(pinned);
    if (known !== undefined) return known;
    const asks = pinned.parts.some((part) => this.asks(part));
    this.known.set(pinned, asks);
    return asks;
  }

  private asks({ definition: { composite, policy, tool }, origin }: Registered): boolean {
    if (composite?.agent !== undefined || policy?.approval !== undefined) return true;
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

  rule(effect: GovernedEffect, key: string): Rule | undefined {
    const { kind, name } = effect;
    const own = (Object.hasOwn(effect, 'policy') ? effect.policy?.approval : undefined) ?? 'always_allow';
    const watches = this.held.alert.on ? this.held.turn(rootOf(key))?.watching : undefined;
    if (watches === undefined) return own === 'always_allow' ? undefined : { policy: own };
    // What judges a call is no action of its own.
    if (kind === 'gate') return undefined;
    const policy = kind === 'tool' ? stricter(own, watches.policy(key, name)) : own;
    const deadline = watches.deadline(key);
    if (policy === 'always_allow' && deadline === undefined) return undefined;
    return { policy, deadline, mode: watches.mode(key), limitMs: watches.errand(key)?.limitMs };
  }

  authority(key: string): Authority {
    const principals = this.held.turn(rootOf(key))?.governed.principals ?? {};
    return { ...principals, expiresAt: this.held.now() + this.held.approvalMs };
  }

  /** A grant stands in for its giver: where he may not answer, or for somebody else, it does not either. */
  granted(tool: string, definition: string, input: Json, key: string): string | undefined {
    const { approvals, principals } = this.held.turn(rootOf(key))?.governed ?? {};
    const mayAnswer = (by: string): boolean => principals?.approvers?.includes(by) !== false;
    const grant = approvals
      ?.grants()
      .find(
        (given) =>
          given.tool === tool &&
          given.definition === definition &&
          given.principal === principals?.principal &&
          mayAnswer(given.by) &&
          fits(given.schema, input),
      );
    return grant?.approval;
  }
}

/** Whether a written predicate holds for arguments. One that cannot be used holds for nothing. */
export function fits(schema: Json, input: Json): boolean {
  try {
    return compileSchema(schema as JsonSchema, 'the standing grant').check(input);
  } catch {
    return false;
  }
}
