/**
 * Applies the approval policies of enclosing agents to loops that are not tools. A body in code, a prompt or an agent
 * is approved as a whole before it starts, because its actions cannot be inspected in advance. A composite of steps
 * needs no gate: it has no effects of its own, and the loops it calls are gated.
 */
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { LoopServices, turnIdOf } from './services.js';

type LoopBody<I, O> = (input: I, scope: Scope) => Promise<O> | O;

interface ApprovalGateOptions {
  readonly name: string;
  /** A digest of the definition. An approval is valid for this digest only. */
  readonly definitionFingerprint: string;
  /** True for agents: only a policy for exactly this name applies, neither `*` nor the policy of an enclosing call. */
  readonly exactNameOnly: boolean;
  /** True for a body in code, which nothing confines. @default false */
  readonly isCode?: boolean;
}

/**
 * Returns a body that waits for approval if an enclosing agent requires it, and then runs `body`. It fails without
 * running `body` if the approval is denied or the policy is `blocked`. Outside of a host, nothing requires an approval.
 */
export function withApprovalGate<I, O>(
  { name, definitionFingerprint, exactNameOnly, isCode = false }: ApprovalGateOptions,
  body: LoopBody<I, O>,
): LoopBody<I, O> {
  // An effect that does nothing: the approval layer requests the approval before it performs the effect.
  const perform = (): Json => ({ output: null });
  return (input, scope) => {
    const services = scope.context;
    if (!(services instanceof LoopServices) || !services.restrictionFlag.isSet) return body(input, scope);
    const turnContext = services.turnContext(turnIdOf(scope));
    // guard: unconfined-body-admitted
    turnContext.assertBodyAdmitted(name, scope.key, isCode);
    const restrictions = turnContext.activeRestrictions;
    const policy = exactNameOnly
      ? restrictions?.approvalPolicyByName(scope.key, name)
      : restrictions?.approvalPolicy(scope.key, name);
    // guard: policy-applies-to-code
    if (policy === undefined || policy === 'always_allow') return body(input, scope);
    const definition = definitionFingerprint;
    const effect: Effect = { kind: 'tool', name, input, safety: 'pure', boundary: 'gate', definition, perform };
    return scope.effect(effect).then(() => body(input, scope));
  };
}

/** Returns a body that runs only if the grant of its turn permits it. For bodies without an approval gate. */
export function withAdmission<I, O>(name: string, body: LoopBody<I, O>): LoopBody<I, O> {
  return (input, scope) => {
    const services = scope.context;
    if (services instanceof LoopServices && services.restrictionFlag.isSet) {
      // guard: chosen-composite-admitted
      services.turnContext(turnIdOf(scope)).assertBodyAdmitted(name, scope.key, false);
    }
    return body(input, scope);
  };
}
