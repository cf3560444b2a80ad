/**
 * Effects: the only way out of a body. Intent, then result: `effect.requested` is durable before a non-pure effect
 * starts, its result is recorded when it ends. An intent without a result after a crash is in doubt, and what happens
 * then is decided by the safety that was declared with the intent, never by the code that runs now.
 */
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { stall } from './attempt.js';
import { LoopError, outcomeOf } from './errors.js';
import { abortSignal } from './lifetime.js';
import type { Trodden } from './past.js';
import type { Run, Site } from './run.js';
import { snapshot } from './value.js';

/** What an effect is told when it is performed. */
export interface Performance {
  /** The same for every attempt at a non-pure effect, in any process: hand it to systems that accept an idempotency key. */
  readonly idempotencyKey: string;
  /** Aborted when the run is cancelled or this branch lost a race. */
  readonly signal: AbortSignal;
}

/** Something done outside the run. */
export interface Effect<O = unknown> {
  readonly kind: string;
  readonly name: string;
  readonly input: unknown;
  readonly safety: Safety;
  perform(input: Json, performance: Performance): Promise<O> | O;
}

/** One attempt at an effect, unless its result is recorded or an earlier attempt of this process is still at it. `from` names the effect whose input this attempt shares. */
export async function attemptEffect(run: Run, site: Site, effect: Effect, from?: string): Promise<unknown> {
  const { key, life, seen } = site;
  if (seen?.close !== undefined) return run.recall(seen.close);
  life.check();
  const flying = run.parts.inFlight.get(key);
  if (flying !== undefined) return life.bound(flying);
  if (seen?.open === undefined) return begin(run, site, key, effect, from);
  if (seen.open.safety !== 'once') return perform(run, site, effect);
  return resolveDoubt(run, site, effect, seen);
}

async function begin(run: Run, site: Site, intent: string, effect: Effect, from?: string): Promise<unknown> {
  const { kind, name, safety } = effect;
  const value = from === undefined ? (effect.input as Json) : undefined;
  const entry = { seq: 0, at: 0, type: 'effect.requested', key: intent, kind, name, safety, value };
  run.note(run.writer.propose(from === undefined ? entry : { ...entry, from }));
  if (safety !== 'pure' || run.writer.crowded) await run.barrier(site.life);
  return perform(run, site, effect);
}

/** A `once` effect that may or may not have happened: only a decision from outside moves it on. */
async function resolveDoubt(run: Run, site: Site, effect: Effect, seen: Trodden): Promise<unknown> {
  const { key, life } = site;
  const input = snapshot(effect.input, effect.name) ?? null;
  for (let n = 1; ; n++) {
    const redo = `${key}~${n}`;
    const decided =
      seen.redo('effect.decided', n) ??
      (await run.outside({ kind: 'doubt', key, name: effect.name, input }, life, `decision ${redo}`));
    if (decided.decision === 'supply') return supply(run, key, decided);
    if (decided.decision === 'fail') throw refuse(run, key, decided);
    if (seen.redo('effect.requested', n) === undefined) return begin(run, site, redo, effect);
  }
}

async function supply(run: Run, key: string, decided: Entry): Promise<unknown> {
  const value = (await run.recall(decided)) as Json | undefined;
  run.note(run.writer.push({ seq: 0, at: 0, type: 'effect.returned', key, value }));
  return value;
}

function refuse(run: Run, key: string, { by = '', reason }: Entry): LoopError {
  const why = reason === undefined ? '' : `: ${reason}`;
  const message = `It is unknown whether this effect happened; ${by} decided to fail it${why}.`;
  const error = new LoopError('EFFECT_IN_DOUBT', message, { key, by });
  run.note(run.writer.push({ seq: 0, at: 0, type: 'effect.failed', key, error: error.record() }));
  return error;
}

/** Performs the effect and records how it ended, even if by then nobody waits for it any more. */
function perform(run: Run, site: Site, effect: Effect): Promise<unknown> {
  const work = performAndRecord(run, site, effect);
  run.follow(site.key, work);
  return site.life.bound(work);
}

async function performAndRecord(run: Run, { key, life }: Site, effect: Effect): Promise<unknown> {
  let aborting: ReturnType<typeof abortSignal> | undefined;
  const performance: Performance = {
    idempotencyKey: run.idempotencyKey(key),
    get signal() {
      aborting ??= abortSignal(life);
      return aborting.signal;
    },
  };
  try {
    const value = await effect.perform(effect.input as Json, performance);
    if (run.dead) return stall();
    run.note(run.writer.push({ seq: 0, at: 0, type: 'effect.returned', key, value: value as Json }));
    return value;
  } catch (thrown) {
    if (run.dead) return stall();
    const error = outcomeOf(thrown);
    run.note(run.writer.push({ seq: 0, at: 0, type: 'effect.failed', key, error: error.record() }));
    throw error;
  } finally {
    aborting?.release();
  }
}
