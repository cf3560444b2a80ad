/**
 * The scope: all that a body may use of the world. Each step gets the next key under the scope's own, so a body that
 * runs again asks for the same keys in the same order and finds what it already did. A scope is a straight line: one
 * step at a time; what runs side by side gets a scope of its own, through `all` or `race`.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import type { NewEntry } from '../journal/new-entry.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import { cloneJson } from '../json/value.js';
import type { Branch, BranchResults, Effect, Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { runCall } from './call.js';
import { type Branches, joinAll, raceFirst } from './group.js';
import { runEffect } from './layer.js';
import type { Lifetime } from './lifetime.js';
import { neverSettle } from './run-attempt.js';
import type { RunContext, StepContext } from './run-context.js';
import { waitForSignal, waitForTimer } from './wait.js';

const MAX_REFUSED_STEPS = 100;

/** Types that the kernel writes itself. */
const RESERVED_TYPES = /^(session|call|effect|timer|wait|signal|race|group|cancel|step)\./;

/** Refuses a type that only the kernel may write. */
export function assertNotReserved(type: string, key: string): void {
  if (!RESERVED_TYPES.test(type)) return;
  const message = `Cannot record ${type} at ${key}: the kernel writes this type itself.`;
  throw new LoopError('VALUE_INVALID', message, { key, type });
}

/** Adds what was made, or how making it failed: either is recorded. */
function fillEntry(entry: NewEntry, make: () => Json): NewEntry {
  try {
    entry.value = make();
  } catch (thrown) {
    entry.error = toLoopError(thrown).toErrorRecord();
  }
  return entry;
}

/** The scope as the kernel sees it: what a body may use, and the state of its steps. */
export class KernelScope implements Scope, StepContext {
  /** This scope's path: the key of its call, its branch or its effect. */
  readonly key: string;
  readonly lifetime: Lifetime;
  readonly recorded: RecordedStep | undefined;
  readonly depth: number;
  private readonly run: RunContext;
  /** Whether the call that this scope was made for is recorded as begun. */
  isCallStarted = false;
  private nextIndex = 0;
  private isBusy = false;
  /** New steps asked for after the end: a retry loop that takes a cancel for a failure would go on for ever. */
  private refusedStepCount = 0;

  constructor(run: RunContext, key: string, life: Lifetime, seen: RecordedStep | undefined, depth: number) {
    this.run = run;
    this.key = key;
    this.lifetime = life;
    this.recorded = seen;
    this.depth = depth;
  }

  call<I, O>(loop: Loop<I, O>, input: I): Promise<O> {
    if (this.isBusy) return this.rejectConcurrentStep();
    if (this.run.isOver) return neverSettle();
    if (this.refusedStepCount > MAX_REFUSED_STEPS) return this.run.attempt.parkForever();
    const seen = this.beginStep();
    const scope = new KernelScope(this.run, `${this.key}/${this.nextIndex - 1}`, this.lifetime, seen, this.depth + 1);
    return runCall(this.run, scope, loop, input, this) as Promise<O>;
  }

  effect<O>(effect: Effect<O>): Promise<O> {
    return this.runStep((site) => runEffect(this.run, site, effect)) as Promise<O>;
  }

  all<const B extends readonly Branch<unknown>[]>(branches: B): Promise<BranchResults<B>> {
    return this.runStep((site) => joinAll(this.run, site, this.prepareBranches(branches, site))) as Promise<
      BranchResults<B>
    >;
  }

  race<const B extends readonly Branch<unknown>[]>(branches: B): Promise<Awaited<ReturnType<B[number]>>> {
    type Winner = Awaited<ReturnType<B[number]>>;
    return this.runStep((site) => raceFirst(this.run, site, this.prepareBranches(branches, site))) as Promise<Winner>;
  }

  sleep(ms: number): Promise<void> {
    return this.runStep((site) => waitForTimer(this.run, site, ms));
  }

  wait(name: string): Promise<Json | undefined> {
    return this.runStep((site) => waitForSignal(this.run, site, name));
  }

