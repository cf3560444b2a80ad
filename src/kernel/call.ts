/**
 * A call: one invocation of a loop. `call.started` is its first entry and tells how the check of the input went; whatever
 * happens then ends in exactly one `call.completed` or `call.errored`. A recorded end is returned, never computed again.
 */

import { LoopError, outcomeOf } from '../base/errors.js';
import { CompletedEntry, StartedEntry } from '../journal/fresh.js';
import type { Trodden } from '../journal/past.js';
import { copy, snapshot, weighed } from '../json/value.js';
import type { Loop } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { stall } from './attempt.js';
import { type Run, type Site, tooDeep } from './run.js';
import type { KernelScope } from './scope.js';

/** A loop without what depends on its input. */
type Frame = Omit<Loop, 'body'>;

/** The weight up to which quick checks are not timed: reading the clock would cost more than the check. */
const BRIEF = 4096;

/** Runs a call in a scope that was made for it; `caller` is the scope whose step it is, and a root has none. */
export async function runCall<I, O>(
  run: Run,
  scope: KernelScope,
  loop: Loop<I, O>,
  input: I,
  caller?: KernelScope,
): Promise<unknown> {
  const { seen } = scope;
  try {
    const own = seen === undefined ? start(run, scope, loop, input) : await replay(run, scope, seen, loop, input);
    // guard: finished-call-not-repeated
    if (seen?.close !== undefined) {
      caller?.leave();
      return own;
    }
    // guard: full-queue-awaited
    if (seen === undefined && run.writer.crowded) await run.ease(scope.life);
    const output = await loop.body(own as I, scope);
    const untidy = scope.close();
    if (untidy !== undefined) await untidy;
    const result = complete(run, scope, loop, output);
    caller?.leave();
    return result;
  } catch (thrown) {
    if (run.over) return await stall();
    caller?.leave();
    throw scope.begun ? failed(run, scope, thrown) : thrown;
  }
}

/** Holds a call against its record: how that ended if it did, else the input to go on with. */
async function replay(run: Run, scope: KernelScope, seen: Trodden, loop: Frame, input: unknown): Promise<unknown> {
  const { name, version } = loop;
  await run.expect(scope.key, seen, { type: 'call.started', name, version, value: input as Json });
  if (seen.close !== undefined) return run.recall(seen.close);
  scope.begun = true;
  const own = snapshot(input, 'the input', scope.key);
  return loop.input === undefined ? own : loop.input(own);
}

/** Checks the input and writes that the call began; a copy of the input as it is recorded, checked. */
function start(run: Run, scope: KernelScope, loop: Frame, input: unknown): unknown {
  const { key, life, depth } = scope;
  const { name, version, definitionDigest: digest, bodyKind: form } = loop;
  const { clock, maxDepth } = run.parts;
  if (depth > /* guard: call-depth-bounded */ maxDepth) throw tooDeep(key, maxDepth);
  if (typeof name !== 'string' || (version !== undefined && typeof version !== 'string')) throw nameless(key);
  const value = snapshot(input, 'call.started', key);
  const weight = weighed();
  const timed = loop.input !== undefined && (loop.hasFastValidation !== true || weight > BRIEF);
  const since = timed ? clock.now() : 0;
  let own: unknown = copy(value);
  let refusal: { readonly error: unknown } | undefined;
  try {
    if (loop.input !== undefined) own = loop.input(own);
  } catch (error) {
    refusal = { error };
  }
  const started = new StartedEntry('call.started', key, since, timed ? clock.now() : 0);
  started.name = name;
  started.value = value;
  if (version !== undefined) started.version = version;
  if (digest !== undefined) started.digest = digest;
  if (typeof form === 'string') started.form = form;
  if (refusal !== undefined) started.refused = true;
  run.propose(life, started, weight);
  scope.begun = true;
  if (depth === 0) run.note(started);
  if (refusal !== undefined) throw refusal.error;
  return own;
}

/** Writes that the call ended well; the output as it is recorded. */
function complete(run: Run, { key, life, depth }: Site, loop: Frame, output: unknown): Json | undefined {
  life.check();
  // A quick check changes nothing, so it may look at the very copy that is recorded.
  const own = loop.hasFastValidation === true ? snapshot(output, 'call.completed', key) : output;
  const weight = loop.hasFastValidation === true ? weighed() : undefined;
  const timed = loop.output !== undefined && (weight === undefined || weight > BRIEF);
  const since = timed ? run.parts.clock.now() : 0;
  const value = (loop.output === undefined ? own : loop.output(own)) as Json;
  const fresh = new CompletedEntry('call.completed', key, since, timed ? run.parts.clock.now() : 0);
  fresh.value = value;
  const completed = run.push(life, fresh, weight);
  if (depth === 0) run.note(completed);
  return copy(completed.value);
}

/** Writes how the call failed, unless its branch lost a race; the error as it is recorded. */
function failed(run: Run, { key, life, depth }: Site, thrown: unknown): LoopError {
  const error = life.reason ?? outcomeOf(thrown);
  if (life.lost) return error;
  const errored = run.push(life, { seq: 0, at: 0, type: 'call.errored', key, error: error.record() });
  if (depth === 0) run.note(errored);
  return errored.error === undefined ? error : LoopError.of(errored.error, thrown);
}

function nameless(key: string): LoopError {
  const message = `The loop called at ${key} needs a name, and its name and version are text.`;
  return new LoopError('VALUE_INVALID', message, { key });
}
