/**
 * A call: one invocation of a loop. `call.started` is written first, the input is checked after it, and whatever
 * happens then ends in exactly one `call.completed` or `call.errored`. A recorded end is returned, never computed again.
 */
import type { Json } from '../protocol/json.js';
import { stall } from './attempt.js';
import { LoopError, outcomeOf } from './errors.js';
import type { Run, Site } from './run.js';
import { Scope } from './scope.js';

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

/** Runs a call at a site; `caller` is the scope whose step it is, and a root has none. */
export async function runCall<I, O>(
  run: Run,
  site: Site,
  loop: Loop<I, O>,
  input: I,
  caller?: Scope,
): Promise<unknown> {
  const { key, life, seen, depth } = site;
  let scope: Scope | undefined;
  try {
    if (seen === undefined) {
      start(run, site, loop, input);
      if (run.writer.crowded) await run.barrier(life);
    } else {
      const { name, version } = loop;
      await run.expect(key, seen, { type: 'call.started', name, version, value: input as Json });
      if (seen.close !== undefined) return await run.recall(seen.close);
    }
    scope = new Scope(run, site);
    const output = await loop.body(loop.input === undefined ? input : loop.input(input), scope);
    const untidy = scope.close();
    if (untidy !== undefined) await untidy;
    if (run.over) return await stall();
    life.check();
    const value = loop.output === undefined ? output : loop.output(output);
    const completed = run.writer.push({ seq: 0, at: 0, type: 'call.completed', key, value: value as Json });
    if (depth === 0) run.note(completed);
    return value;
  } catch (thrown) {
    if (scope === undefined) throw thrown;
    return failCall(run, site, thrown);
  } finally {
    caller?.leave();
  }
}

function start(
  run: Run,
  { key, life, depth }: Site,
  { name, version }: Pick<Loop, 'name' | 'version'>,
  input: unknown,
): void {
  life.check();
  if (depth > run.parts.maxDepth) throw tooDeep(key, run.parts.maxDepth);
  const value = input as Json;
  const started =
    version === undefined
      ? { seq: 0, at: 0, type: 'call.started', key, name, value }
      : { seq: 0, at: 0, type: 'call.started', key, name, version, value };
  run.writer.propose(started);
  if (depth === 0) run.note(started);
}

function failCall(run: Run, { key, life, depth }: Site, thrown: unknown): Promise<never> {
  if (run.over) return stall();
  const error = life.reason ?? outcomeOf(thrown);
  if (life.lost) throw error;
  const errored = run.writer.push({ seq: 0, at: 0, type: 'call.errored', key, error: error.record() });
  if (depth === 0) run.note(errored);
  throw error;
}

function tooDeep(key: string, limit: number): LoopError {
  const place = key.length > 60 ? `${key.slice(0, 60)}…` : key;
  return new LoopError('DEPTH_EXCEEDED', `Calls are nested deeper than ${limit} at ${place}.`, { limit });
}
