/**
 * Effects with layers. They have two levels in the journal: `effect.opened` and `effect.settled` hold the request and
 * the result of the layers; the attempts and the steps of the layers are recorded below the key of the effect.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import { assertEffect, newEffectEntry } from '../journal/new-entry.js';
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Layer } from '../protocol/session.js';
import { attemptEffect } from './effect.js';
import type { Step } from './run.js';
import { KernelScope } from './scope.js';

/**
 * Performs an effect, or returns its recorded result. An effect that started without layers continues without them, and
 * one that started with layers continues with the current layers.
 */
export function runEffect(step: Step, effect: Effect): Promise<unknown> {
  const { run, key, recorded } = step;
  assertEffect(effect, key);
  const layers = run.deps.layersOf(effect, key);
  const isLayered = recorded?.openEntry === undefined ? layers.length > 0 : recorded.openEntry.type === 'effect.opened';
  return isLayered ? runLayeredEffect(step, effect, layers) : attemptEffect(step, effect, key);
}

async function runLayeredEffect(step: Step, effect: Effect, layers: readonly Layer[]): Promise<unknown> {
  const { run, key, recorded } = step;
  const isEnded = await run.openStep(step, newEffectEntry('effect.opened', key, effect));
  if (isEnded && recorded?.closeEntry !== undefined) return run.recordedOutcome(recorded.closeEntry);
  // The layers get a copy of the input, so that later changes by the caller do not reach them.
  return settleThroughLayers(step, { ...effect, input: copyAsJson(effect.input, effect.name) }, layers);
}

/**
 * Runs the layers and records their result. A result that equals that of the last attempt is not stored again. Once the
 * lifetime has ended, an error is not recorded.
 */
async function settleThroughLayers(step: Step, effect: Effect, layers: readonly Layer[]): Promise<unknown> {
  const { run, key, lifetime } = step;
  const scope = new KernelScope(run, key, lifetime, step.recorded, step.depth);
  let lastAttempt: { readonly key: string; readonly value: Json | undefined } | undefined;
  const performInnermost = (current: Effect): Promise<unknown> =>
    scope.runStep(async (attempt) => {
      const value = await attemptEffect(attempt, current, key);
      lastAttempt = { key: attempt.key, value: copyAsJson(value, current.name) };
      return value;
    });
  const runFrom = (index: number, current: Effect): Promise<unknown> => {
    const layer = layers[index];
    if (layer === undefined) return performInnermost(current);
    return layer(current, scope, (changed) => runFrom(index + 1, changed ?? current));
  };
  const settled = { seq: 0, at: 0, type: 'effect.settled', key };
  try {
    const value = copyAsJson(await runFrom(0, effect), 'the result of the layers', key);
    const mismatch = scope.close();
    if (mismatch !== undefined) await mismatch;
    const isUnchanged = lastAttempt !== undefined && jsonEquals(lastAttempt.value, value);
    run.push(lifetime, isUnchanged ? { ...settled, attemptKey: lastAttempt?.key } : { ...settled, value });
    return value;
  } catch (thrown) {
    if (lifetime.reason !== undefined) throw thrown;
    const { error } = run.push(lifetime, { ...settled, error: toLoopError(thrown).toErrorRecord() });
    throw error === undefined ? thrown : LoopError.fromErrorRecord(error, thrown);
  }
}
