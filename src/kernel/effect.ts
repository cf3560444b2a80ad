/**
 * Effects: the only way out of a body. Intent, then result: `effect.requested` is durable before a non-pure effect
 * starts, its result is recorded when it ends. An intent without a result after a crash is in doubt, and what happens
 * then is decided by the safety that was declared with the intent, never by the code that runs now.
 */

import { Fault, LoopError, toLoopError } from '../base/errors.js';
import { type NewEntry, newEffectEntry, newReturnedEntry } from '../journal/new-entry.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import { cloneJson, copyAsJson } from '../json/value.js';
import type { Effect, EffectContext } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { createLifetimeSignal, type Lifetime, type LifetimeSignal } from './lifetime.js';
import type { RunContext, StepContext } from './run-context.js';

/** A signal is made for those who ask for it; most effects never do. */
class LazyEffectContext implements EffectContext {
  readonly idempotencyKey: string;
  private readonly lifetime: Lifetime;
  private ownSignal: LifetimeSignal | undefined;
  private borrowedSignal: LifetimeSignal | undefined;

  constructor(idempotencyKey: string, life: Lifetime) {
    this.idempotencyKey = idempotencyKey;
    this.lifetime = life;
  }

  get signal(): AbortSignal {
    this.ownSignal ??= createLifetimeSignal(this.lifetime);
    return this.ownSignal.signal;
  }

  get sharedSignal(): AbortSignal {
    // guard: idle-signal-borrowed-once
    this.borrowedSignal ??= this.lifetime.idleSignals.pop() ?? createLifetimeSignal(this.lifetime);
    return this.borrowedSignal.signal;
  }

  // guard: idle-signal-stays-connected
  release(): void {
    this.ownSignal?.release();
    if (this.borrowedSignal !== undefined) this.lifetime.idleSignals.push(this.borrowedSignal);
  }
}

/** How an attempt is performed: with what, known to the outside as what, and whether its intent must be durable first. */
interface AttemptOptions {
  readonly input: Json | undefined;
  readonly effectKey: string;
  readonly needsDurableIntent: boolean;
}

/** One attempt at an effect, unless its result is recorded or an earlier attempt of this process is still at it. */
export function attemptEffect(run: RunContext, site: StepContext, effect: Effect, identity: string): Promise<unknown> {
  if (site.recorded !== undefined) return replayAttempt(run, site, site.recorded, effect, identity);
  return attemptInProgress(run, site) ?? startAttempt(run, site, site.key, effect, identity);
}

async function replayAttempt(
  run: RunContext,
  site: StepContext,
  seen: RecordedStep,
  effect: Effect,
  identity: string,
): Promise<unknown> {
  const { key } = site;
  await run.assertMatchesJournal(key, seen, newEffectEntry('effect.requested', key, effect));
  // guard: recorded-result-returned
  if (seen.closeEntry !== undefined) return run.recordedOutcome(seen.closeEntry);
  const going = attemptInProgress(run, site);
  if (going !== undefined || seen.openEntry === undefined)
    return going ?? startAttempt(run, site, key, effect, identity);
  // guard: once-effect-in-doubt-not-repeated
  if (seen.openEntry.safety === 'once') return resolveInDoubt(run, site, effect, seen, identity);
  return performAttempt(run, site, effect, {
    input: copyAsJson(effect.input, effect.name),
    effectKey: identity,
    needsDurableIntent: false,
  });
}

function attemptInProgress(run: RunContext, { key, lifetime }: StepContext): Promise<unknown> | undefined {
  // guard: cancel-checked-before-effect
  lifetime.throwIfEnded();
  const landed = run.deps.lateResults?.get(key);
  if (landed !== undefined) return run.recordedOutcome(landed);
  const flying = run.deps.inFlight.get(key);
  // guard: effect-in-flight-joined
  return flying && lifetime.raceWithEnd(flying);
}

function startAttempt(
  run: RunContext,
  site: StepContext,
  intent: string,
  effect: Effect,
  identity: string,
): Promise<unknown> {
  const entry = run.propose(site.lifetime, newEffectEntry('effect.requested', intent, effect));
  run.applyToState(entry);
  // guard: intent-durable-before-effect
  const waits = effect.safety !== 'pure';
  return performAttempt(run, site, effect, { input: entry.value, effectKey: identity, needsDurableIntent: waits });
}

