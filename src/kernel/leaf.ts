/**
 * Leaf calls: calls that are their own effect, such as those of tools. The start of such a call is also the intent of its
 * effect, and its end is also the end of the effect (`leaf-entries.ts`). Only a new call is performed like this. A call
 * that was interrupted runs its body, which finds the intent as its recorded step 0.
 */

import { leafEffectKey, newLeafEnd, outputIn } from '../journal/leaf-entries.js';
import { assertEffect, type NewEntry } from '../journal/new-entry.js';
import { cloneJson, copyAsJson, jsonEquals, lastCopyBytes } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { completeCall, type LoopHeader, recordCallError, recordEnd } from './call.js';
import { performAttempt, recordAttemptEnd } from './effect.js';
import type { KernelScope } from './scope.js';

/** A new call that is performed together with its effect. */
export class LeafCall {
  readonly effect: Effect;
  readonly effectKey: string;
  /** The recorded input of the call and of its effect. */
  readonly input: Json | undefined;
  /** Returns the output of the call, or throws its error; undefined until the end of its effect is recorded. */
  finish: (() => unknown) | undefined;

  constructor(effect: Effect, effectKey: string, input: Json | undefined) {
    this.effect = effect;
    this.effectKey = effectKey;
    this.input = input;
  }

  /** Performs the effect. Rejects if the lifetime ends first. */
  perform(scope: KernelScope, loop: LoopHeader): Promise<unknown> {
    const { run, lifetime, depth } = scope;
    const { effect, effectKey, input } = this;
    const recordEnd = (_: unknown, end: NewEntry, cause?: unknown): unknown => {
      // guard: late-end-of-leaf-recorded-as-effect
      if (run.isOver || lifetime.reason !== undefined) return recordAttemptEnd(run, end, cause);
      this.finish = this.end(scope, loop, end, cause);
      return undefined;
    };
    scope.beginLeaf();
    const step = { run, key: effectKey, lifetime, recorded: undefined, depth };
    return performAttempt(step, effect, { input, effectKey, awaitsFlush: effect.safety !== 'pure', recordEnd });
  }

  /**
   * Records the end of the effect, and with it the end of the call if one entry can stand for both. Returns a function
   * that finishes the call: it returns the output or throws the error.
   */
  private end(scope: KernelScope, loop: LoopHeader, end: NewEntry, cause: unknown): () => unknown {
    if (end.error !== undefined) {
      const error = recordCallError(scope, cause, this.effectKey);
      scope.isCallOpen = false;
      return () => {
        throw error;
      };
    }
    end.value = copyAsJson(end.value, end.type, end.key);
    const weight = lastCopyBytes();
    const completed = newLeafEnd(scope.run.deps.clock, scope.key, loop, end.value, weight);
    if (completed === undefined) {
      const result = recordAttemptEnd(scope.run, end, undefined, weight);
      return () => completeCall(scope, loop, outputIn(result, loop.leaf?.outputMember));
    }
    const { value } = recordEnd(scope, completed, weight, this.effectKey);
    scope.isCallOpen = false;
    return () => cloneJson(value);
  }
}

/**
 * Returns the leaf call for a new call if it can be recorded together with its effect: neither a layer nor an invariant
 * applies to the effect, and its input is the recorded `value`. Returns undefined for any other call, and if this
 * throws: the body of the call then throws the same error.
 */
export function leafCallOf(scope: KernelScope, loop: LoopHeader, input: unknown, value?: Json): LeafCall | undefined {
  const { run, key } = scope;
  // guard: invariants-check-effect-of-leaf
  if (loop.leaf === undefined || run.writer.hasInvariants) return undefined;
  // A root that is stopped at its own effect must have started, so that it can continue.
  // guard: stopped-root-has-started
  if (run.deps.admit !== undefined && key === run.root) return undefined;
  try {
    const effect = loop.leaf.effect(input, scope);
    const effectKey = leafEffectKey(key);
    assertEffect(effect, effectKey);
    // guard: layered-effect-is-no-leaf
    if (run.deps.layersOf(effect, effectKey).length > 0) return undefined;
    const isUnchanged = effect.input === input && (loop.input === undefined || loop.hasFastValidation === true);
    // guard: leaf-effect-has-recorded-input
    if (!isUnchanged && !jsonEquals(value, copyAsJson(effect.input, effect.name))) return undefined;
    const admitted = run.admit(effect, effectKey);
    return admitted === undefined ? undefined : new LeafCall(admitted, effectKey, value);
  } catch {
    return undefined;
  }
}
