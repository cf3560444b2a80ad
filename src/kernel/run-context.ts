/**
 * What every scope of one attempt shares: the writer, the attempt's strands, time, chance, and the way back to what
 * was recorded. It compares what the code asks for with what the journal holds, and stops the attempt when they differ.
 */

import { Fault, LoopError, toStoreFault } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import { describeEntry, type RequestedStep } from '../journal/describe-entry.js';
import { fetchValue } from '../journal/fetch-value.js';
import type { JournalWriter } from '../journal/journal-writer.js';
import type { NewEntry } from '../journal/new-entry.js';
import type { RecordedStep } from '../journal/replay-tree.js';
import type { SessionState } from '../journal/session-state.js';
import type { Blobs } from '../journal/store.js';
import { cloneJson, copyAsJson, jsonEquals } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Layer } from './layer.js';
import type { Lifetime } from './lifetime.js';
import { neverSettle, type PendingStep, type RunAttempt } from './run-attempt.js';

/** Wakes those who wait for an outside fact: a signal by name, a decision by key. */
type EntryWaiters = Map<string, Set<(entry: Entry) => void>>;

export interface RunDeps {
  readonly session: string;
  readonly writer: JournalWriter;
  readonly sessionState: SessionState;
  /** Made when somebody waits: most sessions wait for nothing. */
  waiters: EntryWaiters | undefined;
  readonly inFlight: Map<string, Promise<unknown>>;
  /** Results of effects that an earlier attempt began and that ended during this one. */
  lateResults: Map<string, Entry> | undefined;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly ids: Ids;
  layersOf(effect: Effect, key: string): readonly Layer[];
  readonly maxDepth: number;
  readonly replayOnly: boolean;
  readonly context: unknown;
}

/** One step of a scope: its key, the lifetime it is part of, and what an earlier process recorded of it. */
export interface StepContext {
  readonly key: string;
  readonly lifetime: Lifetime;
  readonly recorded: RecordedStep | undefined;
  /** How deep its scope is nested. */
  readonly depth: number;
}

/** What is asked for may be anything; only JSON can be what was recorded. */
function equalsRecorded(recorded: Json | undefined, asked: unknown): boolean {
  try {
    return jsonEquals(recorded, copyAsJson(asked, 'what is asked for'));
  } catch {
    return false;
  }
}

export function depthError(key: string, limit: number): LoopError {
  const place = key.length > 60 ? `${key.slice(0, 60)}…` : key;
  return new LoopError('DEPTH_EXCEEDED', `Calls are nested deeper than ${limit} at ${place}.`, { limit });
}

/** Never seen: whoever meets it stays where it is. */
const ATTEMPT_OVER = new Error('The attempt is over.');

export class RunContext {
  readonly deps: RunDeps;
  readonly attempt: RunAttempt;
  readonly writer: JournalWriter;

  constructor(parts: RunDeps, attempt: RunAttempt) {
    this.deps = parts;
    this.attempt = attempt;
    this.writer = parts.writer;
  }

  /** No body of this attempt may move any more. */
  get isOver(): boolean {
    return this.attempt.isOver || this.writer.fault !== undefined;
  }

  /** Writes for this attempt. Once it is over nothing is written for it, and nothing for a branch that has lost. */
  push(life: Lifetime, entry: NewEntry, weight?: number): Entry {
    // guard: ended-attempt-writes-nothing
    if (this.isOver) throw ATTEMPT_OVER;
    if (life.hasLostRace) life.throwIfEnded();
    return this.writer.push(entry, false, weight);
  }

  /** Writes what a step opens with. That an invariant refused it is recorded in its place, for a replay to find. */
  propose(life: Lifetime, entry: NewEntry, weight?: number): Entry {
    if (this.isOver) throw ATTEMPT_OVER;
    life.throwIfEnded();
    try {
      return this.writer.propose(entry, weight);
    } catch (thrown) {
      // guard: invariant-refusal-recorded
      if (!(thrown instanceof LoopError) || thrown.code !== 'INVARIANT_VIOLATED') throw thrown;
      const { type, key, name, value } = entry;
      const refused = { seq: 0, at: 0, type: 'step.refused', key, name: type, value, error: thrown.toErrorRecord() };
      this.push(life, name === undefined ? refused : { ...refused, kind: name });
      throw thrown;
    }
  }

  /** Waits until all that was written is durable. By then the run may be over, or cancelled. */
  async waitForDurability(life: Lifetime): Promise<void> {
    await this.writer.waitForFlush();
    await this.continueOrStall(life);
  }

