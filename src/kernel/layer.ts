/** Layers stand around effects: they may admit, refuse, answer, change, delay or repeat them, and never perform one themselves. */
import type { Effect } from './effect.js';
import type { Scope } from './scope.js';

/**
 * One layer. `scope` is the effect's own: its timers, waits and records are journaled under the effect, so a layer that
 * runs again finds its own past. `next` goes inwards, with the same effect or another; each call of it is one attempt.
 */
export type Layer = (effect: Effect, scope: Scope, next: (effect?: Effect) => Promise<unknown>) => Promise<unknown>;

/** The layers from the outside in, around `innermost`. */
export function throughLayers(
  layers: readonly Layer[],
  effect: Effect,
  scope: Scope,
  innermost: (effect: Effect) => Promise<unknown>,
): Promise<unknown> {
  const from = (index: number, current: Effect): Promise<unknown> => {
    const layer = layers[index];
    if (layer === undefined) return innermost(current);
    return layer(current, scope, (changed) => from(index + 1, changed ?? current));
  };
  return from(0, effect);
}
