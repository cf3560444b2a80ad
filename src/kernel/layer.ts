/**
 * Layers stand around effects: they may admit, refuse, answer, change, delay or repeat them, and never perform one
 * themselves. With layers an effect has two levels: what was asked and how it was settled, and under it the attempts.
 */
import type { Json } from '../protocol/json.js';
import { attemptEffect, type Effect } from './effect.js';
import { outcomeOf } from './errors.js';
import type { Run, Site } from './run.js';
import { Scope } from './scope.js';

/**
 * One layer. `scope` is the effect's own: its timers, waits and records are journaled under the effect, so a layer that
 * runs again finds its own past. `next` goes inwards, with the same effect or another; each call of it is one attempt.
 */
export type Layer = (effect: Effect, scope: Scope, next: (effect?: Effect) => Promise<unknown>) => Promise<unknown>;

/** Does an effect, or returns its recorded result. An effect that was begun without layers is finished without. */
export async function runEffect(run: Run, site: Site, effect: Effect): Promise<unknown> {
  const { key, seen } = site;
  const { kind, name, safety, input } = effect;
  const layered = seen?.open === undefined ? run.parts.layers.length > 0 : seen.open.type === 'effect.asked';
  if (!layered) {
    if (seen !== undefined) await run.expect(key, seen, { type: 'effect.requested', kind, name, value: input as Json });
    return attemptEffect(run, site, effect);
  }
  const asked = { seq: 0, at: 0, type: 'effect.asked', key, kind, name, safety, value: input as Json };
  if ((await run.enter(site, asked)) && seen?.close !== undefined) return run.recall(seen.close);
  return settle(run, site, effect);
}

/** Runs the layers and records what they made of the effect; a result they passed on unchanged is not stored again. */
async function settle(run: Run, site: Site, effect: Effect): Promise<unknown> {
  const { key, life } = site;
  const scope = new Scope(run, site);
  let last: { readonly key: string; readonly value: unknown } | undefined;
  const innermost = (current: Effect): Promise<unknown> =>
    scope.step(async (inner) => {
      const value = await attemptEffect(run, inner, current, current === effect ? key : undefined);
      last = { key: inner.key, value };
      return value;
    });
  const from = (index: number, current: Effect): Promise<unknown> => {
    const layer = run.parts.layers[index];
    return layer === undefined
      ? innermost(current)
      : layer(current, scope, (changed) => from(index + 1, changed ?? current));
  };
  const entry = { seq: 0, at: 0, type: 'effect.settled', key };
  try {
    const value = await from(0, effect);
    if (life.lost || run.over) return value;
    const passed = last !== undefined && Object.is(last.value, value);
    run.writer.push(passed ? { ...entry, from: last?.key } : { ...entry, value: value as Json });
    return value;
  } catch (thrown) {
    if (life.reason !== undefined || run.over) throw thrown;
    const error = outcomeOf(thrown);
    run.writer.push({ ...entry, error: error.record() });
    throw error;
  }
}
