/**
 * The session: one journal stream and its only writer. Runs, signals, decisions and cancellations all become entries
 * here. Opening claims the session, so an older writer is refused from then on; running a root again replays it from
 * the journal, whether the process died, the run paused or the body was changed.
 */

import { Fault, LoopError } from '../base/errors.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import type { Clock, Ids } from '../journal/clock.js';
import { JournalReader } from '../journal/journal-reader.js';
import { JournalWriter } from '../journal/journal-writer.js';
import type { NewEntry } from '../journal/new-entry.js';
import { type RecordedStep, ReplayTree } from '../journal/replay-tree.js';
import { type RootCall, SessionState } from '../journal/session-state.js';
import { SnapshotCache } from '../journal/snapshot-cache.js';
import type { Claim, Store } from '../journal/store.js';
import type { Upcasts } from '../journal/upcast.js';
import { type Invariant, type View, ViewStates } from '../journal/view.js';
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { Effect, Loop } from '../protocol/body.js';
import type { Entry, Resolution } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { runCall } from './call.js';
import type { Layer } from './layer.js';
import { RunAttempt, type RunOutcome, type TimerMode } from './run-attempt.js';
import { RunContext, type RunDeps } from './run-context.js';
import { assertNotReserved, KernelScope } from './scope.js';

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
  readonly onEntry?: (entry: Entry) => void;
  /** Nothing is performed: a run stops where its record ends. For looking at what was recorded, never for going on. */
  readonly replayOnly?: boolean;
  /** What the rings above hand to their bodies, as `scope.context`. */
  readonly context?: unknown;
}

export interface Signal {
  /** The delivery's own id: the same id is taken once. */
  readonly id: string;
  readonly name: string;
  readonly value?: unknown;
}

const RESOLUTIONS: ReadonlySet<string> = new Set(['retry', 'supply', 'fail']);
const SESSION_OPTION_NAMES = optionKeys<SessionOptions>({
  store: true,
  clock: true,
  ids: true,
  layers: true,
  views: true,
  invariants: true,
  upcasts: true,
  maxDepth: true,
  onEntry: true,
  replayOnly: true,
  context: true,
});
const ROOT_KEY_PATTERN = /^[A-Za-z0-9_.:-]{1,128}$/;

export class Session {
  readonly name: string;
  private readonly reader: JournalReader;
  private readonly viewStates: ViewStates;
  private readonly sessionState = new SessionState();
  private readonly inFlight = new Map<string, Promise<unknown>>();
  private readonly writer: JournalWriter;
  private readonly runDeps: RunDeps;
  private readonly snapshotCache: SnapshotCache;
  private activeRun: { readonly root: string; readonly attempt: RunAttempt } | undefined;
  /** The last root that opening found, for the run that usually follows. */
  private preloadedTree: ReplayTree | undefined;
  private closing: Promise<void> | undefined;

  private constructor(name: string, options: SessionOptions, claim: Claim, folds: ViewStates) {
    const {
      store,
      clock,
      ids,
      layers = [],
      upcasts = {},
      maxDepth = 2000,
      onEntry,
      replayOnly = false,
      context,
    } = options;
    this.name = name;
    this.reader = new JournalReader(name, store, upcasts);
    this.viewStates = folds;
    const layersOf = typeof layers === 'function' ? layers : (): readonly Layer[] => layers;
    const tell = (fault: Fault): void => this.activeRun?.attempt.fail(fault);
    const { sessionState } = this;
    const writer = new JournalWriter({
      session: name,
      store,
      clock,
      viewStates: folds,
      upcasts,
      claim,
      onFault: tell,
      onEntry,
    });
    this.writer = writer;
    this.snapshotCache = new SnapshotCache({ session: name, store, upcasts, viewStates: folds, sessionState, writer });
    // Written out: spreading objects here costs more than all the rest of opening a session.
    this.runDeps = {
      session: name,
      writer,
      sessionState,
      waiters: undefined,
      inFlight: this.inFlight,
      lateResults: undefined,
      blobs: store.blobs,
      clock,
      ids,
      layersOf,
      maxDepth,
      replayOnly,
      context,
    };
  }

  /** Claims a session and folds what it holds. A session that was never opened starts here. */
  static async open(name: string, options: SessionOptions): Promise<Session> {
    assertKnownKeys(options, SESSION_OPTION_NAMES, 'A session has no option');
    const views = (options.views ?? []) as unknown as readonly View<unknown>[];
    const folds = new ViewStates(views, (options.invariants ?? []) as unknown as readonly Invariant<unknown>[]);
    const claim = await options.store.journal.claim(name);
    const session = new Session(name, options, claim, folds);
    if (claim.nextSeq > 0) await session.load(claim.nextSeq);
    else {
      const born = options.ids.id();
      session.sessionState.apply(
        session.writer.push({ seq: 0, at: 0, type: 'session.opened', key: 'session', incarnationId: born }),
      );
    }
    return session;
  }

