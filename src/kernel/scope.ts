/**
 * Scopes: everything that a body may use of the outside world. Each step gets the next key below the key of the scope,
 * so a replayed body requests the same keys in the same order and finds its recorded steps. A scope runs one step at a
 * time; concurrent steps get scopes of their own through `all` or `race`.
 */

import { durationMs } from '../base/duration.js';
import { LoopError } from '../base/errors.js';
import type { Lifetime } from '../base/lifetime.js';
import { NEXT_MICROTASK, neverSettles } from '../base/microtasks.js';
import { scopeBusyError } from '../base/step-errors.js';
import { isUsed, trackUse } from '../base/tracked-promise.js';
import { toEffect } from '../journal/effect-arguments.js';
import { fillEntry, type NewEntry } from '../journal/new-entry.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import { assertNotReserved } from '../journal/reserved-entries.js';
import { cloneJson, jsonEquals } from '../json/value.js';
import type { Branch, BranchResults, EffectArguments, Loop, SignalType } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { LayerScope } from '../protocol/session.js';
import { runCall } from './call.js';
import { type Branches, joinAll, raceFirst } from './group.js';
import { runEffect } from './layer.js';
import { type Run, STEP_SKIPPED, type Step } from './run.js';
import { waitForSignal, waitForTimer } from './wait.js';

/** A body that starts more than this many steps after the end of its lifetime is suspended. */
const MAX_REFUSED_STEPS = 100;

const LOG_TYPE = 'log.written';

/** A scope with the kernel's own state. The scope of a call also serves as the step of that call. */
export class KernelScope implements LayerScope, Step {
  readonly run: Run;
  /** The key of the call, the branch or the effect that the scope belongs to. */
  readonly key: string;
  readonly lifetime: Lifetime;
  readonly recorded: RecordedStep | undefined;
  readonly depth: number;
  /** True if the start of the call that this scope belongs to is recorded, and its end is not. */
  isCallOpen = false;
  /** True if the body is known to await its steps. */
  awaitsSteps = false;
  /** The index of the next step; 0 until the body starts its first one. */
  nextIndex = 0;
  /** True while a step runs. A new record ends at once, so its promise stays here: it tells whether the body used it. */
  private openStep: true | Promise<unknown> | undefined;
  /** Counts new steps after the end of the lifetime. A body that retries a cancelled step forever is suspended. */
  private refusedStepCount = 0;

  constructor(run: Run, key: string, lifetime: Lifetime, recorded: RecordedStep | undefined, depth: number) {
    this.run = run;
    this.key = key;
    this.lifetime = lifetime;
    this.recorded = recorded;
    this.depth = depth;
  }

  call<I, O>(loop: Loop<I, O>, input: I): Promise<O> {
    const refusal = this.refuseStep();
    if (refusal !== undefined) return refusal;
    const recorded = this.beginStep();
    const scope = new KernelScope(this.run, this.stepKey, this.lifetime, recorded, this.depth + 1);
    const output = runCall(scope, loop, input, this) as Promise<O>;
    if (recorded?.optionalUntil === undefined) return output;
    return output.catch((thrown) => this.skipStep(thrown, recorded, () => this.call(loop, input)));
  }

  effect<O>(...effect: EffectArguments<O>): Promise<O> {
    return this.runStep((step) => runEffect(step, toEffect(effect))) as Promise<O>;
  }

  all<const B extends readonly Branch<unknown>[]>(branches: B): Promise<BranchResults<B>> {
    const results = this.runStep((step) => joinAll(step, prepareBranches(step, branches)));
    return results as Promise<BranchResults<B>>;
  }

  race<const B extends readonly Branch<unknown>[]>(branches: B): Promise<Awaited<ReturnType<B[number]>>> {
    const result = this.runStep((step) => raceFirst(step, prepareBranches(step, branches)));
    return result as Promise<Awaited<ReturnType<B[number]>>>;
  }

  sleep(duration: number | string): Promise<void> {
    return this.runStep((step) => waitForTimer(step, durationMs(duration)));
  }

  wait<T>(signal: string | SignalType<T>): Promise<T> {
    return this.runStep((step) => waitForSignal(step, signal)) as Promise<T>;
  }