/** A `once` effect that may or may not have happened: only a decision from outside moves it on. */
async function resolveInDoubt(
  run: RunContext,
  site: StepContext,
  effect: Effect,
  seen: RecordedStep,
  identity: string,
): Promise<unknown> {
  const { key, lifetime } = site;
  const { name } = effect;
  const input = copyAsJson(effect.input, name) ?? null;
  for (let n = 1; ; n++) {
    const redo = `${key}~${n}`;
    const known = seen.retryEntry('effect.resolved', n) ?? run.deps.sessionState.resolutionAt(redo);
    const decided =
      known ?? (await run.waitForEntry({ kind: 'doubt', key, name, input }, lifetime, `decision ${redo}`));
    if (decided.resolution === 'supply') return recordSuppliedResult(run, site, decided);
    if (decided.resolution === 'fail') throw recordForcedFailure(run, site, decided);
    const refused = seen.retryEntry('step.refused', n);
    if (refused !== undefined) return run.recordedOutcome(refused);
    if (seen.retryEntry('effect.requested', n) === undefined) return startAttempt(run, site, redo, effect, identity);
  }
}

async function recordSuppliedResult(run: RunContext, { key, lifetime }: StepContext, decided: Entry): Promise<unknown> {
  const value = (await run.recordedOutcome(decided)) as Json | undefined;
  run.applyToState(run.push(lifetime, newReturnedEntry(key, value)));
  return value;
}

function recordForcedFailure(run: RunContext, { key, lifetime }: StepContext, { by = '', reason }: Entry): LoopError {
  const why = reason === undefined ? '' : `: ${reason}`;
  const message = `It is unknown whether this effect happened; ${by} decided to fail it${why}.`;
  const error = new LoopError('EFFECT_IN_DOUBT', message, { key, by });
  run.applyToState(run.push(lifetime, { seq: 0, at: 0, type: 'effect.failed', key, error: error.toErrorRecord() }));
  return error;
}

/** Performs the effect; how it ends is recorded even if by then nobody waits for it any more. */
function performAttempt(run: RunContext, site: StepContext, effect: Effect, manner: AttemptOptions): Promise<unknown> {
  const work = performAndRecord(run, site, effect, manner);
  run.trackInFlight(site.key, work);
  return site.lifetime.raceWithEnd(work);
}

async function performAndRecord(
  run: RunContext,
  { key, lifetime }: StepContext,
  effect: Effect,
  manner: AttemptOptions,
): Promise<unknown> {
  if (manner.needsDurableIntent) await run.writer.waitForFlush();
  else if (run.writer.isBacklogged) await run.writer.waitForBacklog();
  if (run.deps.replayOnly)
    run.attempt.fail(new Fault('REPLAY_INCOMPLETE', `The record of the run ends at ${key}.`, { key }));
  // guard: ended-attempt-starts-no-effect
  if (run.isOver) return undefined;
  const performance = new LazyEffectContext(`${run.deps.sessionState.incarnationId}:${manner.effectKey}`, lifetime);
  try {
    lifetime.throwIfEnded();
    // guard: effect-gets-journaled-input
    const value = await effect.perform(cloneJson(manner.input) as Json, performance);
    return recordAttemptEnd(run, newReturnedEntry(key, value));
  } catch (thrown) {
    const error = toLoopError(thrown).toErrorRecord();
    return recordAttemptEnd(run, { seq: 0, at: 0, type: 'effect.failed', key, error }, thrown);
  } finally {
    performance.release();
  }
}

/** A fact about the outside, written whoever still waits for it; the value, or the error, as it is recorded. */
function recordAttemptEnd(run: RunContext, entry: NewEntry, cause?: unknown): Json | undefined {
  if (run.writer.fault !== undefined) return undefined;
  const end = run.writer.push(entry);
  run.applyToState(end);
  if (run.isOver) run.deps.lateResults?.set(end.key, end);
  if (end.error !== undefined) throw LoopError.fromErrorRecord(end.error, cause);
  return cloneJson(end.value);
}
