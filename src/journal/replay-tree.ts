/**
 * The recorded steps of one root (a top-level call) as a tree that follows the keys. A replayed body takes its recorded
 * steps from it one by one. A replay never enters a step that has ended, so the steps below it are dropped. A retry of
 * the root (`call.reopened`) brings those below the failed steps back.
 */
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { expandLeaf } from './leaf-entries.js';
import { GATE_BOUNDARY } from './runtime-effects.js';

const OPENING_TYPES = new Set([
  'call.started',
  'effect.opened',
  'effect.requested',
  'timer.set',
  'wait.opened',
  'group.opened',
]);
/**
 * The types of entries that belong to no step. Any type in neither of these sets ends its step: `call.completed`,
 * `effect.failed` and so on, or a fact that a body recorded.
 */
const NON_STEP_TYPES = new Set([
  'signal.received',
  'signal.discarded',
  'cancel.requested',
  'session.opened',
  'call.stopped',
  'effect.repeated',
]);

/** True if an entry of this type begins a step. */
export function isOpeningType(type: string): boolean {
  return OPENING_TYPES.has(type);
}

/** True if an entry of this type ends a step. A fact that a body records is the beginning and the end of its step. */
export function isClosingType(type: string): boolean {
  return !OPENING_TYPES.has(type) && !NON_STEP_TYPES.has(type) && type !== 'call.reopened';
}

/** What a retry of the root changes in a step. */
interface Reopening {
  /**
   * Of a failed step: its end, which no longer applies. Of an effect without an end in a branch that lost a reopened
   * race: its intent. Undefined again once another attempt at the effect is recorded.
   */
  endedEntry?: Entry | undefined;
  /** Of a race: which branches continue. The winner, if it failed in a step of its own; else the others. */
  branches?: 'winner' | 'others';
  /**
   * Of a step that follows a failed one: the body may request another step in its place; that step and those after it
   * get keys from this index on.
   */
  optionalUntil?: number;
}

/** The recorded entries of one step and of the steps below it. */
export class RecordedStep {
  openEntry: Entry | undefined;
  closeEntry: Entry | undefined;
  /** Undefined for most steps: few turns are retried. */
  reopening: Reopening | undefined;
  /** Resolutions of an effect in doubt, and the intents and refusals of its retries, by type and retry number. */
  private retryEntries: Map<string, Entry> | undefined;
  private children: Map<number, RecordedStep> | undefined;

  /** Removes a child and returns it: each record is used once. */
  takeChild(index: number): RecordedStep | undefined {
    const step = this.children?.get(index);
    if (step !== undefined) this.children?.delete(index);
    return step;
  }

  /** Returns an entry of the child with this index; undefined if it is not recorded or was taken. */
  entryOfChild(index: number): Entry | undefined {
    return this.children?.get(index)?.firstEntry;
  }

  /** A recorded child that the code has not requested and must request; undefined if there is none. */
  get untakenChild(): RecordedStep | undefined {
    for (const child of this.children?.values() ?? []) if (child.optionalUntil === undefined) return child;
    return undefined;
  }

  /** An entry of this step or of one below it, for the message of a mismatch. */
  get firstEntry(): Entry | undefined {
    return this.openEntry ?? this.closeEntry ?? this.untakenChild?.firstEntry;
  }

  /** Returns the entry of this type for a retry of an effect in doubt. The first retry has the number 1. */
  retryEntry(type: 'effect.resolved' | 'effect.requested', number: number): Entry | undefined {
    return this.retryEntries?.get(`${type} ${number}`);
  }

  /** Adds an entry of a retry of this step. A retry that was refused ends the step. */
  addRetryEntry(entry: Entry, number: number): void {
    if (entry.type === 'step.refused') this.closeWith(entry);
    this.retryEntries ??= new Map();
    this.retryEntries.set(`${entry.type} ${number}`, entry);
    if (this.reopening !== undefined && entry.type === 'effect.requested') this.reopening.endedEntry = undefined;
  }

  /** Returns the highest number of a retry, or of a retry with an intent; 0 if there is none. */
  lastRetry(type = ''): number {
    const numbers = [...(this.retryEntries?.keys() ?? [])].filter((key) => key.startsWith(type));
    return Math.max(0, ...numbers.map((key) => Number(key.slice(key.indexOf(' ')))));
  }

  /** The index from which on new steps get their keys if the body requests another step; undefined if it must not. */
  get optionalUntil(): number | undefined {
    return this.reopening?.optionalUntil;
  }

  /** Adds a step below this one. */
  addChild(index: number, step: RecordedStep): void {
    this.children ??= new Map();
    this.children.set(index, step);
  }

  /** Removes a step below this one. */
  removeChild(index: number): void {
    this.children?.delete(index);
  }

  /** Sets the last entry of the step and drops the steps below it. */
  closeWith(close: Entry): void {
    this.closeEntry = close;
    if (this.reopening !== undefined) this.reopening.endedEntry = undefined;
    this.children = undefined;
  }

