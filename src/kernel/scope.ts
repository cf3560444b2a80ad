/**
 * The scope: all that a body may use of the world. Each step gets the next key under the scope's own, so a body that
 * runs again asks for the same keys in the same order and finds what it already did. A scope is a straight line: one
 * step at a time; what runs side by side gets a scope of its own, through `all` or `race`.
 */

import { LoopError, outcomeOf } from '../base/errors.js';
import type { Fresh } from '../journal/fresh.js';
import type { Trodden } from '../journal/past.js';
import { copy } from '../json/value.js';
import type { Branch, BranchResults, Effect, Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { stall } from './attempt.js';
import { runCall } from './call.js';
import { type Branches, joinAll, raceFirst } from './group.js';
import { runEffect } from './layer.js';
import type { Lifetime } from './lifetime.js';
import type { Run, Site } from './run.js';
import { waitForSignal, waitUntil } from './wait.js';

const PATIENCE = 100;

/** Types that the kernel writes itself. */
const RESERVED = /^(session|call|effect|timer|wait|signal|race|group|cancel|step)\./;

/** Refuses a type that only the kernel may write. */
export function assertOwn(type: string, key: string): void {
  if (!RESERVED.test(type)) return;
  const message = `Cannot record ${type} at ${key}: the kernel writes this type itself.`;
  throw new LoopError('VALUE_INVALID', message, { key, type });
}

/** Adds what was made, or how making it failed: either is recorded. */
function filled(entry: Fresh, make: () => Json): Fresh {
  try {
    entry.value = make();
  } catch (thrown) {
    entry.error = outcomeOf(thrown).record();
  }
  return entry;
}

/** The scope as the kernel sees it: what a body may use, and the state of its steps. */
export class KernelScope implements Scope, Site {
  /** This scope's path: the key of its call, its branch or its effect. */
  readonly key: string;
  readonly life: Lifetime;
  readonly seen: Trodden | undefined;
  readonly depth: number;
  private readonly run: Run;
  /** Whether the call that this scope was made for is recorded as begun. */
  begun = false;
  private next = 0;
  private busy = false;
  /** New steps asked for after the end: a retry loop that takes a cancel for a failure would go on for ever. */
  private refusals = 0;

  constructor(run: Run, key: string, life: Lifetime, seen: Trodden | undefined, depth: number) {
    this.run = run;
    this.key = key;
    this.life = life;
    this.seen = seen;
    this.depth = depth;
  }

  call<I, O>(loop: Loop<I, O>, input: I): Promise<O> {
    if (this.busy) return this.refused();
    if (this.run.over) return stall();
    if (this.refusals > PATIENCE) return this.run.attempt.giveUp();
    const seen = this.enter();
    const scope = new KernelScope(this.run, `${this.key}/${this.next - 1}`, this.life, seen, this.depth + 1);
    return runCall(this.run, scope, loop, input, this) as Promise<O>;
  }

  effect<O>(effect: Effect<O>): Promise<O> {
    return this.step((site) => runEffect(this.run, site, effect)) as Promise<O>;
  }

  all<const B extends readonly Branch<unknown>[]>(branches: B): Promise<BranchResults<B>> {
    return this.step((site) => joinAll(this.run, site, this.branches(branches, site))) as Promise<BranchResults<B>>;
  }

  race<const B extends readonly Branch<unknown>[]>(branches: B): Promise<Awaited<ReturnType<B[number]>>> {
    type Winner = Awaited<ReturnType<B[number]>>;
    return this.step((site) => raceFirst(this.run, site, this.branches(branches, site))) as Promise<Winner>;
  }

  sleep(ms: number): Promise<void> {
    return this.step((site) => waitUntil(this.run, site, ms));
  }

  wait(name: string): Promise<Json | undefined> {
    return this.step((site) => waitForSignal(this.run, site, name));
  }

  record<V extends Json>(type: string, make: () => V): Promise<V> {
    return this.step(async ({ key, life, seen }) => {
      assertOwn(type, key);
      const refused = seen?.close?.type === 'step.refused' && seen.close.name === type;
      if (seen !== undefined && seen.close?.type !== type && !refused)
        return this.run.mismatch(key, seen.witness, { type });
      if (seen?.close !== undefined) return (await this.run.recall(seen.close)) as V;
      life.check();
      const { value, error } = this.run.propose(life, filled({ seq: 0, at: 0, type, key }, make));
      if (error !== undefined) throw LoopError.of(error);
      if (this.run.writer.crowded) await this.run.ease(life);
      return copy(value) as V;
    });
  }

  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): Promise<unknown> {
    return this.record('log.written', () => ({ level, message: String(message) }));
  }

  get isCancelled(): boolean {
    return this.life.reason !== undefined;
  }

  get context(): unknown {
    return this.run.parts.context;
  }

  now(): Promise<number> {
    return this.record('time.read', () => this.run.parts.clock.now());
  }

  random(): Promise<number> {
    return this.record('number.drawn', () => this.run.parts.ids.random());
  }

  /** One step: the next key, nothing else beside it, and nothing at all once the attempt is over. */
  step<T>(work: (site: Site) => Promise<T>): Promise<T> {
    // guard: one-step-at-a-time
    return this.busy ? this.refused() : this.take(work);
  }

  private async take<T>(work: (site: Site) => Promise<T>): Promise<T> {
    if (this.run.over) return stall();
    // guard: uncooperative-body-abandoned
    if (this.refusals > PATIENCE) return this.run.attempt.giveUp();
    try {
      const seen = this.enter();
      return await work({ key: `${this.key}/${this.next - 1}`, life: this.life, seen, depth: this.depth });
    } finally {
      this.leave();
      // guard: body-stalled-after-fault
      if (this.run.over) await stall();
    }
  }

  /** The step that ran has ended: the next one may start. */
  leave(): void {
    this.busy = false;
  }

  /** Refuses to end while a step still runs, or while the journal holds steps that were not asked for. */
  close(): Promise<never> | undefined {
    // guard: body-ends-after-its-steps
    if (this.busy) throw this.tangled('the body ended');
    // Whoever kept this scope meets the same refusal as a second step at once.
    // guard: closed-scope-refuses-steps
    this.busy = true;
    const untaken = this.seen?.untaken;
    // guard: untaken-steps-refused
    if (untaken === undefined || this.life.reason !== undefined) return undefined;
    return this.run.mismatch(this.key, untaken.witness, undefined);
  }

  /** Takes the next place; what is recorded there, if anything. */
  private enter(): Trodden | undefined {
    const index = this.next++;
    const seen = this.seen?.take(index);
    this.busy = true;
    if (this.life.reason !== undefined && seen === undefined) this.refusals += 1;
    return seen;
  }

  private branches<O>(list: readonly Branch<O>[], { key, seen, depth }: Site): Branches<O> {
    const scope = (index: number, life: Lifetime): KernelScope =>
      new KernelScope(this.run, `${key}/${index}`, life, seen?.take(index), depth + 1);
    return { list, scope };
  }

  /** A second step at once. The whole run ends with it: whether anyone waits for this step as well must not matter. */
  private refused(): Promise<never> {
    const refusal = Promise.reject(this.tangled('another step was started'));
    refusal.catch(() => {});
    return refusal;
  }

  private tangled(what: string): LoopError {
    const message =
      `In ${this.key}, ${what} while step ${this.next - 1} was still running, or after the body had ended. ` +
      'Await each step; for steps side by side use scope.all or scope.race.';
    const error = new LoopError('SCOPE_BUSY', message, { key: this.key });
    // The step that nobody waits for must not go on either: the whole run ends with this.
    this.run.attempt.life.end(error, false);
    return error;
  }
}
