/**
 * The shared part of all scopes of one attempt: the writer, the state of the session, the clock, and access to recorded
 * steps. A run compares each requested step with the journal, and ends the attempt with REPLAY_MISMATCH if they differ.
 */

import { LoopError, toStoreFault } from '../base/errors.js';
import type { Lifetime } from '../base/lifetime.js';
import { neverSettles } from '../base/microtasks.js';
import type { Clock, Ids } from '../journal/clock.js';
import { equalsRecorded, mismatchFault, type RequestedStep } from '../journal/describe-entry.js';
import type { JournalReader } from '../journal/journal-reader.js';
import type { JournalWriter } from '../journal/journal-writer.js';
import type { NewEntry } from '../journal/new-entry.js';
import { newRefusedEntry } from '../journal/refusal-entries.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import type { SessionState } from '../journal/session-state.js';
import { cloneJson } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Admit, Layer, PendingStep } from '../protocol/session.js';
import type { RunAttempt } from './run-attempt.js';

type EntryListener = (entry: Entry) => void;

/** The parts of a session that its runs use. */
export interface RunDeps {
  readonly session: string;
  readonly writer: JournalWriter;
  readonly sessionState: SessionState;
  /** Listeners by topic: `signal <name>` or `resolution <key>`. Created on first use: most sessions have none. */
  waiters: Map<string, Set<EntryListener>> | undefined;
  /** The effects that this process performs now, by the key of the attempt. An earlier run may have started them. */
  readonly inFlight: Map<string, Promise<unknown>>;
  /**
   * Results of effects that an earlier run started and that ended during this one, by the key of the attempt. Undefined
   * if none were in flight.
   */
  lateResults: Map<string, Entry> | undefined;
  readonly reader: JournalReader;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Returns the layers around an effect, outermost first. */
  layersOf(effect: Effect, key: string): readonly Layer[];
  /** Decides on each attempt at an effect; undefined if every effect may be performed. */
  readonly admit: Admit | undefined;
  readonly maxDepth: number;
  readonly replayOnly: boolean;
  readonly context: unknown;
}

/** One step of a scope. */
export interface Step {
  readonly run: Run;
  readonly key: string;
  readonly lifetime: Lifetime;
  /** The recorded entries of this step; undefined for a new step. */
  readonly recorded: RecordedStep | undefined;
  /** The nesting depth of the scope that the step belongs to; 0 for the scope of a root call. */
  readonly depth: number;
  /** True for an attempt that a retry of the root makes after the effect had ended. */
  readonly isRetry?: true;
}

/** Thrown by a step that the body requests in place of an optional recorded one. Its scope then uses another key. */
export const STEP_SKIPPED = new Error('The recorded step is skipped.');

/** Thrown to stop a step of an attempt that is over. It never reaches a body, because the step stays suspended. */
const ATTEMPT_OVER = new Error('The attempt is over.');

/** One attempt at a root call, as its scopes and steps use it. */
export class Run {
  readonly deps: RunDeps;
  readonly attempt: RunAttempt;
  /** The key of the root that is run. */
  readonly root: string;
  readonly writer: JournalWriter;

  constructor(deps: RunDeps, attempt: RunAttempt, root: string) {
    this.deps = deps;
    this.attempt = attempt;
    this.root = root;
    this.writer = deps.writer;
  }

  /** True if no body of this attempt may continue. */
  get isOver(): boolean {
    return this.attempt.isOver || this.writer.fault !== undefined;
  }

  /** Writes a fact. Throws and writes nothing if the attempt is over or the branch lost a race. */
  push(lifetime: Lifetime, entry: NewEntry, weight?: number): Entry {
    // guard: ended-attempt-writes-nothing
    if (this.isOver) throw ATTEMPT_OVER;
    if (lifetime.hasLostRace) lifetime.throwIfEnded();
    return this.writer.push(entry, false, weight);
  }

  /**
   * Writes the first entry of a step. Throws if the attempt is over, the lifetime has ended or an invariant refuses the
   * entry. The refusal is recorded, so that a replay repeats it.
   */
  propose(lifetime: Lifetime, entry: NewEntry, weight?: number): Entry {
    if (this.isOver) throw ATTEMPT_OVER;
    lifetime.throwIfEnded();
    try {
      return this.writer.propose(entry, weight);
    } catch (thrown) {
      // guard: invariant-refusal-recorded
      if (!(thrown instanceof LoopError) || thrown.code !== 'INVARIANT_VIOLATED') throw thrown;
      this.push(lifetime, newRefusedEntry(entry, thrown));
      throw thrown;
    }
  }

  /**
   * Returns the effect as it may be performed; undefined if the run was stopped instead. Throws if it is refused. A
   * replay performs nothing, so it admits everything. `isRetry` is that of its step.
   */
  admit(effect: Effect, effectKey: string, isRetry?: boolean): Effect | undefined {
    const { admit, replayOnly } = this.deps;
    // guard: retried-effect-admitted-by-layers
    if (isRetry === true && !replayOnly && !this.isOver) effect.admitRetry?.();
    // guard: every-attempt-admitted
    if (admit === undefined || replayOnly) return effect;
    // What is admitted is paid for, and a run that is over performs nothing more.
    // guard: ended-run-admits-nothing
    const admitted = this.isOver ? undefined : admit(effect, effectKey);
    return this.isOver ? undefined : admitted;
  }

