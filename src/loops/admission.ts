/**
 * Asking about what is no tool. What code does cannot be seen from outside, and a prompt or an agent acts by asking a
 * model: where an agent above asks about them, they pass the gate before they begin. Steps of definitions need no such
 * thing: all that they do is done by what they call.
 */
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { Bench, turnOf } from './bench.js';

type Body<I, O> = (input: I, scope: Scope) => Promise<O> | O;

export interface Admission {
  readonly name: string;
  /** Tells this definition from others of its id. */
  readonly definition: string;
  /** Whether it must be named to be asked about: what it calls is asked about by itself. */
  readonly named: boolean;
}

/** The body, behind the gate. */
export function admitted<I, O>({ name, definition, named }: Admission, body: Body<I, O>): Body<I, O> {
  const perform = (): Json => ({ output: null });
  return (input, scope) => {
    const bench = scope.context;
    if (!(bench instanceof Bench) || !bench.alert.on) return body(input, scope);
    const watches = bench.occasion(turnOf(scope)).watching;
    const policy = named ? watches?.namedPolicy(scope.key, name) : watches?.policy(scope.key, name);
    // guard: policy-applies-to-code
    if (policy === undefined || policy === 'always_allow') return body(input, scope);
    const effect: Effect = { kind: 'tool', name, input, safety: 'pure', definition, perform };
    return scope.effect(effect).then(() => body(input, scope));
  };
}
