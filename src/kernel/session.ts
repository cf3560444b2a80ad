/**
 * The session: one journal stream and its only writer. Runs, signals, decisions and cancellations all become entries
 * here. Opening claims the session, so an older writer is refused from then on; running a root again replays it from
 * the journal, whether the process died, the run paused or the body was changed.
 */

import { Fault, LoopError } from '../base/errors.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import type { Clock, Ids } from '../journal/clock.js';
import { Past, type Trodden } from '../journal/past.js';
import { Reader } from '../journal/reader.js';
import { Recollection } from '../journal/recollection.js';
import { type Root, Standing } from '../journal/standing.js';
import type { Claim, Store } from '../journal/store.js';
import type { Upcasts } from '../journal/upcast.js';
import { Folds, type Invariant, type View } from '../journal/view.js';
import { Writer } from '../journal/writer.js';
import { same, snapshot } from '../json/value.js';
import type { Effect, Loop } from '../protocol/body.js';
import type { Decision, Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Attempt, type Outcome, type Timers } from './attempt.js';
import { runCall } from './call.js';
import type { Layer } from './layer.js';
import { Run, type RunParts } from './run.js';
import { assertOwn, KernelScope } from './scope.js';

export interface SessionOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  /** What stands around every effect, or a function that picks it for each: an effect with none pays for none. */
  readonly layers?: readonly Layer[] | ((effect: Effect, key: string) => readonly Layer[]);
  readonly views?: readonly View<never>[];
  readonly invariants?: readonly Invariant<never>[];
  readonly upcasts?: Upcasts;
  /** How deep calls may nest; 2,000 unless told. */
  readonly maxDepth?: number;
  /** Hears of each new entry when it is written, before it is durable. */
  readonly heard?: (entry: Entry) => void;
  /** Nothing is performed: a run stops where its record ends. For looking at what was recorded, never for going on. */
  readonly idle?: boolean;
  /** What the rings above hand to their bodies, as `scope.context`. */
  readonly context?: unknown;
}

export interface Signal {
  /** The delivery's own id: the same id is taken once. */
  readonly id: string;
  readonly name: string;
  readonly value?: unknown;
}

const DECISIONS: ReadonlySet<string> = new Set(['retry', 'supply', 'fail']);
const OPTIONS = optionKeys<SessionOptions>({
  store: true,
  clock: true,
  ids: true,
  layers: true,
  views: true,
  invariants: true,
  upcasts: true,
  maxDepth: true,
  heard: true,
  idle: true,
  context: true,
});
const ROOT_KEY = /^[A-Za-z0-9_.:-]{1,128}$/;

export class Session {
  readonly name: string;
  private readonly reader: Reader;
  private readonly folds: Folds;
  private readonly standing = new Standing();
  private readonly inFlight = new Map<string, Promise<unknown>>();
  private readonly writer: Writer;
  private readonly parts: RunParts;
  private readonly recollection: Recollection;
  private attempt: { readonly root: string; readonly current: Attempt } | undefined;
  /** The last root that opening found, for the run that usually follows. */
  private loaded: Past | undefined;
  private closing: Promise<void> | undefined;

  private constructor(name: string, options: SessionOptions, claim: Claim, folds: Folds) {
    const { store, clock, ids, layers = [], upcasts = {}, maxDepth = 2000, heard, idle = false, context } = options;
    this.name = name;
    this.reader = new Reader(name, store, upcasts);
    this.folds = folds;
    const layersOf = typeof layers === 'function' ? layers : (): readonly Layer[] => layers;
    const tell = (fault: Fault): void => this.attempt?.current.fail(fault);
    const { standing } = this;
    const writer = new Writer({ session: name, store, clock, folds, upcasts, claim, tell, heard });
    this.writer = writer;
    this.recollection = new Recollection({ session: name, store, upcasts, folds, standing, writer });
    // Written out: spreading objects here costs more than all the rest of opening a session.
    this.parts = {
      session: name,
      writer,
      standing,
      waiters: undefined,
      inFlight: this.inFlight,
      landed: undefined,
      blobs: store.blobs,
      clock,
      ids,
      layersOf,
      maxDepth,
      idle,
      context,
    };
  }