  /** The present state of a view that was given at opening. */
  state<S>(view: View<S>): S {
    return this.viewStates.stateOf(view);
  }

  /** Effects whose intent is recorded, whose result is not, and which nobody here performs: what a decision is needed for. */
  get effectsInDoubt(): readonly { readonly key: string; readonly name: string }[] {
    return this.sessionState.effectsInDoubt(this.inFlight);
  }

  /** Runs a loop as a root of this session, or goes on with it, or returns how it ended. */
  async run<I, O>(
    root: string,
    loop: Loop<I, O>,
    input: I,
    options: { timers?: TimerMode } = {},
  ): Promise<RunOutcome<O>> {
    this.assertUsable();
    if (!ROOT_KEY_PATTERN.test(root))
      throw new TypeError(`A root key is 1 to 128 letters, digits or _ . : - ; not ${JSON.stringify(root)}.`);
    if (this.activeRun !== undefined) throw this.createFault('SESSION_BUSY', `it already runs ${this.activeRun.root}`);
    const attempt = new RunAttempt(options.timers ?? 'hold');
    this.activeRun = { root, attempt: attempt };
    this.runDeps.lateResults = this.inFlight.size > 0 ? new Map() : undefined;
    try {
      const known = this.sessionState.roots.get(root);
      const seen = known === undefined ? undefined : await this.loadRecordedRoot(root, known);
      attempt.throwIfFailed();
      // guard: recorded-cancel-applied
      if (known?.cancelReason !== undefined) attempt.lifetime.end(cancellationError(root, known.cancelReason), false);
      const run = new RunContext(this.runDeps, attempt);
      const scope = new KernelScope(run, root, attempt.lifetime, seen, 0);
      const outcome = await attempt.outcome(runCall(run, scope, loop, input), (error) =>
        this.recordFailure(root, error),
      );
      // guard: result-durable-before-reported
      await this.writer.waitForDurability();
      if (this.snapshotCache.isDue) await this.snapshotCache.save();
      return outcome as RunOutcome<O>;
    } finally {
      attempt.finish();
      this.activeRun = undefined;
      this.runDeps.lateResults = undefined;
    }
  }

  /** Lets an outside fact in. Resolves once it is durable; false if this delivery was already taken. */
  async signal({ id, name, value }: Signal): Promise<boolean> {
    this.assertUsable();
    if (typeof id !== 'string' || id === '' || typeof name !== 'string')
      throw new TypeError('A signal has an id and a name; both are text, and the id is not empty.');
    const known = this.sessionState.deliveredSignals.get(id);
    // guard: signal-delivered-once
    if (known !== undefined) return this.checkRedelivery(known, { id, name, value });
    const entry = this.writer.propose({ seq: 0, at: 0, type: 'signal.received', key: id, name, value: value as Json });
    this.sessionState.apply(entry);
    const [waiter] = this.runDeps.waiters?.get(`signal ${name}`) ?? [];
    waiter?.(entry);
    await this.writer.waitForDurability();
    return true;
  }

  /** Says what becomes of a `once` effect in doubt: perform it again, take this as its result, or fail it. */
  async resolveEffect(
    key: string,
    decision: Resolution,
    by: string,
    more: { value?: unknown; reason?: string } = {},
  ): Promise<void> {
    this.assertUsable();
    if (!RESOLUTIONS.has(decision))
      throw new TypeError(`A decision is retry, supply or fail; not ${String(decision)}.`);
    // guard: decision-needs-a-doubt
    if (!this.effectsInDoubt.some((doubt) => doubt.key === key)) {
      throw new LoopError('ANSWER_REFUSED', `Nothing is in doubt under ${key} in session "${this.name}".`, { key });
    }
    const redo = `${key}~${(this.sessionState.intents.get(key)?.retryCount ?? 0) + 1}`;
    const value = more.value as Json;
    const { reason } = more;
    const entry: NewEntry = {
      seq: 0,
      at: 0,
      type: 'effect.resolved',
      key: redo,
      resolution: decision,
      by,
      reason,
      value,
    };
    const decided = this.writer.propose(entry);
    this.sessionState.apply(decided);
    for (const waiter of this.runDeps.waiters?.get(`decision ${redo}`) ?? []) waiter(decided);
    await this.writer.waitForDurability();
  }

  /** Writes a fact that no body made. Its key is told apart from every step's, so no replay takes it for one. */
  async recordFact(type: string, id: string, value: Json): Promise<void> {
    this.assertUsable();
    assertNotReserved(type, id);
    this.writer.propose({ seq: 0, at: 0, type, key: `#${id}`, value });
    await this.writer.waitForDurability();
  }