  record<V extends Json>(type: string, make: () => V): Promise<V> {
    return this.runStep(async ({ key, lifetime, recorded }) => {
      assertNotReserved(type, key);
      const refused = recorded?.closeEntry?.type === 'step.refused' && recorded.closeEntry.name === type;
      if (recorded !== undefined && recorded.closeEntry?.type !== type && !refused)
        return this.run.failWithMismatch(key, recorded.firstEntry, { type });
      if (recorded?.closeEntry !== undefined) return (await this.run.recordedOutcome(recorded.closeEntry)) as V;
      lifetime.throwIfEnded();
      const { value, error } = this.run.propose(lifetime, fillEntry({ seq: 0, at: 0, type, key }, make));
      if (error !== undefined) throw LoopError.fromErrorRecord(error);
      if (this.run.writer.isBacklogged) await this.run.waitForBacklog(lifetime);
      return cloneJson(value) as V;
    });
  }

  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): Promise<unknown> {
    return this.record('log.written', () => ({ level, message: String(message) }));
  }

  get isCancelled(): boolean {
    return this.lifetime.reason !== undefined;
  }

  get context(): unknown {
    return this.run.deps.context;
  }

  now(): Promise<number> {
    return this.record('time.read', () => this.run.deps.clock.now());
  }

  random(): Promise<number> {
    return this.record('number.drawn', () => this.run.deps.ids.random());
  }

  /** One step: the next key, nothing else beside it, and nothing at all once the attempt is over. */
  runStep<T>(work: (site: StepContext) => Promise<T>): Promise<T> {
    // guard: one-step-at-a-time
    return this.isBusy ? this.rejectConcurrentStep() : this.enterAndRun(work);
  }

  private async enterAndRun<T>(work: (site: StepContext) => Promise<T>): Promise<T> {
    if (this.run.isOver) return neverSettle();
    // guard: uncooperative-body-abandoned
    if (this.refusedStepCount > MAX_REFUSED_STEPS) return this.run.attempt.parkForever();
    try {
      const seen = this.beginStep();
      return await work({
        key: `${this.key}/${this.nextIndex - 1}`,
        lifetime: this.lifetime,
        recorded: seen,
        depth: this.depth,
      });
    } finally {
      this.endStep();
      // guard: body-stalled-after-fault
      if (this.run.isOver) await neverSettle();
    }
  }

  /** The step that ran has ended: the next one may start. */
  endStep(): void {
    this.isBusy = false;
  }

  /** Refuses to end while a step still runs, or while the journal holds steps that were not asked for. */
  close(): Promise<never> | undefined {
    // guard: body-ends-after-its-steps
    if (this.isBusy) throw this.abortAsBusy('the body ended');
    // Whoever kept this scope meets the same refusal as a second step at once.
    // guard: closed-scope-refuses-steps
    this.isBusy = true;
    const untaken = this.recorded?.untakenChild;
    // guard: untaken-steps-refused
    if (untaken === undefined || this.lifetime.reason !== undefined) return undefined;
    return this.run.failWithMismatch(this.key, untaken.firstEntry, undefined);
  }

  /** Takes the next place; what is recorded there, if anything. */
  private beginStep(): RecordedStep | undefined {
    const index = this.nextIndex++;
    const seen = this.recorded?.takeChild(index);
    this.isBusy = true;
    if (this.lifetime.reason !== undefined && seen === undefined) this.refusedStepCount += 1;
    return seen;
  }

  private prepareBranches<O>(list: readonly Branch<O>[], { key, recorded, depth }: StepContext): Branches<O> {
    const scope = (index: number, life: Lifetime): KernelScope =>
      new KernelScope(this.run, `${key}/${index}`, life, recorded?.takeChild(index), depth + 1);
    return { bodies: list, openScope: scope };
  }

  /** A second step at once. The whole run ends with it: whether anyone waits for this step as well must not matter. */
  private rejectConcurrentStep(): Promise<never> {
    const refusal = Promise.reject(this.abortAsBusy('another step was started'));
    refusal.catch(() => {});
    return refusal;
  }

  private abortAsBusy(what: string): LoopError {
    const message =
      `In ${this.key}, ${what} while step ${this.nextIndex - 1} was still running, or after the body had ended. ` +
      'Await each step; for steps side by side use scope.all or scope.race.';
    const error = new LoopError('SCOPE_BUSY', message, { key: this.key });
    // The step that nobody waits for must not go on either: the whole run ends with this.
    this.run.attempt.lifetime.end(error, false);
    return error;
  }
}
