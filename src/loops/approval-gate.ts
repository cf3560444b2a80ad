/**
 * Asking about what is no tool. What code does cannot be seen from outside, and a prompt or an agent acts by asking a
 * model: where an agent above asks about them, they pass the gate before they begin. Steps of definitions need no such
 * thing: all that they do is done by what they call.
 */
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { LoopServices, turnIdOf } from './services.js';

type LoopBody<I, O> = (input: I, scope: Scope) => Promise<O> | O;

interface ApprovalGateOptions {
  readonly name: string;
  /** Tells this definition from others of its id. */
  readonly definitionFingerprint: string;
  /** Whether it must be named to be asked about: what it calls is asked about by itself. */
  readonly requiresName: boolean;
}

/** The body, behind the gate. */
export function withApprovalGate<I, O>(
  { name, definitionFingerprint, requiresName }: ApprovalGateOptions,
  body: LoopBody<I, O>,
): LoopBody<I, O> {
  const perform = (): Json => ({ output: null });
  return (input, scope) => {
    const bench = scope.context;
    if (!(bench instanceof LoopServices) || !bench.restrictionFlag.isSet) return body(input, scope);
    const watches = bench.turnContext(turnIdOf(scope)).activeRestrictions;
    const policy = requiresName
      ? watches?.approvalPolicyByName(scope.key, name)
      : watches?.approvalPolicy(scope.key, name);
    // guard: policy-applies-to-code
    if (policy === undefined || policy === 'always_allow') return body(input, scope);
    const effect: Effect = { kind: 'tool', name, input, safety: 'pure', definition: definitionFingerprint, perform };
    return scope.effect(effect).then(() => body(input, scope));
  };
}