  /** Asks a root to stop: no new step starts once this is written. False if it was asked before or has ended. */
  async cancel(root: string, reason: string): Promise<boolean> {
    this.assertUsable();
    const known = this.sessionState.roots.get(root);
    if (known === undefined || known.lastSeq !== undefined || known.cancelReason !== undefined) return false;
    const why = String(reason);
    this.sessionState.apply(this.writer.propose({ seq: 0, at: 0, type: 'cancel.requested', key: root, reason: why }));
    if (this.activeRun?.root === root) this.activeRun.attempt.lifetime.end(cancellationError(root, why), false);
    await this.writer.waitForDurability();
    return true;
  }

  /** Ends the attempt, waits until effects in flight are recorded and all is durable; nothing is written afterwards. */
  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  /** How a run failed. The end of one whose body would not end, and was left where it was, is written here. */
  private recordFailure(root: string, failure: LoopError): RunOutcome {
    const error = failure.toErrorRecord();
    const known = this.sessionState.roots.get(root);
    if (known !== undefined && known.lastSeq === undefined) {
      this.sessionState.apply(this.writer.push({ seq: 0, at: 0, type: 'call.errored', key: root, error }));
    }
    return { status: 'error', error };
  }

  private async shutDown(): Promise<void> {
    this.activeRun?.attempt.fail(this.createFault('SESSION_CLOSED', 'it was closed'));
    // guard: effects-in-flight-awaited
    while (this.inFlight.size > 0 && this.writer.fault === undefined) await Promise.allSettled(this.inFlight.values());
    if (this.writer.fault === undefined) await this.writer.waitForDurability();
  }

  /**
   * What is recorded of a root; of one that ended, its two ends are enough. What is written while it is read is heard
   * of otherwise: results that land, decisions, signals and cancels are all kept in memory until they are needed.
   */
  private async loadRecordedRoot(root: string, { firstSeq, lastSeq }: RootCall): Promise<RecordedStep | undefined> {
    const opened = this.preloadedTree;
    this.preloadedTree = undefined;
    if (opened?.rootKey === root && opened.nextSeq === this.writer.nextSeq) return opened.recordedRoot;
    await this.writer.waitForDurability();
    const past = new ReplayTree(root);
    if (lastSeq !== undefined) for (const seq of [firstSeq, lastSeq]) past.add(await this.reader.entryAt(seq));
    else for await (const entries of this.reader.readFrom(firstSeq)) for (const entry of entries) past.add(entry);
    if (past.recordedRoot === undefined) throw this.reader.missingEntryFault(firstSeq);
    return past.recordedRoot;
  }

  private async load(next: number): Promise<void> {
    let past: ReplayTree | undefined;
    for await (const entries of this.reader.readFrom(await this.snapshotCache.restore(next, this.reader))) {
      for (const entry of entries) {
        this.sessionState.apply(entry);
        if (entry.type === 'call.started' && this.sessionState.roots.has(entry.key)) past = new ReplayTree(entry.key);
        past?.add(entry);
        const folding = this.applyToViews(entry);
        if (folding !== undefined) await folding;
      }
    }
    this.preloadedTree = past;
  }

  private applyToViews(entry: Entry): Promise<void> | undefined {
    if (this.viewStates.isEmpty) return undefined;
    if (entry.blob === undefined) return void this.viewStates.apply(entry);
    return this.reader.fetchValue(entry).then((value) => this.viewStates.apply({ ...entry, value }));
  }

  /** The same delivery again is no news; another content under its id is a conflict. */
  private async checkRedelivery(seq: number, { id, name, value }: Signal): Promise<false> {
    await this.writer.waitForDurability();
    const entry = await this.reader.entryAt(seq);
    const known = await this.reader.fetchValue(entry);
    if (entry.name === name && jsonEquals(known, copyAsJson(value, 'the signal'))) return false;
    throw new LoopError('SIGNAL_CONFLICT', `Signal "${id}" was received before, with other content.`, { id });
  }

  private assertUsable(): void {
    if (this.writer.fault !== undefined) throw this.writer.fault;
    if (this.closing !== undefined) throw this.createFault('SESSION_CLOSED', 'it was closed');
  }

  private createFault(code: 'SESSION_BUSY' | 'SESSION_CLOSED', what: string): Fault {
    return new Fault(code, `Session "${this.name}": ${what}.`, { session: this.name });
  }
}

function cancellationError(root: string, reason: string): LoopError {
  return new LoopError('CANCELLED', `The run ${root} was cancelled: ${reason}`, { reason });
}
