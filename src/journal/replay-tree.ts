/**
 * The recorded steps of one root (a top-level call) as a tree that follows the keys. A replayed body takes its recorded
 * steps from it one by one. A replay never enters a step that has ended, so the steps below it are dropped.
 */
import type { Entry } from '../protocol/entry.js';

const CLOSING_TYPES = new Set([
  'call.completed',
  'call.errored',
  'effect.returned',
  'effect.failed',
  'effect.settled',
  'timer.fired',
  'wait.settled',
  'race.won',
  'step.refused',
]);
const OPENING_TYPES = new Set([
  'call.started',
  'effect.opened',
  'effect.requested',
  'timer.set',
  'wait.opened',
  'group.opened',
]);
/**
 * The types of entries that belong to no step. Any type in none of these sets is a fact that a body recorded, and ends
 * its step.
 */
const NON_STEP_TYPES = new Set(['signal.received', 'signal.discarded', 'cancel.requested', 'session.opened']);

/** The recorded entries of one step and of the steps below it. */
export class RecordedStep {
  openEntry: Entry | undefined;
  closeEntry: Entry | undefined;
  /** Resolutions of an effect in doubt, and the intents or refusals of its retries, by type and retry number. */
  private retryEntries: Map<string, Entry> | undefined;
  private children: Map<number, RecordedStep> | undefined;

  /** Removes a child and returns it: each record is used once. */
  takeChild(index: number): RecordedStep | undefined {
    const step = this.children?.get(index);
    if (step !== undefined) this.children?.delete(index);
    return step;
  }

  /** A recorded child that the code has not requested; undefined if there is none. */
  get untakenChild(): RecordedStep | undefined {
    return this.children?.values().next().value;
  }

  /** An entry of this step or of one below it, for the message of a mismatch. */
  get firstEntry(): Entry | undefined {
    return this.openEntry ?? this.closeEntry ?? this.untakenChild?.firstEntry;
  }

  /** Returns the entry of this type for a retry of an effect in doubt. The first retry has the number 1. */
  retryEntry(type: 'effect.resolved' | 'effect.requested' | 'step.refused', number: number): Entry | undefined {
    return this.retryEntries?.get(`${type} ${number}`);
  }

  /** Adds an entry of a retry of this step. */
  addRetryEntry(entry: Entry, number: number): void {
    this.retryEntries ??= new Map();
    this.retryEntries.set(`${entry.type} ${number}`, entry);
  }

  /** Adds a step below this one. */
  addChild(index: number, step: RecordedStep): void {
    this.children ??= new Map();
    this.children.set(index, step);
  }

  /** Sets the last entry of the step and drops the steps below it. */
  closeWith(close: Entry): void {
    this.closeEntry = close;
    this.children = undefined;
  }
}

/** Builds the tree of one root from the entries of its session, added in order. */
export class ReplayTree {
  readonly rootKey: string;
  /** The sequence number after the last entry that was added. */
  nextSeq = 0;
  private readonly rootStep: RecordedStep = new RecordedStep();
  private readonly stepsByKey = new Map<string, RecordedStep>();

  constructor(rootKey: string) {
    this.rootKey = rootKey;
    this.stepsByKey.set(rootKey, this.rootStep);
  }

  /** The record of the root; undefined if it has not started. */
  get recordedRoot(): RecordedStep | undefined {
    return this.rootStep.openEntry === undefined ? undefined : this.rootStep;
  }

  /** Adds the next entry of the session. Entries of other roots are ignored. */
  add(entry: Entry): void {
    this.nextSeq = entry.seq + 1;
    if (NON_STEP_TYPES.has(entry.type)) return;
    const tilde = entry.key.indexOf('~');
    const step = this.stepAt(tilde < 0 ? entry.key : entry.key.slice(0, tilde));
    if (step === undefined) return;
    if (tilde >= 0) step.addRetryEntry(entry, Number(entry.key.slice(tilde + 1)));
    else if (entry.attemptKey !== undefined && entry.type === 'effect.settled')
      step.closeWith(this.withAttemptResult(entry, entry.attemptKey));
    else if (CLOSING_TYPES.has(entry.type) || !OPENING_TYPES.has(entry.type)) step.closeWith(entry);
    else step.openEntry = entry;
  }

  /** Returns the step at a key, created if necessary; undefined for a key outside of this root. */
  private stepAt(key: string): RecordedStep | undefined {
    const existing = this.stepsByKey.get(key);
    if (existing !== undefined) return existing;
    const slash = key.lastIndexOf('/');
    const parent = slash < 0 ? undefined : this.stepAt(key.slice(0, slash));
    if (parent === undefined) return undefined;
    const step = new RecordedStep();
    if (parent.closeEntry === undefined) parent.addChild(Number(key.slice(slash + 1)), step);
    this.stepsByKey.set(key, step);
    return step;
  }

  /**
   * Returns an `effect.settled` entry with the result of its attempt. A result that the layers passed on unchanged is
   * stored only with the attempt.
   */
  private withAttemptResult(settled: Entry, attemptKey: string): Entry {
    const { value, blob } = this.stepsByKey.get(attemptKey)?.closeEntry ?? {};
    return { ...settled, value, blob };
  }
}
