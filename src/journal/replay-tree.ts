/**
 * The past of one run: its recorded entries as a tree that follows the keys, so that a body which runs again
 * finds, step by step, what it already did. What lies under a finished call is never needed again and is dropped.
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
const NON_STEP_TYPES = new Set(['signal.received', 'cancel.requested', 'session.opened']);

/** What is recorded of one step. */
export class RecordedStep {
  openEntry: Entry | undefined;
  closeEntry: Entry | undefined;
  /** Further intents, and the decisions that allowed them, by type and number. */
  private retryEntries: Map<string, Entry> | undefined;
  private children: Map<number, RecordedStep> | undefined;

  /** The step's record, handed out once. */
  takeChild(index: number): RecordedStep | undefined {
    const step = this.children?.get(index);
    if (step !== undefined) this.children?.delete(index);
    return step;
  }

  /** Any recorded step that was never asked for. */
  get untakenChild(): RecordedStep | undefined {
    return this.children?.values().next().value;
  }

  /** The first entry found at or under this step: what to name when the code asks for something else. */
  get firstEntry(): Entry | undefined {
    return this.openEntry ?? this.closeEntry ?? this.untakenChild?.firstEntry;
  }

  retryEntry(type: 'effect.resolved' | 'effect.requested' | 'step.refused', number: number): Entry | undefined {
    return this.retryEntries?.get(`${type} ${number}`);
  }

  addRetryEntry(entry: Entry, number: number): void {
    this.retryEntries ??= new Map();
    this.retryEntries.set(`${entry.type} ${number}`, entry);
  }

  addChild(index: number, step: RecordedStep): void {
    this.children ??= new Map();
    this.children.set(index, step);
  }

  closeWith(close: Entry): void {
    this.closeEntry = close;
    this.children = undefined;
  }
}

/** Builds the tree of one root from its entries, given in order. */
export class ReplayTree {
  readonly rootKey: string;
  /** The place after the last entry that was added. */
  nextSeq = 0;
  private readonly rootStep: RecordedStep = new RecordedStep();
  private readonly stepsByKey = new Map<string, RecordedStep>();

  constructor(root: string) {
    this.rootKey = root;
    this.stepsByKey.set(root, this.rootStep);
  }

  /** The root's record; undefined if it never started. */
  get recordedRoot(): RecordedStep | undefined {
    return this.rootStep.openEntry === undefined ? undefined : this.rootStep;
  }

  add(entry: Entry): void {
    this.nextSeq = entry.seq + 1;
    if (NON_STEP_TYPES.has(entry.type)) return;
    const cut = entry.key.indexOf('~');
    const step = this.stepAt(cut < 0 ? entry.key : entry.key.slice(0, cut));
    if (step === undefined) return;
    if (cut >= 0) step.addRetryEntry(entry, Number(entry.key.slice(cut + 1)));
    else if (entry.attemptKey !== undefined && entry.type === 'effect.settled')
      step.closeWith(this.withAttemptResult(entry, entry.attemptKey));
    else if (CLOSING_TYPES.has(entry.type) || !OPENING_TYPES.has(entry.type)) step.closeWith(entry);
    else step.openEntry = entry;
  }

  /** The step at a key, made if need be; undefined for a key outside this root. */
  private stepAt(key: string): RecordedStep | undefined {
    const known = this.stepsByKey.get(key);
    if (known !== undefined) return known;
    const cut = key.lastIndexOf('/');
    const parent = cut < 0 ? undefined : this.stepAt(key.slice(0, cut));
    if (parent === undefined) return undefined;
    const step = new RecordedStep();
    if (parent.closeEntry === undefined) parent.addChild(Number(key.slice(cut + 1)), step);
    this.stepsByKey.set(key, step);
    return step;
  }

  /** A result that the layers passed on unchanged is stored once, with the attempt that brought it. */
  private withAttemptResult(settled: Entry, from: string): Entry {
    const { value, blob } = this.stepsByKey.get(from)?.closeEntry ?? {};
    return { ...settled, value, blob };
  }
}