  /** Claims a session and folds what it holds. A session that was never opened starts here. */
  static async open(name: string, options: SessionOptions): Promise<Session> {
    assertKnownKeys(options, OPTIONS, 'A session has no option');
    const views = (options.views ?? []) as unknown as readonly View<unknown>[];
    const folds = new Folds(views, (options.invariants ?? []) as unknown as readonly Invariant<unknown>[]);
    const claim = await options.store.journal.claim(name);
    const session = new Session(name, options, claim, folds);
    if (claim.next > 0) await session.load(claim.next);
    else {
      const born = options.ids.id();
      session.standing.apply(session.writer.push({ seq: 0, at: 0, type: 'session.opened', key: 'session', born }));
    }
    return session;
  }

  /** The present state of a view that was given at opening. */
  state<S>(view: View<S>): S {
    return this.folds.state(view);
  }

  /** Effects whose intent is recorded, whose result is not, and which nobody here performs: what a decision is needed for. */
  get doubts(): readonly { readonly key: string; readonly name: string }[] {
    return this.standing.doubts(this.inFlight);
  }

  /** Runs a loop as a root of this session, or goes on with it, or returns how it ended. */
  async run<I, O>(root: string, loop: Loop<I, O>, input: I, options: { timers?: Timers } = {}): Promise<Outcome<O>> {
    this.usable();
    if (!ROOT_KEY.test(root))
      throw new TypeError(`A root key is 1 to 128 letters, digits or _ . : - ; not ${JSON.stringify(root)}.`);
    if (this.attempt !== undefined) throw this.fault('SESSION_BUSY', `it already runs ${this.attempt.root}`);
    const attempt = new Attempt(options.timers ?? 'hold');
    this.attempt = { root, current: attempt };
    this.parts.landed = this.inFlight.size > 0 ? new Map() : undefined;
    try {
      const known = this.standing.roots.get(root);
      const seen = known === undefined ? undefined : await this.past(root, known);
      attempt.check();
      // guard: recorded-cancel-applied
      if (known?.cancelled !== undefined) attempt.life.end(cancelledBecause(root, known.cancelled), false);
      const run = new Run(this.parts, attempt);
      const scope = new KernelScope(run, root, attempt.life, seen, 0);
      const outcome = await attempt.outcome(runCall(run, scope, loop, input), (error) => this.failed(root, error));
      // guard: result-durable-before-reported
      await this.writer.durable();
      if (this.recollection.due) await this.recollection.save();
      return outcome as Outcome<O>;
    } finally {
      attempt.finish();
      this.attempt = undefined;
      this.parts.landed = undefined;
    }
  }

  /** Lets an outside fact in. Resolves once it is durable; false if this delivery was already taken. */
  async signal({ id, name, value }: Signal): Promise<boolean> {
    this.usable();
    if (typeof id !== 'string' || id === '' || typeof name !== 'string')
      throw new TypeError('A signal has an id and a name; both are text, and the id is not empty.');
    const known = this.standing.delivered.get(id);
    // guard: signal-delivered-once
    if (known !== undefined) return this.delivered(known, { id, name, value });
    const entry = this.writer.propose({ seq: 0, at: 0, type: 'signal.received', key: id, name, value: value as Json });
    this.standing.apply(entry);
    const [waiter] = this.parts.waiters?.get(`signal ${name}`) ?? [];
    waiter?.(entry);
    await this.writer.durable();
    return true;
  }

  /** Says what becomes of a `once` effect in doubt: perform it again, take this as its result, or fail it. */
  async decide(
    key: string,
    decision: Decision,
    by: string,
    more: { value?: unknown; reason?: string } = {},
  ): Promise<void> {
    this.usable();
    if (!DECISIONS.has(decision)) throw new TypeError(`A decision is retry, supply or fail; not ${String(decision)}.`);
    // guard: decision-needs-a-doubt
    if (!this.doubts.some((doubt) => doubt.key === key)) {
      throw new LoopError('DECISION_REFUSED', `Nothing is in doubt under ${key} in session "${this.name}".`, { key });
    }
    const redo = `${key}~${(this.standing.intents.get(key)?.begun ?? 0) + 1}`;
    const value = more.value as Json;
    const entry = { seq: 0, at: 0, type: 'effect.decided', key: redo, decision, by, reason: more.reason, value };
    const decided = this.writer.propose(entry);
    this.standing.apply(decided);
    for (const waiter of this.parts.waiters?.get(`decision ${redo}`) ?? []) waiter(decided);
    await this.writer.durable();
  }

