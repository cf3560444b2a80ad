/**
 * A call: one invocation of a loop. `call.started` is its first entry and tells how the check of the input went; whatever
 * happens then ends in exactly one `call.completed` or `call.errored`. A recorded end is returned, never computed again.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import { CallCompletedEntry, CallStartedEntry } from '../journal/new-entry.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import { cloneJson, copyAsJson, lastCopyBytes } from '../json/value.js';
import type { Loop } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { neverSettle } from './run-attempt.js';
import { depthError, type RunContext, type StepContext } from './run-context.js';
import type { KernelScope } from './scope.js';

/** A loop without what depends on its input. */
type LoopHeader = Omit<Loop, 'body'>;

/** The weight up to which quick checks are not timed: reading the clock would cost more than the check. */
const MAX_UNTIMED_BYTES = 4096;

/** Runs a call in a scope that was made for it; `caller` is the scope whose step it is, and a root has none. */
export async function runCall<I, O>(
  run: RunContext,
  scope: KernelScope,
  loop: Loop<I, O>,
  input: I,
  caller?: KernelScope,
): Promise<unknown> {
  const { recorded } = scope;
  try {
    const own =
      recorded === undefined ? startCall(run, scope, loop, input) : await replayCall(run, scope, recorded, loop, input);
    // guard: finished-call-not-repeated
    if (recorded?.closeEntry !== undefined) {
      caller?.endStep();
      return own;
    }
    // guard: full-queue-awaited
    if (recorded === undefined && run.writer.isBacklogged) await run.waitForBacklog(scope.lifetime);
    const output = await loop.body(own as I, scope);
    const untidy = scope.close();
    if (untidy !== undefined) await untidy;
    const result = completeCall(run, scope, loop, output);
    caller?.endStep();
    return result;
  } catch (thrown) {
    if (run.isOver) return await neverSettle();
    caller?.endStep();
    throw scope.isCallStarted ? recordCallError(run, scope, thrown) : thrown;
  }
}

/** Holds a call against its record: how that ended if it did, else the input to go on with. */
async function replayCall(
  run: RunContext,
  scope: KernelScope,
  seen: RecordedStep,
  loop: LoopHeader,
  input: unknown,
): Promise<unknown> {
  const { name, version } = loop;
  await run.assertMatchesJournal(scope.key, seen, { type: 'call.started', name, version, value: input as Json });
  if (seen.closeEntry !== undefined) return run.recordedOutcome(seen.closeEntry);
  scope.isCallStarted = true;
  const own = copyAsJson(input, 'the input', scope.key);
  return loop.input === undefined ? own : loop.input(own);
}

/** Checks the input and writes that the call began; a copy of the input as it is recorded, checked. */
function startCall(run: RunContext, scope: KernelScope, loop: LoopHeader, input: unknown): unknown {
  const { key, lifetime, depth } = scope;
  const { name, version, definitionDigest: digest, bodyKind: form } = loop;
  const { clock, maxDepth } = run.deps;
  if (depth > /* guard: call-depth-bounded */ maxDepth) throw depthError(key, maxDepth);
  if (typeof name !== 'string' || (version !== undefined && typeof version !== 'string')) throw invalidNameError(key);
  const value = copyAsJson(input, 'call.started', key);
  const weight = lastCopyBytes();
  const timed = loop.input !== undefined && (loop.hasFastValidation !== true || weight > MAX_UNTIMED_BYTES);
  const since = timed ? clock.now() : 0;
  let own: unknown = cloneJson(value);
  let refusal: { readonly error: unknown } | undefined;
  try {
    if (loop.input !== undefined) own = loop.input(own);
  } catch (error) {
    refusal = { error };
  }
  const started = new CallStartedEntry('call.started', key, since, timed ? clock.now() : 0);
  started.name = name;
  started.value = value;
  if (version !== undefined) started.version = version;
  if (digest !== undefined) started.definitionDigest = digest;
  if (typeof form === 'string') started.bodyKind = form;
  if (refusal !== undefined) started.isInputInvalid = true;
  run.propose(lifetime, started, weight);
  scope.isCallStarted = true;
  if (depth === 0) run.applyToState(started);
  if (refusal !== undefined) throw refusal.error;
  return own;
}

/** Writes that the call ended well; the output as it is recorded. */
function completeCall(
  run: RunContext,
  { key, lifetime, depth }: StepContext,
  loop: LoopHeader,
  output: unknown,
): Json | undefined {
  lifetime.throwIfEnded();
  // A quick check changes nothing, so it may look at the very copy that is recorded.
  const own = loop.hasFastValidation === true ? copyAsJson(output, 'call.completed', key) : output;
  const weight = loop.hasFastValidation === true ? lastCopyBytes() : undefined;
  const timed = loop.output !== undefined && (weight === undefined || weight > MAX_UNTIMED_BYTES);
  const since = timed ? run.deps.clock.now() : 0;
  const value = (loop.output === undefined ? own : loop.output(own)) as Json;
  const fresh = new CallCompletedEntry('call.completed', key, since, timed ? run.deps.clock.now() : 0);
  fresh.value = value;
  const completed = run.push(lifetime, fresh, weight);
  if (depth === 0) run.applyToState(completed);
  return cloneJson(completed.value);
}

/** Writes how the call failed, unless its branch lost a race; the error as it is recorded. */
function recordCallError(run: RunContext, { key, lifetime, depth }: StepContext, thrown: unknown): LoopError {
  const error = lifetime.reason ?? toLoopError(thrown);
  if (lifetime.hasLostRace) return error;
  const errored = run.push(lifetime, { seq: 0, at: 0, type: 'call.errored', key, error: error.toErrorRecord() });
  if (depth === 0) run.applyToState(errored);
  return errored.error === undefined ? error : LoopError.fromErrorRecord(errored.error, thrown);
}

function invalidNameError(key: string): LoopError {
  const message = `The loop called at ${key} needs a name, and its name and version are text.`;
  return new LoopError('VALUE_INVALID', message, { key });
}
