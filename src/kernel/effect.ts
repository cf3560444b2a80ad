/**
 * Effects: the only way out of a body. Intent, then result: `effect.requested` is durable before a non-pure effect
 * starts, its result is recorded when it ends. An intent without a result after a crash is in doubt, and what happens
 * then is decided by the safety that was declared with the intent, never by the code that runs now.
 */

import { Fault, LoopError, outcomeOf } from '../base/errors.js';
import { effectEntry, type Fresh, returnedEntry } from '../journal/fresh.js';
import type { Trodden } from '../journal/past.js';
import { copy, snapshot } from '../json/value.js';
import type { Effect, EffectContext } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { abortSignal, type Following, type Lifetime } from './lifetime.js';
import type { Run, Site } from './run.js';

/** A signal is made for those who ask for it; most effects never do. */
class Performing implements EffectContext {
  readonly idempotencyKey: string;
  private readonly life: Lifetime;
  private own: Following | undefined;
  private borrowed: Following | undefined;

  constructor(idempotencyKey: string, life: Lifetime) {
    this.idempotencyKey = idempotencyKey;
    this.life = life;
  }

  get signal(): AbortSignal {
    this.own ??= abortSignal(this.life);
    return this.own.signal;
  }

  get sharedSignal(): AbortSignal {
    // guard: idle-signal-borrowed-once
    this.borrowed ??= this.life.idle.pop() ?? abortSignal(this.life);
    return this.borrowed.signal;
  }

  // guard: idle-signal-stays-connected
  release(): void {
    this.own?.release();
    if (this.borrowed !== undefined) this.life.idle.push(this.borrowed);
  }
}

/** How an attempt is performed: with what, known to the outside as what, and whether its intent must be durable first. */
interface Manner {
  readonly input: Json | undefined;
  readonly identity: string;
  readonly waits: boolean;
}

/** One attempt at an effect, unless its result is recorded or an earlier attempt of this process is still at it. */
export function attemptEffect(run: Run, site: Site, effect: Effect, identity: string): Promise<unknown> {
  if (site.seen !== undefined) return repeat(run, site, site.seen, effect, identity);
  return underWay(run, site) ?? begin(run, site, site.key, effect, identity);
}

async function repeat(run: Run, site: Site, seen: Trodden, effect: Effect, identity: string): Promise<unknown> {
  const { key } = site;
  await run.expect(key, seen, effectEntry('effect.requested', key, effect));
  // guard: recorded-result-returned
  if (seen.close !== undefined) return run.recall(seen.close);
  const going = underWay(run, site);
  if (going !== undefined || seen.open === undefined) return going ?? begin(run, site, key, effect, identity);
  // guard: once-effect-in-doubt-not-repeated
  if (seen.open.safety === 'once') return resolveDoubt(run, site, effect, seen, identity);
  return perform(run, site, effect, { input: snapshot(effect.input, effect.name), identity, waits: false });
}

function underWay(run: Run, { key, life }: Site): Promise<unknown> | undefined {
  // guard: cancel-checked-before-effect
  life.check();
  const landed = run.parts.landed?.get(key);
  if (landed !== undefined) return run.recall(landed);
  const flying = run.parts.inFlight.get(key);
  // guard: effect-in-flight-joined
  return flying && life.bound(flying);
}

function begin(run: Run, site: Site, intent: string, effect: Effect, identity: string): Promise<unknown> {
  const entry = run.propose(site.life, effectEntry('effect.requested', intent, effect));
  run.note(entry);
  // guard: intent-durable-before-effect
  const waits = effect.safety !== 'pure';
  return perform(run, site, effect, { input: entry.value, identity, waits });
}

/** A `once` effect that may or may not have happened: only a decision from outside moves it on. */
async function resolveDoubt(run: Run, site: Site, effect: Effect, seen: Trodden, identity: string): Promise<unknown> {
  const { key, life } = site;
  const { name } = effect;
  const input = snapshot(effect.input, name) ?? null;
  for (let n = 1; ; n++) {
    const redo = `${key}~${n}`;
    const known = seen.redo('effect.decided', n) ?? run.parts.standing.decisionAt(redo);
    const decided = known ?? (await run.outside({ kind: 'doubt', key, name, input }, life, `decision ${redo}`));
    if (decided.decision === 'supply') return supply(run, site, decided);
    if (decided.decision === 'fail') throw refuse(run, site, decided);
    const refused = seen.redo('step.refused', n);
    if (refused !== undefined) return run.recall(refused);
    if (seen.redo('effect.requested', n) === undefined) return begin(run, site, redo, effect, identity);
  }
}

async function supply(run: Run, { key, life }: Site, decided: Entry): Promise<unknown> {
  const value = (await run.recall(decided)) as Json | undefined;
  run.note(run.push(life, returnedEntry(key, value)));
  return value;
}

function refuse(run: Run, { key, life }: Site, { by = '', reason }: Entry): LoopError {
  const why = reason === undefined ? '' : `: ${reason}`;
  const message = `It is unknown whether this effect happened; ${by} decided to fail it${why}.`;
  const error = new LoopError('EFFECT_IN_DOUBT', message, { key, by });
  run.note(run.push(life, { seq: 0, at: 0, type: 'effect.failed', key, error: error.record() }));
  return error;
}

/** Performs the effect; how it ends is recorded even if by then nobody waits for it any more. */
function perform(run: Run, site: Site, effect: Effect, manner: Manner): Promise<unknown> {
  const work = performAndRecord(run, site, effect, manner);
  run.follow(site.key, work);
  return site.life.bound(work);
}

async function performAndRecord(run: Run, { key, life }: Site, effect: Effect, manner: Manner): Promise<unknown> {
  if (manner.waits) await run.writer.flushed();
  else if (run.writer.crowded) await run.writer.eased();
  if (run.parts.idle) run.attempt.fail(new Fault('RECORD_ENDS', `The record of the run ends at ${key}.`, { key }));
  // guard: ended-attempt-starts-no-effect
  if (run.over) return undefined;
  const performance = new Performing(`${run.parts.standing.born}:${manner.identity}`, life);
  try {
    life.check();
    // guard: effect-gets-journaled-input
    const value = await effect.perform(copy(manner.input) as Json, performance);
    return recordEnd(run, returnedEntry(key, value));
  } catch (thrown) {
    const error = outcomeOf(thrown).record();
    return recordEnd(run, { seq: 0, at: 0, type: 'effect.failed', key, error }, thrown);
  } finally {
    performance.release();
  }
}

/** A fact about the outside, written whoever still waits for it; the value, or the error, as it is recorded. */
function recordEnd(run: Run, entry: Fresh, cause?: unknown): Json | undefined {
  if (run.writer.fault !== undefined) return undefined;
  const end = run.writer.push(entry);
  run.note(end);
  if (run.over) run.parts.landed?.set(end.key, end);
  if (end.error !== undefined) throw LoopError.of(end.error, cause);
  return copy(end.value);
}