  /** Writes a fact that no body made. Its key is told apart from every step's, so no replay takes it for one. */
  async note(type: string, id: string, value: Json): Promise<void> {
    this.usable();
    assertOwn(type, id);
    this.writer.propose({ seq: 0, at: 0, type, key: `#${id}`, value });
    await this.writer.durable();
  }

  /** Asks a root to stop: no new step starts once this is written. False if it was asked before or has ended. */
  async cancel(root: string, reason: string): Promise<boolean> {
    this.usable();
    const known = this.standing.roots.get(root);
    if (known === undefined || known.last !== undefined || known.cancelled !== undefined) return false;
    const why = String(reason);
    this.standing.apply(this.writer.propose({ seq: 0, at: 0, type: 'cancel.requested', key: root, reason: why }));
    if (this.attempt?.root === root) this.attempt.current.life.end(cancelledBecause(root, why), false);
    await this.writer.durable();
    return true;
  }

  /** Ends the attempt, waits until effects in flight are recorded and all is durable; nothing is written afterwards. */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  /** How a run failed. The end of one whose body would not end, and was left where it was, is written here. */
  private failed(root: string, failure: LoopError): Outcome {
    const error = failure.record();
    const known = this.standing.roots.get(root);
    if (known !== undefined && known.last === undefined) {
      this.standing.apply(this.writer.push({ seq: 0, at: 0, type: 'call.errored', key: root, error }));
    }
    return { status: 'error', error };
  }

  private async end(): Promise<void> {
    this.attempt?.current.fail(this.fault('SESSION_CLOSED', 'it was closed'));
    // guard: effects-in-flight-awaited
    while (this.inFlight.size > 0 && this.writer.fault === undefined) await Promise.allSettled(this.inFlight.values());
    if (this.writer.fault === undefined) await this.writer.durable();
  }

  /**
   * What is recorded of a root; of one that ended, its two ends are enough. What is written while it is read is heard
   * of otherwise: results that land, decisions, signals and cancels are all kept in memory until they are needed.
   */
  private async past(root: string, { first, last }: Root): Promise<Trodden | undefined> {
    const opened = this.loaded;
    this.loaded = undefined;
    if (opened?.root === root && opened.next === this.writer.next) return opened.recorded;
    await this.writer.durable();
    const past = new Past(root);
    if (last !== undefined) for (const seq of [first, last]) past.add(await this.reader.at(seq));
    else for await (const entries of this.reader.from(first)) for (const entry of entries) past.add(entry);
    if (past.recorded === undefined) throw this.reader.missing(first);
    return past.recorded;
  }

  private async load(next: number): Promise<void> {
    let past: Past | undefined;
    for await (const entries of this.reader.from(await this.recollection.restore(next, this.reader))) {
      for (const entry of entries) {
        this.standing.apply(entry);
        if (entry.type === 'call.started' && this.standing.roots.has(entry.key)) past = new Past(entry.key);
        past?.add(entry);
        const folding = this.fold(entry);
        if (folding !== undefined) await folding;
      }
    }
    this.loaded = past;
  }

  private fold(entry: Entry): Promise<void> | undefined {
    if (this.folds.empty) return undefined;
    if (entry.blob === undefined) return void this.folds.apply(entry);
    return this.reader.value(entry).then((value) => this.folds.apply({ ...entry, value }));
  }

  /** The same delivery again is no news; another content under its id is a conflict. */
  private async delivered(seq: number, { id, name, value }: Signal): Promise<false> {
    await this.writer.durable();
    const entry = await this.reader.at(seq);
    const known = await this.reader.value(entry);
    if (entry.name === name && same(known, snapshot(value, 'the signal'))) return false;
    throw new LoopError('SIGNAL_CONFLICT', `Signal "${id}" was received before, with other content.`, { id });
  }

  private usable(): void {
    if (this.writer.fault !== undefined) throw this.writer.fault;
    if (this.closing !== undefined) throw this.fault('SESSION_CLOSED', 'it was closed');
  }

  private fault(code: 'SESSION_BUSY' | 'SESSION_CLOSED', what: string): Fault {
    return new Fault(code, `Session "${this.name}": ${what}.`, { session: this.name });
  }
}

function cancelledBecause(root: string, reason: string): LoopError {
  return new LoopError('CANCELLED', `The run ${root} was cancelled: ${reason}`, { reason });
}