  record<V extends Json>(type: string, make: () => V): Promise<V> {
    const refusal = this.refuseStep();
    if (refusal !== undefined) return refusal;
    const recorded = this.beginStep();
    const repeat = (): Promise<V> => this.record(type, make);
    if (recorded !== undefined)
      return this.finishStep(recorded, (step) => replayRecord(step, recorded, type, make), repeat);
    try {
      const value = recordNew(this.run, this.lifetime, { seq: 0, at: 0, type, key: this.stepKey }, make);
      if (this.run.isOver) return neverSettles();
      const recording = Promise.resolve(value);
      this.openStep = this.awaitsSteps ? undefined : trackUse(recording);
      return recording;
    } catch (thrown) {
      return this.finishStep(undefined, () => Promise.reject(thrown), repeat);
    }
  }

  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): Promise<unknown> {
    return this.record(LOG_TYPE, () => ({ level, message: String(message) }));
  }

  get isCancelled(): boolean {
    return this.lifetime.reason !== undefined;
  }

  get context(): unknown {
    return this.run.deps.context;
  }

  get nextRecordedEntry(): Entry | undefined {
    return this.recorded?.entryOfChild(this.nextIndex);
  }

  now(): Promise<number> {
    return this.record('time.read', () => this.run.deps.clock.now());
  }

  random(): Promise<number> {
    return this.record('number.drawn', () => this.run.deps.ids.random());
  }

  /**
   * Runs one step under the next key. Rejects with SCOPE_BUSY while another step runs or after the scope is closed;
   * never settles once the attempt is over.
   */
  runStep<T>(work: (step: Step) => Promise<T> | T): Promise<T> {
    return this.refuseStep() ?? this.finishStep(this.beginStep(), work, () => this.runStep(work));
  }

  /** Returns undefined if the next step may start; otherwise what the body gets in its place. */
  private refuseStep(): Promise<never> | undefined {
    // guard: one-step-at-a-time
    if (this.hasOpenStep) return this.rejectConcurrentStep();
    if (this.run.isOver) return neverSettles();
    // guard: uncooperative-body-abandoned
    return this.refusedStepCount > MAX_REFUSED_STEPS ? this.run.attempt.parkForever() : undefined;
  }

  /** Repeats a step under a new key if the body requested another step than the optional recorded one. */
  private skipStep<T>(thrown: unknown, recorded: RecordedStep | undefined, repeat: () => Promise<T>): Promise<T> {
    if (thrown !== STEP_SKIPPED) throw thrown;
    this.nextIndex = recorded?.optionalUntil ?? this.nextIndex;
    this.endStep();
    return repeat();
  }

  /** Performs a step that has begun, and marks it as ended. */
  private async finishStep<T>(
    recorded: RecordedStep | undefined,
    work: (step: Step) => Promise<T> | T,
    repeat: () => Promise<T>,
  ): Promise<T> {
    const { run, stepKey: key, lifetime, depth } = this;
    try {
      return await work({ run, key, lifetime, recorded, depth });
    } catch (thrown) {
      // guard: refused-step-outlasts-body
      for (let i = 0; i < 2; i++) await NEXT_MICROTASK;
      return await this.skipStep(thrown, recorded, repeat);
    } finally {
      this.endStep();
      // guard: body-stalled-after-fault
      if (run.isOver) await neverSettles();
    }
  }

  get stepKey(): string {
    return `${this.key}/${this.nextIndex - 1}`;
  }

  /** True while a step runs, and after a record that the body did not use. */
  private get hasOpenStep(): boolean {
    const { openStep } = this;
    // guard: unused-record-noticed
    return openStep === true || (openStep !== undefined && !isUsed(openStep));
  }

  /** Makes the effect of a leaf call the only step of this scope. */
  beginLeaf(): void {
    this.nextIndex = 1;
    // guard: leaf-scope-refuses-steps
    this.openStep = true;
  }

  /** Marks the current step as ended: the next one may start. */
  endStep(): void {
    this.openStep = undefined;
  }

  /**
   * Closes the scope. Throws SCOPE_BUSY while a step runs. If a recorded step was not requested, ends the attempt and
   * returns a promise that never settles.
   */
  close(): Promise<never> | undefined {
    // guard: body-ends-after-its-steps
    if (this.hasOpenStep) throw this.abortAsBusy('the body ended');
    // A later use of this scope fails like a concurrent step.
    // guard: closed-scope-refuses-steps
    this.openStep = true;
    const untaken = this.recorded?.untakenChild;
    // guard: untaken-steps-refused
    if (untaken === undefined || this.lifetime.reason !== undefined) return undefined;
    return this.run.failWithMismatch(this.key, untaken.firstEntry, undefined);
  }

  /** Takes the next index and returns the step that is recorded there; undefined for a new step. */
  private beginStep(): RecordedStep | undefined {
    const index = this.nextIndex++;
    const recorded = this.recorded?.takeChild(index);
    this.openStep = true;
    if (this.lifetime.reason !== undefined && recorded === undefined) this.refusedStepCount += 1;
    return recorded;
  }

  /** Rejects a concurrent step and ends the lifetime of the whole run, whether the body awaits this step or not. */
  private rejectConcurrentStep(): Promise<never> {
    const refusal = Promise.reject(this.abortAsBusy('another step was started'));
    refusal.catch(() => {});
    return refusal;
  }

  private abortAsBusy(event: string): LoopError {
    const error = scopeBusyError(this.key, this.nextIndex - 1, event);
    // The step that is not awaited must not continue either.
    this.run.attempt.lifetime.end(error, false);
    return error;
  }
}

/** Records a new fact. Returns it without a promise unless the writer is backlogged. */
function recordNew<V extends Json>(run: Run, lifetime: Lifetime, entry: NewEntry, make: () => V): V | Promise<V> {
  assertNotReserved(entry.type, entry.key);
  lifetime.throwIfEnded();
  const thrown = fillEntry(entry, make);
  const { value, error } = run.propose(lifetime, entry);
  if (error !== undefined) throw LoopError.fromErrorRecord(error, thrown);
  const copy = cloneJson(value) as V;
  return run.writer.isBacklogged ? run.waitForBacklog(lifetime).then(() => copy) : copy;
}

async function replayRecord<V extends Json>(step: Step, recorded: RecordedStep, type: string, make: () => V) {
  const end = recorded.closeEntry;
  const isRefused = end?.type === 'step.refused' && end.name === type;
  if (end === undefined || (end.type !== type && !isRefused)) return step.run.refuseStep(step.key, recorded, { type });
  const value = (await step.run.recordedOutcome(end)) as V;
  // A log line of a failure that a retry removed is not the next log line.
  if (type !== LOG_TYPE || recorded.optionalUntil === undefined || jsonEquals(value, make())) return value;
  throw STEP_SKIPPED;
}

function prepareBranches<O>({ run, key, recorded, depth }: Step, bodies: readonly Branch<O>[]): Branches<O> {
  const openScope = (index: number, lifetime: Lifetime): KernelScope =>
    new KernelScope(run, `${key}/${index}`, lifetime, recorded?.takeChild(index), depth + 1);
  return { bodies, openScope };
}
