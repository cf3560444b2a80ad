/** The type of loops in code, as the registry and the host use it. */

import type { Validator } from '../json/schema.js';
import type { Loop } from '../protocol/body.js';
import type { LoopDef } from '../protocol/loop.js';
import type { ModelObject } from './model-ref.js';

/** A loop in code, made with `defineLoop` or `defineAgent`. */
export interface DefinedLoop<I = unknown, O = unknown> extends Loop<I, O> {
  /** The definition that an equivalent JSON document would contain. */
  readonly definition: LoopDef;
  /** The validators of its input and its output. */
  readonly validators: { readonly input: Validator; readonly output: Validator };
  /**
   * The source text of its function; empty for a prompt or an agent. It is evidence only, and no part of the identity
   * of the loop: a compiler or bundler may change it.
   */
  readonly source: string;
  /** The tools and handoffs that an agent was given as objects. They are registered with it. */
  readonly innerLoops?: readonly DefinedLoop[];
  /** For a tool that is defined inline in an agent: its name for the model and in events. Its id is `AGENT.NAME`. */
  readonly inlineName?: string | undefined;
  /** True for a tool that needs approval even without an approval policy. */
  readonly asksByDefault?: boolean;
  /** The model objects that the loop was given. References in its definition stand for them. */
  readonly modelObjects?: readonly ModelObject[] | undefined;
}

/** Returns the loop that an agent was given as an object under this id; undefined for a tool that it names by id. */
export function innerLoopOf(agent: DefinedLoop | undefined, loopId: string): DefinedLoop | undefined {
  return agent?.innerLoops?.find(({ definition }) => definition.id === loopId);
}

/**
 * Returns the name of an agent's tool in events and, escaped where necessary, for the model: the name of an inline
 * tool, and the id of any other loop.
 */
export function toolNameIn(agent: DefinedLoop | undefined, loopId: string): string {
  return innerLoopOf(agent, loopId)?.inlineName ?? loopId;
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
