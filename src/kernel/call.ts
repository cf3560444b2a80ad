/**
 * A call: one invocation of a loop. `call.started` is written first, the input is checked after it, and whatever
 * happens then ends in exactly one `call.completed` or `call.errored`. A recorded end is returned, never computed again.
 */

import { LoopError, outcomeOf } from '../journal/errors.js';
import type { Trodden } from '../journal/past.js';
import { copy, snapshot } from '../journal/value.js';
import type { Fresh } from '../journal/writer.js';
import type { Json } from '../protocol/json.js';
import { stall } from './attempt.js';
import { type Run, type Site, tooDeep } from './run.js';
import type { Scope } from './scope.js';

/** Returns the checked value, or throws a LoopError that says what is wrong with it. */
export type Check<T> = (value: unknown) => T;

/** What the kernel needs to know of a loop: a name, a body, and what may go in and come out. */
export interface Loop<I = unknown, O = unknown> {
  readonly name: string;
  readonly version?: string | undefined;
  readonly input?: Check<I> | undefined;
  readonly output?: Check<O> | undefined;
  body(input: I, scope: Scope): Promise<O> | O;
}

/** A loop without what depends on its input. */
type Frame = Pick<Loop, 'name' | 'version' | 'output'>;

/** Runs a call in a scope that was made for it; `caller` is the scope whose step it is, and a root has none. */
export async function runCall<I, O>(
  run: Run,
  scope: Scope,
  loop: Loop<I, O>,
  input: I,
  caller?: Scope,
): Promise<unknown> {
  const { seen } = scope;
  let started = false;
  try {
    const own = seen === undefined ? start(run, scope, loop, input) : await replay(run, scope, seen, loop, input);
    if (seen?.close !== undefined) {
      caller?.leave();
      return own;
    }
    if (seen === undefined && run.writer.crowded) await run.ease(scope.life);
    started = true;
    const output = await loop.body(loop.input === undefined ? (own as I) : loop.input(own), scope);
    const untidy = scope.close();
    if (untidy !== undefined) await untidy;
    const result = complete(run, scope, loop, output);
    caller?.leave();
    return result;
  } catch (thrown) {
    if (run.over) return await stall();
    caller?.leave();
    throw started ? failed(run, scope, thrown) : thrown;
  }
}

/** Holds a call against its record: how that ended if it did, else the input to go on with. */
async function replay(run: Run, { key }: Site, seen: Trodden, loop: Frame, input: unknown): Promise<Json | undefined> {
  const { name, version } = loop;
  await run.expect(key, seen, { type: 'call.started', name, version, value: input as Json });
  if (seen.close !== undefined) return (await run.recall(seen.close)) as Json | undefined;
  return snapshot(input, 'the input', key);
}

/** Writes that the call began; the input as it is recorded. */
function start(run: Run, { key, life, depth }: Site, loop: Frame, input: unknown): Json | undefined {
  const { name, version } = loop;
  if (depth > run.parts.maxDepth) throw tooDeep(key, run.parts.maxDepth);
  if (typeof name !== 'string' || (version !== undefined && typeof version !== 'string')) throw nameless(key);
  const value = input as Json;
  const started: Fresh = { seq: 0, at: 0, type: 'call.started', key, name, value };
  if (version !== undefined) started.version = version;
  run.propose(life, started);
  if (depth === 0) run.note(started);
  return copy(started.value);
}

/** Writes that the call ended well; the output as it is recorded. */
function complete(run: Run, { key, life, depth }: Site, loop: Frame, output: unknown): Json | undefined {
  life.check();
  const value = (loop.output === undefined ? output : loop.output(output)) as Json;
  const completed = run.push(life, { seq: 0, at: 0, type: 'call.completed', key, value });
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
  return new LoopError('VALUE_INVALID', `The loop called at ${key} needs a name, and its name and version are text.`, {
    key,
  });
}