  /**
   * Waits until everything that was written so far is durable. Never settles if the attempt is over; throws if the
   * lifetime has ended.
   */
  async waitForDurability(lifetime: Lifetime): Promise<void> {
    await this.writer.waitForFlush();
    await this.continueOrStall(lifetime);
  }

  /**
   * Backpressure: waits for a store that is far behind. Never settles if the attempt is over; throws if the lifetime
   * has ended.
   */
  async waitForBacklog(lifetime: Lifetime): Promise<void> {
    await this.writer.waitForBacklog();
    await this.continueOrStall(lifetime);
  }

  private continueOrStall(lifetime: Lifetime): Promise<never> | undefined {
    if (this.isOver) return neverSettles();
    lifetime.throwIfEnded();
    return undefined;
  }

  /**
   * Returns a copy of the recorded value, or throws the recorded error. If the value cannot be read, ends the attempt
   * and never settles.
   */
  async recordedOutcome(entry: Entry): Promise<unknown> {
    if (entry.error !== undefined) throw LoopError.fromErrorRecord(entry.error);
    return cloneJson(await this.fetchRecorded(entry));
  }

  private async fetchRecorded(entry: Entry): Promise<Json | undefined> {
    try {
      return await this.deps.reader.fetchValue(entry);
    } catch (error) {
      this.attempt.fail(toStoreFault(error));
      return neverSettles();
    }
  }

  /**
   * Writes the opening entry of a new step, or compares that of a recorded step: a replay must request the same step.
   * Returns true if the end of the step is recorded too.
   */
  async openStep({ key, lifetime, recorded }: Step, opening: NewEntry): Promise<boolean> {
    if (recorded !== undefined) {
      await this.assertMatchesJournal(key, recorded, opening);
      return recorded.closeEntry !== undefined;
    }
    this.propose(lifetime, opening);
    if (this.writer.isBacklogged) await this.waitForBacklog(lifetime);
    return false;
  }

  /**
   * Ends the attempt and never settles unless the journal holds the requested step. Throws the recorded error of a step
   * that an invariant refused.
   */
  async assertMatchesJournal(key: string, step: RecordedStep, request: RequestedStep): Promise<void> {
    const recorded = step.openEntry ?? step.closeEntry;
    if (recorded === undefined) return this.refuseStep(key, step, request);
    const { type, name, kind, version, error } = recorded;
    const isRefused = type === 'step.refused' && name === request.type && kind === request.name;
    if (isRefused && error !== undefined && equalsRecorded(await this.fetchRecorded(recorded), request.value))
      throw LoopError.fromErrorRecord(error);
    const isSame =
      type === request.type && name === request.name && kind === request.kind && version === request.version;
    // guard: replayed-step-matches-record
    if (!isSame) return this.refuseStep(key, step, request);
    const value = await this.fetchRecorded(recorded);
    // guard: replayed-input-matches-record
    if (!equalsRecorded(value, request.value)) return this.refuseStep(key, step, request, { ...recorded, value });
  }

  /** Ends the attempt with a mismatch, or throws STEP_SKIPPED if the recorded step is optional. */
  refuseStep(key: string, step: RecordedStep, request: RequestedStep, entry = step.firstEntry): Promise<never> {
    if (step.optionalUntil !== undefined) throw STEP_SKIPPED;
    return this.failWithMismatch(key, entry, request);
  }

  /**
   * Ends the attempt with a REPLAY_MISMATCH that names the recorded and the requested step, or a cancelled root with its
   * cancellation: it can end, whatever its body requests. Never settles.
   */
  failWithMismatch(key: string, entry: Entry | undefined, request: RequestedStep | undefined): Promise<never> {
    const { reason } = this.attempt.lifetime;
    const isCancelled = /* guard: cancelled-root-ends */ reason?.code === 'CANCELLED';
    this.attempt.fail(isCancelled ? reason : mismatchFault(this.deps.session, key, entry, request));
    return neverSettles();
  }

  /** Delivers signals in the inbox, to which a losing branch may have returned some, to the waits that are open now. */
  redeliverSignals(): void {
    for (const [topic, waiters] of this.deps.waiters ?? []) {
      if (!topic.startsWith('signal ')) continue;
      for (const waiter of waiters) {
        const signal = this.deps.sessionState.oldestSignal(topic.slice('signal '.length), this.root);
        if (signal !== undefined) waiter(signal);
      }
    }
  }

  /**
   * Parks until an entry of a topic (see `RunDeps.waiters`) arrives. `onArrival` runs with the arrival, before the body
   * continues.
   */
  waitForEntry(pending: PendingStep, lifetime: Lifetime, topic: string, onArrival?: EntryListener): Promise<Entry> {
    return this.attempt.park<Entry>(pending, lifetime, (wake) => {
      this.deps.waiters ??= new Map();
      const { waiters } = this.deps;
      const listeners = waiters.get(topic) ?? new Set();
      const listener: EntryListener = (entry) => {
        onArrival?.(entry);
        wake(entry);
      };
      waiters.set(topic, listeners.add(listener));
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) waiters.delete(topic);
      };
    });
  }
}
