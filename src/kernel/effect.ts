/**
 * Effects: the only way a body acts outside of the journal. The intent of a non-pure effect, `effect.requested`, is
 * durable before the effect starts; its result is recorded when it ends. An intent without a result is in doubt after a
 * crash. A `once` effect then waits for its resolution; any other is performed again, after `effect.repeated` unless it is
 * pure. The recorded safety decides, whatever the code declares now.
 */

import { LazyEffectContext } from '../base/effect-context.js';
import { Fault, LoopError, NotPerformed, toLoopError } from '../base/errors.js';
import { neverSettles } from '../base/microtasks.js';
import { forcedFailure } from '../base/step-errors.js';
import { type NewEntry, newEffectEntry, newReturnedEntry } from '../journal/new-entry.js';
import { newFailedEntry, newRefusedEntry } from '../journal/refusal-entries.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import { cloneJson, copyAsJson } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Run, Step } from './run.js';

interface AttemptOptions {
  /** The input as it is recorded. */
  readonly input: Json | undefined;
  /** The key of the effect. All attempts at it share the key, and with it the idempotency key. */
  readonly effectKey: string;
  /** True if what was just recorded about the attempt must be durable before the effect starts. */
  readonly awaitsFlush: boolean;
  /** Records the end of the attempt; `cause` is what the effect threw. @default recordAttemptEnd */
  readonly recordEnd?: (run: Run, entry: NewEntry, cause?: unknown) => unknown;
}

/**
 * Makes one attempt at an effect, returns its recorded result, or joins an attempt that is in flight. `effectKey` is
 * the key of the effect, of which `step` is an attempt.
 */
export function attemptEffect(step: Step, effect: Effect, effectKey: string): Promise<unknown> {
  const { key, recorded } = step;
  if (recorded !== undefined) return replayAttempt(step, recorded, effect, effectKey);
  return attemptInProgress(step) ?? startAttempt(step, key, effect, effectKey);
}

async function replayAttempt(step: Step, recorded: RecordedStep, effect: Effect, effectKey: string): Promise<unknown> {
  const { run, key } = step;
  await run.assertMatchesJournal(key, recorded, newEffectEntry('effect.requested', key, effect));
  // guard: recorded-result-returned
  if (recorded.closeEntry !== undefined) return run.recordedOutcome(recorded.closeEntry);
  const inProgress = attemptInProgress(step);
  if (inProgress !== undefined) return inProgress;
  if (recorded.openEntry === undefined) return startAttempt(step, key, effect, effectKey);
  const reopened = recorded.reopening?.endedEntry;
  if (reopened !== undefined) return attemptAgain(step, recorded, effect, effectKey, reopened);
  // guard: once-effect-in-doubt-not-repeated
  if (recorded.openEntry.safety === 'once')
    return resolveInDoubt(step, recorded, effect, effectKey, recorded.lastRetry('effect.requested'));
  // guard: repeated-attempt-admitted
  const admitted = admitOrRecord(step, effect, effectKey, (refusal) => newFailedEntry(step.key, refusal));
  if (admitted === undefined) return neverSettles();
  const [input, awaitsFlush] = [copyAsJson(effect.input, effect.name), recorded.openEntry.safety !== 'pure'];
  // guard: repeated-start-recorded
  if (awaitsFlush) run.push(step.lifetime, { seq: 0, at: 0, type: 'effect.repeated', key });
  return performAttempt(step, admitted, { input, effectKey, awaitsFlush });
}

/**
 * Returns the result of the attempt that an earlier run of this process started; undefined if there is none. Throws if
 * the lifetime has ended.
 */
function attemptInProgress({ run, key, lifetime }: Step): Promise<unknown> | undefined {
  // guard: cancel-checked-before-effect
  lifetime.throwIfEnded();
  const lateResult = run.deps.lateResults?.get(key);
  if (lateResult !== undefined) return run.recordedOutcome(lateResult);
  const inFlight = run.deps.inFlight.get(key);
  // guard: effect-in-flight-joined
  return inFlight && lifetime.raceWithEnd(inFlight);
}

function startAttempt(step: Step, intentKey: string, effect: Effect, effectKey: string): Promise<unknown> {
  const { run, lifetime } = step;
  const requested = newEffectEntry('effect.requested', intentKey, effect);
  const admitted = admitOrRecord(step, effect, effectKey, (refusal) => newRefusedEntry(requested, refusal));
  if (admitted === undefined) return neverSettles();
  const intent = run.propose(lifetime, requested);
  run.deps.sessionState.apply(intent);
  return performAttempt(step, admitted, { input: intent.value, effectKey, awaitsFlush: effect.safety !== 'pure' });
}

/** Returns the admitted effect; undefined if the run was stopped. A refusal is recorded, so that a replay repeats it. */
function admitOrRecord(
  { run, lifetime, isRetry }: Step,
  effect: Effect,
  effectKey: string,
  refusalEntry: (refusal: LoopError) => NewEntry,
): Effect | undefined {
  try {
    return run.admit(effect, effectKey, isRetry);
  } catch (thrown) {
    // guard: refused-attempt-recorded
    run.deps.sessionState.apply(run.push(lifetime, refusalEntry(toLoopError(thrown))));
    throw thrown;
  }
}

/**
 * Makes another attempt at an effect that a retry of its root reopened. A `once` effect of which it is unknown whether
 * it happened gets a new intent only, which is in doubt.
 */
