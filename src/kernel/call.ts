/**
 * Calls: one call is one invocation of a loop. Its first entry is `call.started`, which also records whether the input
 * is valid. Its last entry is exactly one `call.completed` or `call.errored`; a call whose branch lost a race has none.
 * A recorded end is returned, never computed again. A leaf call is recorded together with its effect: see `leaf.ts`.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import { endStepLater, NEXT_MICROTASK, neverSettles } from '../base/microtasks.js';
import { depthError, invalidNameError } from '../base/step-errors.js';
import { isValidationTimed, recordValidation } from '../base/validation-timing.js';
import { addLeafIntent } from '../journal/leaf-entries.js';
import { CallStartedEntry, type NewEntry, newCompletedEntry } from '../journal/new-entry.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import { cloneJson, copyAsJson, lastCopyBytes } from '../json/value.js';
import type { Loop } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { LeafCall, leafCallOf } from './leaf.js';
import type { Step } from './run.js';
import type { KernelScope } from './scope.js';

/** A loop of any input and output type, without its body. */
export type LoopHeader = Omit<Loop, 'body'>;

/**
 * Runs a call in its own scope. Returns its output or throws its error, live or as recorded. Never settles once the
 * attempt is over. `caller` is the scope whose step the call is; a root call has none.
 */
export async function runCall<I>(scope: KernelScope, loop: Loop<I>, input: I, caller?: KernelScope): Promise<unknown> {
  const { run, recorded } = scope;
  try {
    // Of a call that has ended, this is the recorded output; of any other, the input for the body.
    const value =
      recorded === undefined ? startCall(scope, loop, input) : await replayCall(scope, recorded, loop, input);
    // guard: finished-call-not-repeated
    if (recorded?.closeEntry !== undefined) {
      caller?.endStep();
      return value;
    }
    if (loop.leaf !== undefined && value instanceof LeafCall) {
      try {
        await value.perform(scope, loop);
      } catch (thrown) {
        // A lifetime that ends after the call has ended does not change the outcome that is recorded.
        // guard: recorded-end-of-leaf-kept
        if (value.finish === undefined) throw thrown;
      }
      const output = run.isOver || value.finish === undefined ? await neverSettles() : value.finish();
      caller?.endStep();
      return output;
    }
    // guard: full-queue-awaited
    if (recorded === undefined && run.writer.isBacklogged) await run.waitForBacklog(scope.lifetime);
    scope.awaitsSteps = loop.awaitsSteps === true;
    const output = await loop.body(value as I, scope);
    const mismatch = scope.close();
    // Never settles: the mismatch has ended the attempt.
    if (mismatch !== undefined) await mismatch;
    const result = completeCall(scope, loop, output);
    // A body that returns without awaiting a call that ends at once is noticed before the call counts as ended.
    // guard: quick-call-outlasts-body
    if (scope.nextIndex === 0 && caller?.awaitsSteps === false) endStepLater(caller);
    else caller?.endStep();
    return result;
  } catch (thrown) {
    // guard: refused-call-outlasts-body
    for (let i = 0; i < 2; i++) await NEXT_MICROTASK;
    if (run.isOver) return await neverSettles();
    caller?.endStep();
    throw scope.isCallOpen ? recordCallError(scope, thrown) : thrown;
  }
}

/**
 * Compares a call with its record. Returns the recorded output, or throws the recorded error, if the call has ended;
 * otherwise returns the validated input for the body.
 */
async function replayCall(scope: KernelScope, step: RecordedStep, loop: LoopHeader, input: unknown): Promise<unknown> {
  const { run, key } = scope;
  const { name, version } = loop;
  await run.assertMatchesJournal(key, step, { type: 'call.started', name, version, value: input as Json });
  if (step.closeEntry !== undefined) return run.recordedOutcome(step.closeEntry);
  scope.isCallOpen = true;
  const copy = copyAsJson(input, 'the input', key);
  return loop.input === undefined ? copy : loop.input(copy);
}

/**
 * Validates the input, records the start of the call, and returns the input for the body, or the leaf call that is
 * performed in its place. Throws the error of an invalid input after the start is recorded.
 */
