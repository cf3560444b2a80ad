/** The type of loops in code, as the registry and the host use it. */

import type { Validator } from '../json/schema.js';
import type { Loop } from '../protocol/body.js';
import type { LoopDef } from '../protocol/loop.js';
import type { Model } from '../protocol/model.js';

/** A loop in code, made with `defineLoop` or `defineAgent`. */
export interface DefinedLoop<I = unknown, O = unknown> extends Loop<I, O> {
  /** The definition that an equivalent JSON document would contain. */
  readonly definition: LoopDef;
  /** The validators of its input and its output. */
  readonly validators: { readonly input: Validator; readonly output: Validator };
  /** The source text of its function; empty for a prompt or an agent. A change of it changes the digest of the loop. */
  readonly source: string;
  /** The tools and handoffs that an agent was given as objects. They are registered with it. */
  readonly innerLoops?: readonly DefinedLoop[];
  /** True for a tool that needs approval even without an approval policy. */
  readonly asksByDefault?: boolean;
  /** The model object of an agent, which replaces the backend of its definition. */
  readonly model?: Model | undefined;
}

/** True if the value has the members of a loop in code. */
export function isDefinedLoop(value: unknown): value is DefinedLoop {
  try {
    const { definition, validators, body } = (value ?? {}) as Partial<DefinedLoop>;
    return typeof definition === 'object' && typeof validators === 'object' && typeof body === 'function';
  } catch {
    // A getter or a proxy threw.
    return false;
  }
}
