/**
 * The past of one run: its recorded entries as a tree that follows the keys, so that a body which runs again
 * finds, step by step, what it already did. What lies under a finished call is never needed again and is dropped.
 */
import type { Entry } from '../protocol/entry.js';

const CLOSES = new Set([
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
const OPENS = new Set(['call.started', 'effect.asked', 'effect.requested', 'timer.set', 'wait.opened', 'group.opened']);
const BESIDE = new Set(['signal.received', 'cancel.requested', 'session.opened']);

/** What is recorded of one step. */
export class Trodden {
  open: Entry | undefined;
  close: Entry | undefined;
  /** Further intents, and the decisions that allowed them, by type and number. */
  private redone: Map<string, Entry> | undefined;
  private steps: Map<number, Trodden> | undefined;

  /** The step's record, handed out once. */
  take(index: number): Trodden | undefined {
    const step = this.steps?.get(index);
    if (step !== undefined) this.steps?.delete(index);
    return step;
  }

  /** Any recorded step that was never asked for. */
  get untaken(): Trodden | undefined {
    return this.steps?.values().next().value;
  }

  /** The first entry found at or under this step: what to name when the code asks for something else. */
  get witness(): Entry | undefined {
    return this.open ?? this.close ?? this.untaken?.witness;
  }

  redo(type: 'effect.decided' | 'effect.requested' | 'step.refused', number: number): Entry | undefined {
    return this.redone?.get(`${type} ${number}`);
  }

  putRedo(entry: Entry, number: number): void {
    this.redone ??= new Map();
    this.redone.set(`${entry.type} ${number}`, entry);
  }

  put(index: number, step: Trodden): void {
    this.steps ??= new Map();
    this.steps.set(index, step);
  }

  finish(close: Entry): void {
    this.close = close;
    this.steps = undefined;
  }
}

/** Builds the tree of one root from its entries, given in order. */
export class Past {
  readonly root: string;
  /** The place after the last entry that was added. */
  next = 0;
  private readonly top: Trodden = new Trodden();
  private readonly steps = new Map<string, Trodden>();

  constructor(root: string) {
    this.root = root;
    this.steps.set(root, this.top);
  }

  /** The root's record; undefined if it never started. */
  get recorded(): Trodden | undefined {
    return this.top.open === undefined ? undefined : this.top;
  }

  add(entry: Entry): void {
    this.next = entry.seq + 1;
    if (BESIDE.has(entry.type)) return;
    const cut = entry.key.indexOf('~');
    const step = this.at(cut < 0 ? entry.key : entry.key.slice(0, cut));
    if (step === undefined) return;
    if (cut >= 0) step.putRedo(entry, Number(entry.key.slice(cut + 1)));
    else if (entry.from !== undefined && entry.type === 'effect.settled') step.finish(this.passedOn(entry, entry.from));
    else if (CLOSES.has(entry.type) || !OPENS.has(entry.type)) step.finish(entry);
    else step.open = entry;
  }

  /** The step at a key, made if need be; undefined for a key outside this root. */
  private at(key: string): Trodden | undefined {
    const known = this.steps.get(key);
    if (known !== undefined) return known;
    const cut = key.lastIndexOf('/');
    const parent = cut < 0 ? undefined : this.at(key.slice(0, cut));
    if (parent === undefined) return undefined;
    const step = new Trodden();
    if (parent.close === undefined) parent.put(Number(key.slice(cut + 1)), step);
    this.steps.set(key, step);
    return step;
  }

  /** A result that the layers passed on unchanged is stored once, with the attempt that brought it. */
  private passedOn(settled: Entry, from: string): Entry {
    const { value, blob } = this.steps.get(from)?.close ?? {};
    return { ...settled, value, blob };
  }
}