function startCall(scope: KernelScope, loop: LoopHeader, input: unknown): unknown {
  const { run, key, lifetime, depth } = scope;
  const { name, version, definitionDigest, bodyKind } = loop;
  const { clock, maxDepth } = run.deps;
  if (depth > /* guard: call-depth-bounded */ maxDepth) throw depthError(key, maxDepth);
  if (typeof name !== 'string' || (version !== undefined && typeof version !== 'string')) throw invalidNameError(key);
  const value = copyAsJson(input, 'call.started', key);
  const weight = lastCopyBytes();
  const isTimed = isValidationTimed(loop.input, loop.hasFastValidation === true, weight);
  const since = isTimed ? clock.now() : 0;
  // The effect of a leaf call gets a copy of its own. Only a body that is known not to change its input shares this one.
  const isShared = loop.leaf !== undefined && loop.input === undefined && loop.awaitsSteps === true;
  let validated: unknown = isShared ? value : cloneJson(value);
  let refusal: { readonly error: unknown } | undefined;
  try {
    if (loop.input !== undefined) validated = loop.input(validated);
  } catch (error) {
    refusal = { error };
  }
  const started = new CallStartedEntry('call.started', key, since, isTimed ? clock.now() : 0);
  if (isTimed) recordValidation(loop.input, weight, started.validationMs === undefined);
  started.name = name;
  started.value = value;
  if (version !== undefined) started.version = version;
  if (definitionDigest !== undefined) started.definitionDigest = definitionDigest;
  if (typeof bodyKind === 'string') started.bodyKind = bodyKind;
  if (refusal !== undefined) started.isInputInvalid = true;
  const leaf = loop.leaf === undefined || refusal !== undefined ? undefined : leafCallOf(scope, loop, validated, value);
  if (leaf !== undefined) addLeafIntent(started, leaf.effect);
  run.propose(lifetime, started, weight);
  scope.isCallOpen = true;
  if (depth === 0 || leaf !== undefined) run.deps.sessionState.apply(started, leaf?.effectKey);
  if (refusal !== undefined) throw refusal.error;
  return leaf ?? validated;
}

/** Validates the output, records the end of the call, and returns a copy of the recorded output. */
export function completeCall(step: Step, loop: LoopHeader, output: unknown): Json | undefined {
  const { run, key, lifetime } = step;
  lifetime.throwIfEnded();
  // A fast validation changes nothing, so it may read the very copy that is recorded.
  const candidate = loop.hasFastValidation === true ? copyAsJson(output, 'call.completed', key) : output;
  const weight = loop.hasFastValidation === true ? lastCopyBytes() : undefined;
  return cloneJson(recordEnd(step, newCompletedEntry(run.deps.clock, key, loop, candidate, weight), weight).value);
}

/**
 * Records the end of a call. `weight` is the size of its value if the value is a JSON copy, and `effectKey` the key of
 * the effect that ends with the call.
 */
export function recordEnd({ run, lifetime, depth }: Step, end: NewEntry, weight?: number, effectKey?: string): Entry {
  const ended = run.push(lifetime, end, weight);
  if (depth === 0 || effectKey !== undefined) run.deps.sessionState.apply(ended, effectKey);
  return ended;
}

/**
 * Records the error of a call, unless its branch lost a race, and returns it as it is recorded. A call whose lifetime
 * has ended gets the reason of that end in place of `thrown`. `effectKey` is the key of the effect that ends with the call.
 */
export function recordCallError(step: Step, thrown: unknown, effectKey?: string): LoopError {
  const error = step.lifetime.reason ?? toLoopError(thrown);
  if (step.lifetime.hasLostRace) return error;
  const entry: NewEntry = { seq: 0, at: 0, type: 'call.errored', key: step.key, error: error.toErrorRecord() };
  if (effectKey !== undefined) entry.endsEffect = true;
  const { error: recorded } = recordEnd(step, entry, undefined, effectKey);
  return recorded === undefined ? error : LoopError.fromErrorRecord(recorded, thrown);
}
