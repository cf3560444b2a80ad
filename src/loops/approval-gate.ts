/**
 * Applies the approval policies of enclosing agents and the grant of the turn to loops that are not tools. A body in
 * code, a prompt or an agent is approved as a whole before it starts, because its actions cannot be inspected in advance.
 * A composite of steps has a gate only if a grant names it: it has no effects of its own, and the loops it calls are gated.
 */
import { GATE_BOUNDARY, runtimeEffect } from '../journal/runtime-effects.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { PolicySpec } from '../protocol/loop.js';
import type { LayerScope } from '../protocol/session.js';
import { withNamedFallbacks } from './model-call/model-effect.js';
import { LoopServices, servicesOf, type TurnContext, turnIdOf } from './services.js';

type LoopBody<I, O> = (input: I, scope: Scope) => Promise<O> | O;

/** A loop whose body has a gate. */
interface GatedLoop {
  readonly name: string;
  /** A digest of the definition. An approval is valid for this digest only. */
  readonly definitionFingerprint: string;
  /** The policy of a prompt or an agent: an approval names its fallback models. */
  readonly policy?: PolicySpec | undefined;
}

interface ApprovalGateOptions extends GatedLoop {
  /** True for agents: only a policy for exactly this name applies, neither `*` nor the policy of an enclosing call. */
  readonly exactNameOnly: boolean;
  /** True for a body in code, which nothing confines. @default false */
  readonly isCode?: boolean;
}

/**
 * Returns a body that waits for approval if an enclosing agent or the grant requires it, and then runs `body`. It fails without
 * running `body` if the approval is denied or the policy is `blocked`. Outside of a host, nothing requires an approval.
 */
export function withApprovalGate<I, O>(options: ApprovalGateOptions, body: LoopBody<I, O>): LoopBody<I, O> {
  const { name, exactNameOnly, isCode = false } = options;
  return (input, scope) => {
    const services = scope.context;
    if (!(services instanceof LoopServices) || !services.restrictionFlag.isSet) return body(input, scope);
    const turnContext = services.turnContext(turnIdOf(scope));
    // guard: unconfined-body-admitted
    const isDemanded = isGateDemanded(name, { turnContext, input, scope, isCode });
    const restrictions = turnContext.activeRestrictions;
    const policy = exactNameOnly
      ? restrictions?.approvalPolicyByName(scope.key, name)
      : restrictions?.approvalPolicy(scope.key, name);
    // guard: policy-applies-to-code
    if ((policy === undefined || policy === 'always_allow') && !isDemanded) return body(input, scope);
    return passGate(scope, options, input).then(() => body(input, scope));
  };
}

/**
 * Returns a body that runs only if the grant of its turn permits it, after the gate that the grant demands. For composites,
 * to which the policies of enclosing agents do not apply.
 */
export function withAdmission<I, O>(options: GatedLoop, body: LoopBody<I, O>): LoopBody<I, O> {
  // A short function: composites are nested thousands of levels deep, and each level is a frame on the stack.
  return (input, scope) => (isRestricted(scope) ? runAdmitted(options, body, input, scope) : body(input, scope));
}

/** True if a grant or a policy may apply to the bodies of a host. */
function isRestricted({ context }: Scope): boolean {
  return context instanceof LoopServices && context.restrictionFlag.isSet;
}

function runAdmitted<I, O>(options: GatedLoop, body: LoopBody<I, O>, input: I, scope: Scope): Promise<O> | O {
  const turnContext = (scope.context as LoopServices).turnContext(turnIdOf(scope));
  // guard: chosen-composite-admitted
  const isDemanded = isGateDemanded(options.name, { turnContext, input, scope, isCode: false });
  if (!isDemanded) return body(input, scope);
  return passGate(scope, options, input).then(() => body(input, scope));
}

/**
 * Returns true if the grant of the turn demands a gate before a body. Throws TOOL_NOT_ADMITTED if it does not permit the
 * body. A body that has begun repeats what it began with, because its turn may have another grant since, or none in a replay.
 */
function isGateDemanded(
  name: string,
  call: {
    readonly turnContext: TurnContext;
    readonly input: unknown;
    readonly scope: Scope;
    readonly isCode: boolean;
  },
): boolean {
  const { turnContext, input, scope, isCode } = call;
  const isDemanded = turnContext.admitBody({ name, input, key: scope.key, isCode });
  const recorded = (scope as Partial<LayerScope>).nextRecordedEntry;
  return recorded === undefined ? isDemanded : recorded.boundary === GATE_BOUNDARY && recorded.name === name;
}

/** Passes the gate of a body: an effect that does nothing, before which a person is asked and the call is counted. */
function passGate(scope: Scope, { name, definitionFingerprint, policy }: GatedLoop, input: unknown): Promise<unknown> {
  const perform = (): Json => ({ output: null });
  const fallback = withNamedFallbacks(policy, servicesOf(scope))?.fallback;
  const effect: Effect = {
    kind: 'tool',
    name,
    input,
    safety: 'pure',
    boundary: GATE_BOUNDARY,
    definition: definitionFingerprint,
    perform,
  };
  return scope.effect(runtimeEffect(fallback === undefined ? effect : { ...effect, policy: { fallback } }));
}
