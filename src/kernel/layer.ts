/**
 * Layers stand around effects: they may admit, refuse, answer, change, delay or repeat them, and never perform one
 * themselves. With layers an effect has two levels: what was asked and how it was settled, and under it the attempts.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import { newEffectEntry } from '../journal/new-entry.js';
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { attemptEffect } from './effect.js';
import type { RunContext, StepContext } from './run-context.js';
import { KernelScope } from './scope.js';

/**
 * One layer. `scope` is the effect's own: its timers, waits and records are journaled under the effect, so a layer that
 * runs again finds its own past. `next` goes inwards, with the same effect or another; each call of it is one attempt.
 */
export type Layer = (effect: Effect, scope: Scope, next: (effect?: Effect) => Promise<unknown>) => Promise<unknown>;

/** Does an effect, or returns its recorded result. An effect that was begun without layers is finished without. */
export function runEffect(run: RunContext, site: StepContext, effect: Effect): Promise<unknown> {
  const { key, recorded } = site;
  assertEffect(effect, key);
  const layers = run.deps.layersOf(effect, key);
  const layered = recorded?.openEntry === undefined ? layers.length > 0 : recorded.openEntry.type === 'effect.opened';
  return layered ? runLayeredEffect(run, site, effect, layers) : attemptEffect(run, site, effect, key);
}

async function runLayeredEffect(
  run: RunContext,
  site: StepContext,
  effect: Effect,
  layers: readonly Layer[],
): Promise<unknown> {
  const { key, recorded } = site;
  const asked = newEffectEntry('effect.opened', key, effect);
  if ((await run.openStep(site, asked)) && recorded?.closeEntry !== undefined)
    return run.recordedOutcome(recorded.closeEntry);
  // From here on the effect is what was asked, whatever becomes of the caller's object.
  return settleThroughLayers(run, site, { ...effect, input: copyAsJson(effect.input, effect.name) }, layers);
}

const SAFETIES: ReadonlySet<string> = new Set(['pure', 'idempotent', 'keyed', 'once']);

function assertEffect({ kind, name, safety }: Effect, key: string): void {
  if (typeof kind === 'string' && typeof name === 'string' && SAFETIES.has(safety)) return;
  const message = `The effect at ${key} needs a kind and a name, both text, and a safety: pure, idempotent, keyed or once.`;
  throw new LoopError('VALUE_INVALID', message, { key });
}

/** Runs the layers and records what they made of the effect; a result they passed on unchanged is not stored again. */
async function settleThroughLayers(
  run: RunContext,
  site: StepContext,
  effect: Effect,
  layers: readonly Layer[],
): Promise<unknown> {
  const { key, lifetime } = site;
  const scope = new KernelScope(run, key, lifetime, site.recorded, site.depth);
  let last: { readonly key: string; readonly value: Json | undefined } | undefined;
  const innermost = (current: Effect): Promise<unknown> =>
    scope.runStep(async (inner) => {
      const value = await attemptEffect(run, inner, current, key);
      last = { key: inner.key, value: copyAsJson(value, current.name) };
      return value;
    });
  const from = (index: number, current: Effect): Promise<unknown> => {
    const layer = layers[index];
    if (layer === undefined) return innermost(current);
    return layer(current, scope, (changed) => from(index + 1, changed ?? current));
  };
  const entry = { seq: 0, at: 0, type: 'effect.settled', key };
  try {
    const value = copyAsJson(await from(0, effect), 'the answer of the layers', key);
    const untidy = scope.close();
    if (untidy !== undefined) await untidy;
    const passed = last !== undefined && jsonEquals(last.value, value);
    run.push(lifetime, passed ? { ...entry, attemptKey: last?.key } : { ...entry, value });
    return value;
  } catch (thrown) {
    if (lifetime.reason !== undefined) throw thrown;
    const { error } = run.push(lifetime, { ...entry, error: toLoopError(thrown).toErrorRecord() });
    throw error === undefined ? thrown : LoopError.fromErrorRecord(error, thrown);
  }
}