  /** Records what a retry changes in this step. */
  updateReopening(change: Reopening): void {
    this.reopening = { ...this.reopening, ...change };
  }

  /** Makes the children after an index optional: they were requested after a failure that a retry may remove. */
  makeOptionalAfter(index: number): void {
    const end = Math.max(...(this.children?.keys() ?? [])) + 1;
    for (const [other, child] of this.children ?? []) if (other > index) child.updateReopening({ optionalUntil: end });
  }
}

/** Returns the keys of a `call.reopened` entry. */
export function reopenedKeysOf(value: Json | undefined): readonly string[] {
  const { keys } = (value ?? {}) as { readonly keys?: readonly string[] };
  return Array.isArray(keys) ? keys : [];
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
    const parts = expandLeaf(entry);
    if (parts === undefined) this.addStepEntry(entry);
    else for (const part of parts) this.addStepEntry(part);
  }

  private addStepEntry(entry: Entry): void {
    if (NON_STEP_TYPES.has(entry.type)) return;
    if (entry.type === 'call.reopened') {
      this.reopen(entry);
      return;
    }
    const tilde = entry.key.indexOf('~');
    const step = this.stepAt(tilde < 0 ? entry.key : entry.key.slice(0, tilde));
    if (step === undefined) return;
    if (tilde >= 0) step.addRetryEntry(entry, Number(entry.key.slice(tilde + 1)));
    else if (entry.attemptKey !== undefined && entry.type === 'effect.settled')
      step.closeWith(this.withAttemptResult(entry, entry.attemptKey));
    else if (isClosingType(entry.type)) step.closeWith(entry);
    else step.openEntry = entry;
  }

  /**
   * Reopens the failed steps of a retry: their ends no longer apply, and the steps below them are known again. A step
   * that is only an end (a record that failed, a refusal) is forgotten and made again.
   */
  private reopen({ key: root, value }: Entry): void {
    const keys = root === this.rootKey ? reopenedKeysOf(value) : [];
    const reopened = new Set(keys);
    for (const [key, step] of this.stepsByKey)
      if (reopened.has(parentOf(key))) this.stepsByKey.get(parentOf(key))?.addChild(indexOf(key), step);
    for (const key of keys) {
      const step = this.stepsByKey.get(key);
      if (step === undefined) continue;
      const parent = this.stepsByKey.get(parentOf(key));
      // A gate has not failed: the steps after it are those of the same path.
      if (step.openEntry?.boundary !== GATE_BOUNDARY) parent?.makeOptionalAfter(indexOf(key));
      if (step.closeEntry?.type === 'race.won') this.reopenRace(key, step, keys);
      step.updateReopening({ endedEntry: step.closeEntry });
      step.closeEntry = undefined;
      if (step.openEntry !== undefined) continue;
      parent?.removeChild(indexOf(key));
      this.stepsByKey.delete(key);
    }
  }

  /**
   * Decides which branches of a reopened race continue. If the winner failed by itself, such as with a timeout, the
   * others continue; signals that they had received are in the inbox again, so they wait again.
   */
  private reopenRace(race: string, raceStep: RecordedStep, keys: readonly string[]): void {
    const winner = `${race}/${raceStep.closeEntry?.winnerIndex}/`;
    const branches = keys.some((key) => key.startsWith(winner)) ? 'winner' : 'others';
    raceStep.updateReopening({ branches });
    if (branches === 'winner') return;
    for (const [key, step] of this.stepsByKey) {
      if (!key.startsWith(`${race}/`) || key.startsWith(winner)) continue;
      if (step.closeEntry?.type === 'wait.settled') step.closeEntry = undefined;
      if (step.closeEntry === undefined && (step.openEntry?.safety ?? 'pure') !== 'pure')
        step.updateReopening({ endedEntry: step.openEntry });
    }
  }

  /** Returns the step at a key, created if necessary; undefined for a key outside of this root. */
  private stepAt(key: string): RecordedStep | undefined {
    const existing = this.stepsByKey.get(key);
    if (existing !== undefined) return existing;
    const parent = key.includes('/') ? this.stepAt(parentOf(key)) : undefined;
    if (parent === undefined) return undefined;
    const step = new RecordedStep();
    if (parent.closeEntry === undefined) parent.addChild(indexOf(key), step);
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

function parentOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf('/')));
}

function indexOf(key: string): number {
  return Number(key.slice(key.lastIndexOf('/') + 1));
}

/** Returns the branches of a race that a retry of its root continues; undefined for any other race. */
export function continuedBranches(recorded: RecordedStep | undefined, count: number): readonly number[] | undefined {
  const { endedEntry, branches } = recorded?.reopening ?? {};
  if (endedEntry === undefined) return undefined;
  const indexes = Array.from({ length: count }, (_, index) => index);
  const chosen = indexes.filter((index) => (index === endedEntry.winnerIndex) === (branches === 'winner'));
  return chosen.length === 0 ? indexes : chosen;
}
