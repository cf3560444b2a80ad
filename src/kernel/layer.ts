/**
 * Layers stand around effects: they may admit, refuse, answer, change, delay or repeat them, and never perform one
 * themselves. With layers an effect has two levels: what was asked and how it was settled, and under it the attempts.
 */

import { LoopError, outcomeOf } from '../base/errors.js';
import { effectEntry } from '../journal/fresh.js';
import { same, snapshot } from '../json/value.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { attemptEffect } from './effect.js';
import type { Run, Site } from './run.js';
import { KernelScope } from './scope.js';

/**
 * One layer. `scope` is the effect's own: its timers, waits and records are journaled under the effect, so a layer that
 * runs again finds its own past. `next` goes inwards, with the same effect or another; each call of it is one attempt.
 */
export type Layer = (effect: Effect, scope: Scope, next: (effect?: Effect) => Promise<unknown>) => Promise<unknown>;

/** Does an effect, or returns its recorded result. An effect that was begun without layers is finished without. */
export function runEffect(run: Run, site: Site, effect: Effect): Promise<unknown> {
  const { key, seen } = site;
  assertEffect(effect, key);
  const layers = run.parts.layersOf(effect, key);
  const layered = seen?.open === undefined ? layers.length > 0 : seen.open.type === 'effect.asked';
  return layered ? askLayers(run, site, effect, layers) : attemptEffect(run, site, effect, key);
}

async function askLayers(run: Run, site: Site, effect: Effect, layers: readonly Layer[]): Promise<unknown> {
  const { key, seen } = site;
  const asked = effectEntry('effect.asked', key, effect);
  if ((await run.enter(site, asked)) && seen?.close !== undefined) return run.recall(seen.close);
  // From here on the effect is what was asked, whatever becomes of the caller's object.
  return settle(run, site, { ...effect, input: snapshot(effect.input, effect.name) }, layers);
}

const SAFETIES: ReadonlySet<string> = new Set(['pure', 'idempotent', 'keyed', 'once']);

function assertEffect({ kind, name, safety }: Effect, key: string): void {
  if (typeof kind === 'string' && typeof name === 'string' && SAFETIES.has(safety)) return;
  const message = `The effect at ${key} needs a kind and a name, both text, and a safety: pure, idempotent, keyed or once.`;
  throw new LoopError('VALUE_INVALID', message, { key });
}

/** Runs the layers and records what they made of the effect; a result they passed on unchanged is not stored again. */
async function settle(run: Run, site: Site, effect: Effect, layers: readonly Layer[]): Promise<unknown> {
  const { key, life } = site;
  const scope = new KernelScope(run, key, life, site.seen, site.depth);
  let last: { readonly key: string; readonly value: Json | undefined } | undefined;
  const innermost = (current: Effect): Promise<unknown> =>
    scope.step(async (inner) => {
      const value = await attemptEffect(run, inner, current, key);
      last = { key: inner.key, value: snapshot(value, current.name) };
      return value;
    });
  const from = (index: number, current: Effect): Promise<unknown> => {
    const layer = layers[index];
    if (layer === undefined) return innermost(current);
    return layer(current, scope, (changed) => from(index + 1, changed ?? current));
  };
  const entry = { seq: 0, at: 0, type: 'effect.settled', key };
  try {
    const value = snapshot(await from(0, effect), 'the answer of the layers', key);
    const untidy = scope.close();
    if (untidy !== undefined) await untidy;
    const passed = last !== undefined && same(last.value, value);
    run.push(life, passed ? { ...entry, from: last?.key } : { ...entry, value });
    return value;
  } catch (thrown) {
    if (life.reason !== undefined) throw thrown;
    const { error } = run.push(life, { ...entry, error: outcomeOf(thrown).record() });
    throw error === undefined ? thrown : LoopError.of(error, thrown);
  }
}