function attemptAgain(
  step: Step,
  recorded: RecordedStep,
  effect: Effect,
  effectKey: string,
  ended: Entry,
): Promise<unknown> {
  const { run, key, lifetime } = step;
  const attempt = recorded.lastRetry() + 1;
  const isKnown = ended.type !== 'effect.requested' && ended.error?.code !== 'EFFECT_IN_DOUBT';
  // guard: retried-effect-in-doubt-not-repeated
  if (isKnown || recorded.openEntry?.safety !== 'once')
    return startAttempt({ ...step, isRetry: true }, `${key}~${attempt}`, effect, effectKey);
  run.deps.sessionState.apply(run.propose(lifetime, newEffectEntry('effect.requested', `${key}~${attempt}`, effect)));
  return resolveInDoubt(step, recorded, effect, effectKey, attempt);
}

/**
 * Waits until a `once` effect in doubt is resolved, because the journal does not show whether it happened. Then applies
 * the resolution: returns the supplied result, throws the failure, or makes another attempt. `lastAttempt` is the number
 * of the attempt in doubt.
 */
async function resolveInDoubt(
  step: Step,
  recorded: RecordedStep,
  effect: Effect,
  effectKey: string,
  lastAttempt: number,
): Promise<unknown> {
  const { run, key, lifetime } = step;
  const input = copyAsJson(effect.input, effect.name) ?? null;
  for (let retry = lastAttempt + 1; ; retry++) {
    const retryKey = `${key}~${retry}`;
    const resolved =
      recorded.retryEntry('effect.resolved', retry) ??
      run.deps.sessionState.resolutionAt(retryKey) ??
      (await run.waitForEntry({ kind: 'doubt', key, name: effect.name, input }, lifetime, `resolution ${retryKey}`));
    if (resolved.resolution === 'supply') return recordSuppliedResult(step, resolved);
    if (resolved.resolution === 'fail') throw recordForcedFailure(step, resolved);
    if (recorded.retryEntry('effect.requested', retry) === undefined)
      return startAttempt(step, retryKey, effect, effectKey);
  }
}

async function recordSuppliedResult({ run, key, lifetime }: Step, resolved: Entry): Promise<unknown> {
  const value = (await run.recordedOutcome(resolved)) as Json | undefined;
  run.deps.sessionState.apply(run.push(lifetime, newReturnedEntry(key, value)));
  return value;
}

function recordForcedFailure({ run, key, lifetime }: Step, { by = '', reason }: Entry): LoopError {
  const error = forcedFailure(key, by, reason);
  run.deps.sessionState.apply(run.push(lifetime, newFailedEntry(key, error)));
  return error;
}

/**
 * Performs the effect and returns its result, or throws when the lifetime ends first. The result is recorded even if
 * the run was cancelled or paused meanwhile.
 */
export function performAttempt(step: Step, effect: Effect, options: AttemptOptions): Promise<unknown> {
  const { run, key, lifetime } = step;
  const { inFlight } = run.deps;
  const work = performAndRecord(step, effect, options);
  inFlight.set(key, work);
  return lifetime.raceWithEnd(work, () => inFlight.delete(key));
}

async function performAndRecord(step: Step, effect: Effect, options: AttemptOptions): Promise<unknown> {
  const { run, key, lifetime } = step;
  const { sessionState, replayOnly } = run.deps;
  // guard: intent-durable-before-effect
  if (options.awaitsFlush) await run.writer.waitForFlush();
  else if (run.writer.isBacklogged) await run.writer.waitForBacklog();
  if (replayOnly) run.attempt.fail(new Fault('REPLAY_INCOMPLETE', `The record of the run ends at ${key}.`, { key }));
  // At a stop, what was admitted is counted; at a close, an effect with an intent would be in doubt. Both are performed.
  const isOrderly = run.attempt.stopped !== undefined || run.attempt.fault?.code === 'SESSION_CLOSED';
  // guard: ended-attempt-starts-no-effect
  if (run.isOver && (run.writer.fault !== undefined || !isOrderly)) return undefined;
  const context = new LazyEffectContext(`${sessionState.incarnationId}:${options.effectKey}`, lifetime);
  try {
    lifetime.throwIfEnded();
    // guard: effect-gets-journaled-input
    const value = await effect.perform(cloneJson(options.input) as Json, context);
    return (options.recordEnd ?? recordAttemptEnd)(run, newReturnedEntry(key, value));
  } catch (thrown) {
    // The run was stopped before the effect began: its intent stays without an end.
    // guard: unperformed-attempt-has-no-end
    if (thrown instanceof NotPerformed) return undefined;
    return (options.recordEnd ?? recordAttemptEnd)(run, newFailedEntry(key, toLoopError(thrown)), thrown);
  } finally {
    context.release();
  }
}

/**
 * Records the end of an attempt, even for a run that is over. Returns the value or throws the error. Records nothing
 * and returns undefined if the writer has failed. `weight` is the size of the value if the value is a JSON copy.
 */
export function recordAttemptEnd(run: Run, entry: NewEntry, cause?: unknown, weight?: number): Json | undefined {
  if (run.writer.fault !== undefined) return undefined;
  const end = run.writer.push(entry, false, weight);
  run.deps.sessionState.apply(end);
  if (run.isOver) run.deps.lateResults?.set(end.key, end);
  if (end.error !== undefined) throw LoopError.fromErrorRecord(end.error, cause);
  return cloneJson(end.value);
}
