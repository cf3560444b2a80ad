/** What a loop made in code is to the rest: the registry and the host know it by this, and need not know how it is made. */

import type { Validator } from '../json/schema.js';
import type { Loop } from '../protocol/body.js';
import type { LoopDef } from '../protocol/loop.js';
import type { Model } from '../protocol/model.js';

/** A loop made in code: what the kernel runs, its definition, and its two ends. */
export interface DefinedLoop<I = unknown, O = unknown> extends Loop<I, O> {
  readonly definition: LoopDef;
  readonly validators: { readonly input: Validator; readonly output: Validator };
  /** What tells two states of the same code apart. */
  readonly source: string;
  /** Loops that it was given and that are registered with it. */
  readonly innerLoops?: readonly DefinedLoop[];
  /** True for a tool that is asked about without a policy of its own. */
  readonly asksByDefault?: boolean;
  /** The model that it was given, in place of a backend by id. */
  readonly model?: Model | undefined;
}

export function isDefinedLoop(value: unknown): value is DefinedLoop {
  try {
    const { definition, validators, body } = (value ?? {}) as Partial<DefinedLoop>;
    return [value, definition, validators].every((part) => typeof part === 'object') && typeof body === 'function';
  } catch {
    // Whatever cannot even be looked at is no loop.
    return false;
  }
}