  /** Waits for a store that is far behind. */
  async waitForBacklog(life: Lifetime): Promise<void> {
    await this.writer.waitForBacklog();
    await this.continueOrStall(life);
  }

  private continueOrStall(life: Lifetime): Promise<never> | undefined {
    if (this.isOver) return neverSettle();
    life.throwIfEnded();
    return undefined;
  }

  applyToState(entry: Entry): void {
    this.deps.sessionState.apply(entry);
  }

  trackInFlight(key: string, work: Promise<unknown>): void {
    const { inFlight } = this.deps;
    const done = (): boolean => inFlight.delete(key);
    inFlight.set(key, work);
    work.then(done, done);
  }

  /** A value as it was recorded, fetched from the blobs if it lies there. */
  async recordedOutcome(entry: Entry): Promise<unknown> {
    if (entry.error !== undefined) throw LoopError.fromErrorRecord(entry.error);
    return cloneJson(await this.fetchRecorded(entry));
  }

  private async fetchRecorded(entry: Entry): Promise<Json | undefined> {
    try {
      return await fetchValue(this.deps.blobs, this.deps.session, entry);
    } catch (error) {
      this.attempt.fail(toStoreFault(error));
      return neverSettle();
    }
  }

  /** The one rule: what a step opens with is written once, and asked again it must be the same. True if its end is recorded too. */
  async openStep({ key, lifetime, recorded }: StepContext, opening: NewEntry): Promise<boolean> {
    if (recorded !== undefined) {
      await this.assertMatchesJournal(key, recorded, opening);
      return recorded.closeEntry !== undefined;
    }
    this.propose(lifetime, opening);
    if (this.writer.isBacklogged) await this.waitForBacklog(lifetime);
    return false;
  }

  /** Stops the attempt unless the record is of what is asked for now. */
  async assertMatchesJournal(key: string, seen: RecordedStep, asked: RequestedStep): Promise<void> {
    const recorded = seen.openEntry ?? seen.closeEntry;
    if (recorded === undefined) return this.failWithMismatch(key, seen.firstEntry, asked);
    const { error } = recorded;
    const refused = recorded.type === 'step.refused' && recorded.name === asked.type && recorded.kind === asked.name;
    if (refused && error !== undefined && equalsRecorded(await this.fetchRecorded(recorded), asked.value))
      throw LoopError.fromErrorRecord(error);
    const { type, name, kind, version } = recorded;
    const alike = type === asked.type && name === asked.name && kind === asked.kind && version === asked.version;
    // guard: replayed-step-matches-record
    if (!alike) return this.failWithMismatch(key, recorded, asked);
    const value = await this.fetchRecorded(recorded);
    // guard: replayed-input-matches-record
    if (!equalsRecorded(value, asked.value)) return this.failWithMismatch(key, { ...recorded, value }, asked);
  }

  failWithMismatch(key: string, recorded: Entry | undefined, asked: RequestedStep | undefined): Promise<never> {
    const held = describeEntry(recorded);
    const wanted = describeEntry(asked);
    const at = recorded === undefined || recorded.key === key ? key : `${key} (recorded under it: ${recorded.key})`;
    const message =
      `Session "${this.deps.session}", step ${at}: the journal holds ${held}, but the code asked for ${wanted}. ` +
      'Run the code that wrote this journal, or start a new session for the changed one.';
    this.attempt.fail(
      new Fault('REPLAY_MISMATCH', message, { session: this.deps.session, key, recorded: held, asked: wanted }),
    );
    return neverSettle();
  }

  /** Signals that a lost branch gave back go to whoever waits for them by now. */
  redeliverSignals(): void {
    for (const [waited, [waiter]] of this.deps.waiters ?? []) {
      const kept = waited.startsWith('signal ')
        ? this.deps.sessionState.oldestSignal(waited.slice('signal '.length))
        : undefined;
      if (kept !== undefined) waiter?.(kept);
    }
  }

  /** Waits for an entry that comes from outside, under `name` among the waiters. */
  waitForEntry(
    pending: PendingStep,
    life: Lifetime,
    name: string,
    take: (entry: Entry) => void = () => {},
  ): Promise<Entry> {
    return this.attempt.park<Entry>(pending, life, (wake) => {
      this.deps.waiters ??= new Map();
      const { waiters } = this.deps;
      const waiting = waiters.get(name) ?? new Set();
      const waiter = (entry: Entry): void => {
        take(entry);
        wake(entry);
      };
      waiters.set(name, waiting.add(waiter));
      return () => {
        waiting.delete(waiter);
        if (waiting.size === 0) waiters.delete(name);
      };
    });
  }
}
