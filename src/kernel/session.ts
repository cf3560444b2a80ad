/**
 * Sessions: one journal and its only writer. Runs, signals, resolutions and cancellations become entries here. Opening
 * a session claims it, which makes every older writer stale. A root is a top-level call, identified by a key. Running a
 * root again, after a crash or a pause, replays its body from the journal; a body that now requests other steps fails
 * with REPLAY_MISMATCH. A root that has ended returns its recorded outcome.
 */

import { Fault, LoopError, withHiddenCause } from '../base/errors.js';
import { cancellationError } from '../base/step-errors.js';
import { JournalReader } from '../journal/journal-reader.js';
import { JournalWriter } from '../journal/journal-writer.js';
import { newResolvedEntry } from '../journal/refusal-entries.js';
import { type RecordedStep, ReplayTree } from '../journal/replay-tree.js';
import { assertNotReserved } from '../journal/reserved-entries.js';
import { assertRootKey } from '../journal/root-key.js';
import { assertSessionOptions, type SessionOptions } from '../journal/session-options.js';
import { type RootCall, SessionState } from '../journal/session-state.js';
import { newSignalEntry } from '../journal/signal-entries.js';
import { SnapshotCache } from '../journal/snapshot-cache.js';
import type { Claim } from '../journal/store.js';
import { type Invariant, type View, ViewStates } from '../journal/view.js';
import type { Loop } from '../protocol/body.js';
import type { Entry, Resolution } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Layer, ResolutionDetails, RunOptions, RunOutcome, RunStop, Signal } from '../protocol/session.js';
import { runCall } from './call.js';
import { Run, type RunDeps } from './run.js';
import { RunAttempt } from './run-attempt.js';
import { KernelScope } from './scope.js';

/**
 * One open session. Only one run is active at a time.
 *
 * @example
 * const session = await Session.open('ada', { store: memoryStore(), clock: systemClock, ids: systemIds });
 * const outcome = await session.run('t1', { name: 'greet', body: async (name: string) => `Hello ${name}` }, 'Ada');
 * await session.close();
 */
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
  /**
   * The recorded steps of the last root, read when the session was opened. The first run usually continues this root.
   */
  private preloadedTree: ReplayTree | undefined;
  private closing: Promise<void> | undefined;
  /** Called when the active run has ended. */
  private onRunEnd: (() => void) | undefined;

  private constructor(name: string, options: SessionOptions, claim: Claim, viewStates: ViewStates) {
    const { store, clock, ids, layers = [], upcasts = {}, maxDepth = 2000, replayOnly = false } = options;
    const { sessionState, inFlight } = this;
    const reader = new JournalReader(name, store, upcasts);
    const onFault = (fault: Fault): void => this.activeRun?.attempt.fail(fault);
    const writer = new JournalWriter({ session: name, store, clock, viewStates, upcasts, claim, onFault }, options);
    this.name = name;
    this.reader = reader;
    this.viewStates = viewStates;
    this.writer = writer;
    this.snapshotCache = new SnapshotCache({ session: name, store, upcasts, viewStates, sessionState, writer });
    // Every member is listed: object spread would cost more than the rest of this constructor.
    this.runDeps = {
      session: name,
      writer,
      sessionState,
      waiters: undefined,
      inFlight,
      lateResults: undefined,
      reader,
      clock,
      ids,
      layersOf: typeof layers === 'function' ? layers : (): readonly Layer[] => layers,
      admit: options.admit,
      maxDepth,
      replayOnly,
      context: options.context,
    };
  }

  /**
   * Claims a session and rebuilds its state and views from its snapshot and its entries. Creates a session that does
   * not exist yet.
   */
  static async open(name: string, options: SessionOptions): Promise<Session> {
    assertSessionOptions(options);
    const views = (options.views ?? []) as unknown as readonly View<unknown>[];
    const invariants = (options.invariants ?? []) as unknown as readonly Invariant<unknown>[];
    const viewStates = new ViewStates(views, invariants);
    const claim = await options.store.journal.claim(name);
    const session = new Session(name, options, claim, viewStates);
    if (claim.nextSeq > 0) await session.load(claim.nextSeq);
    else {
      const incarnationId = options.ids.id();
      const opened = session.writer.push({ seq: 0, at: 0, type: 'session.opened', key: 'session', incarnationId });
      session.sessionState.apply(opened);
    }
    return session;
  }

  /** Returns the current state of a view that the session was opened with. */
  state<S>(view: View<S>): S {
    return this.viewStates.stateOf(view);
  }

  /**
   * The effects in doubt that wait for a resolution: `once` effects that were started, have no recorded result and are
   * not in flight.
   */
  get effectsInDoubt(): readonly { readonly key: string; readonly name: string }[] {
    return this.sessionState.effectsInDoubt(this.inFlight);
  }

  /**
   * Runs a loop as the top-level call `root`. Continues that call if the journal has it; returns its recorded outcome
   * if it has ended. Throws a Fault if another run is active (SESSION_BUSY) or if the run cannot continue.
   */
  async run<I, O>(root: string, loop: Loop<I, O>, input: I, options: RunOptions = {}): Promise<RunOutcome<O>> {
    this.assertUsable();
    assertRootKey(root);
    if (this.activeRun !== undefined) throw this.createFault('SESSION_BUSY', `it already runs ${this.activeRun.root}`);
    const attempt = new RunAttempt(options.timers ?? 'hold', this.runDeps.clock);
    this.activeRun = { root, attempt };
    this.runDeps.lateResults = this.inFlight.size > 0 ? new Map() : undefined;
    try {
      const rootCall = this.sessionState.roots.get(root);
      // guard: started-turn-is-due
      if (rootCall?.lastSeq === undefined) this.writer.setRunning(root, rootCall === undefined);
      const recorded = rootCall === undefined ? undefined : await this.loadRecordedRoot(root, rootCall);
      attempt.throwIfFailed();
      const cancelReason = rootCall?.cancelReason;
      // guard: recorded-cancel-applied
      if (cancelReason !== undefined) attempt.lifetime.end(cancellationError(root, cancelReason), false);
      const scope = new KernelScope(new Run(this.runDeps, attempt, root), root, attempt.lifetime, recorded, 0);
      const toOutcome = (error: LoopError): RunOutcome => this.recordFailure(root, error);
      const outcome = await attempt.outcome(runCall(scope, loop, input), toOutcome);
      // guard: paused-turn-has-due-time
      if (outcome.status === 'paused') this.writer.setPaused(root, outcome.pending);
      else if (outcome.status === 'stopped') await this.recordStop(root, outcome.stop);
      if (options.seal !== undefined) {
        // guard: sealed-after-effects
        await this.waitForEffects();
        await options.seal(outcome);
      }
      // Only now, so that a process that ends before the receipt is stored leaves a turn that a worker seals.
      // guard: ended-turn-due-until-sealed
      if (outcome.status === 'ok' || outcome.status === 'error') this.writer.setDue(root, undefined);
      // guard: result-durable-before-reported
      await this.writer.waitForDurability();
      if (this.snapshotCache.isDue) await this.snapshotCache.save();
      return outcome as RunOutcome<O>;
    } finally {
      attempt.finish();
      this.activeRun = undefined;
      this.runDeps.lateResults = undefined;
      this.onRunEnd?.();
    }
  }

  /**
   * Delivers a signal, waits until it is durable and returns true. Returns false if a signal with this id and content
   * was received before. Throws SIGNAL_CONFLICT if its content was different, and TURN_ENDED if the root that it is
   * addressed to has ended. A root that has not started yet receives it later.
   */
  async signal(signal: Signal): Promise<boolean> {
    this.assertUsable();
    const { id, name, turn } = signal;
    const received = newSignalEntry(signal);
    const deliveredSeq = this.sessionState.deliveredSignals.get(id);
    // guard: signal-delivered-once
    if (deliveredSeq !== undefined) {
      await this.writer.waitForDurability();
      return this.reader.confirmRepeated(deliveredSeq, signal);
    }
    this.sessionState.assertNotEnded(turn);
    // guard: signal-makes-turns-due
    this.setDueNow(this.sessionState.openRoots(turn));
    const entry = this.writer.propose(received);
    this.sessionState.apply(entry);
    const [waiter] = this.runDeps.waiters?.get(`signal ${name}`) ?? [];
    // guard: signal-wakes-its-root-only
    if (turn === undefined || turn === this.activeRun?.root) waiter?.(entry);
    await this.writer.waitForDurability();
    return true;
  }

  /**
   * Records the resolution of an effect in doubt: `retry` it, `supply` its result as `details.value`, or `fail` it. The
   * next or active run of the effect's root applies the resolution. `by` names the person who decided. Throws
   * ANSWER_REFUSED if the effect is not in doubt.
   */
  async resolveEffect(key: string, resolution: Resolution, by: string, details: ResolutionDetails = {}): Promise<void> {
    this.assertUsable();
    // guard: resolution-needs-effect-in-doubt
    if (!this.effectsInDoubt.some((effect) => effect.key === key))
      throw new LoopError('ANSWER_REFUSED', `Nothing is in doubt under ${key} in session "${this.name}".`, { key });
    const retryKey = `${key}~${(this.sessionState.intents.get(key)?.retryCount ?? 0) + 1}`;
    const entry = newResolvedEntry(retryKey, resolution, by, details);
    this.setDueNow([key.slice(0, key.indexOf('/'))]);
    const resolved = this.writer.propose(entry);
    this.sessionState.apply(resolved);
    for (const waiter of this.runDeps.waiters?.get(`resolution ${retryKey}`) ?? []) waiter(resolved);
    await this.writer.waitForDurability();
  }

  /**
   * Appends an entry that no body wrote, under the key `#<id>`, and waits until it is durable. The prefix separates its
   * key from the keys of steps. Throws VALUE_INVALID for a type that is reserved for the kernel.
   */
  async recordFact(type: string, id: string, value: Json): Promise<void> {
    this.addFact(type, id, value);
    await this.writer.waitForDurability();
  }

  /**
   * Appends an entry like `recordFact`, without waiting: it becomes durable with the entries after it. With its `size` in
   * bytes, the value is not copied: it must be plain JSON that does not change afterwards.
   */
  addFact(type: string, id: string, value: Json, size?: number): void {
    this.assertUsable();
    assertNotReserved(type, id);
    this.writer.propose({ seq: 0, at: 0, type, key: `#${id}`, value }, size);
  }

  /**
   * Reopens a failed root, so that the next run continues it: the recorded ends of the steps at `keys` no longer apply.
   * `keys` are the failed steps, the root first. Throws RETRY_REFUSED if the root has not ended, was cancelled or runs.
   */
  async reopen(root: string, keys: readonly string[]): Promise<void> {
    this.assertUsable();
    const rootCall = this.sessionState.roots.get(root);
    // guard: only-ended-root-reopened
    if (rootCall?.lastSeq === undefined || rootCall.cancelReason !== undefined || this.activeRun !== undefined)
      throw new LoopError('RETRY_REFUSED', `${root} has not failed, or a run of its session is active.`, { root });
    const value = { keys: [...keys] };
    this.setDueNow([root]);
    this.sessionState.apply(this.writer.propose({ seq: 0, at: 0, type: 'call.reopened', key: root, value }));
    await this.writer.waitForDurability();
  }

  /**
   * Stops the active run of a root, which no body can notice: it stays open, and a later run continues it. Effects in
   * flight end and are recorded. Returns false if the root does not run, or has ended.
   */
  stop(root: string, stop: RunStop): boolean {
    if (this.activeRun?.root !== root || this.activeRun.attempt.isOver) return false;
    // guard: ended-root-not-stopped
    if (this.sessionState.roots.get(root)?.lastSeq !== undefined) return false;
    this.activeRun.attempt.stop(stop);
    return true;
  }

  /** Waits until everything that was written so far is durable. */
  flush(): Promise<void> {
    return this.writer.waitForDurability();
  }

  /** Cancels a root: no further step starts. Returns false if it has not started, was cancelled before or has ended. */
  async cancel(root: string, reason: string): Promise<boolean> {
    this.assertUsable();
    const rootCall = this.sessionState.roots.get(root);
    if (rootCall === undefined || rootCall.lastSeq !== undefined || rootCall.cancelReason !== undefined) return false;
    const text = String(reason);
    this.setDueNow([root]);
    this.sessionState.apply(this.writer.propose({ seq: 0, at: 0, type: 'cancel.requested', key: root, reason: text }));
    if (this.activeRun?.root === root) this.activeRun.attempt.lifetime.end(cancellationError(root, text), false);
    await this.writer.waitForDurability();
    return true;
  }

  /**
   * Interrupts the active run, unless its root has ended, waits for the effects in flight, records their results, and waits until everything is
   * durable. After a failure of the writer it does not wait.
   */
  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  /** Records that a root was stopped, once the effects in flight have ended. No process has to continue it. */
  private async recordStop(root: string, { reason, message, data = null }: RunStop): Promise<void> {
    // guard: stopped-root-awaits-effects
    await this.waitForEffects();
    this.writer.setDue(root, undefined);
    this.writer.push({ seq: 0, at: 0, type: 'call.stopped', key: root, reason, value: { message, data } });
  }

  private async waitForEffects(): Promise<void> {
    while (this.inFlight.size > 0 && this.writer.fault === undefined) await Promise.allSettled(this.inFlight.values());
  }

  /** Converts an error to an outcome. Records the end of a root whose body is suspended and cannot record it itself. */
  private recordFailure(root: string, failure: LoopError): RunOutcome {
    const error = withHiddenCause(failure.toErrorRecord(), failure.cause);
    if (this.sessionState.openRoots(root).length > 0)
      this.sessionState.apply(this.writer.push({ seq: 0, at: 0, type: 'call.errored', key: root, error }));
    return { status: 'error', error };
  }

  /** Makes roots due at once, except the one that runs: it continues by itself. */
  private setDueNow(roots: readonly string[]): void {
    const running = this.activeRun?.attempt.isOver === false ? this.activeRun.root : undefined;
    for (const root of roots) if (root !== running) this.writer.setDue(root, 0);
  }

  private async shutDown(): Promise<void> {
    if (this.activeRun !== undefined) {
      const root = this.sessionState.roots.get(this.activeRun.root);
      // A root that has ended is still sealed and reported.
      if (/* guard: ended-run-not-interrupted */ root?.lastSeq === undefined)
        this.activeRun.attempt.fail(this.createFault('SESSION_CLOSED', 'it was closed'));
      await new Promise<void>((resolve) => {
        this.onRunEnd = resolve;
      });
    }
    // guard: effects-in-flight-awaited
    await this.waitForEffects();
    if (this.writer.fault === undefined) await this.writer.waitForDurability();
  }

  /**
   * Returns the recorded steps of a root. Entries that are written during the read may be missing from the result. That
   * is harmless, because late results, resolutions, signals and cancellations are also kept in memory.
   */
  private async loadRecordedRoot(root: string, rootCall: RootCall): Promise<RecordedStep | undefined> {
    const preloaded = this.preloadedTree;
    this.preloadedTree = undefined;
    if (preloaded?.rootKey === root && preloaded.nextSeq === this.writer.nextSeq) return preloaded.recordedRoot;
    await this.writer.waitForDurability();
    return this.reader.readRoot(root, rootCall);
  }

  private async load(nextSeq: number): Promise<void> {
    let tree: ReplayTree | undefined;
    for await (const entries of this.reader.readFrom(await this.snapshotCache.restore(nextSeq, this.reader))) {
      for (const entry of entries) {
        this.sessionState.apply(entry);
        if (entry.type === 'call.started' && this.sessionState.roots.has(entry.key)) tree = new ReplayTree(entry.key);
        tree?.add(entry);
        const folding = this.applyToViews(entry);
        if (folding !== undefined) await folding;
      }
    }
    this.preloadedTree = tree;
  }

  private applyToViews(entry: Entry): Promise<void> | undefined {
    if (this.viewStates.isEmpty) return undefined;
    if (entry.blob === undefined) return void this.viewStates.apply(entry);
    return this.reader.fetchValue(entry).then((value) => this.viewStates.apply({ ...entry, value }));
  }

  private assertUsable(): void {
    if (this.writer.fault !== undefined) throw this.writer.fault;
    // The run that ends adds its receipt.
    if (this.closing !== undefined && this.activeRun === undefined)
      throw this.createFault('SESSION_CLOSED', 'it was closed');
  }

  private createFault(code: 'SESSION_BUSY' | 'SESSION_CLOSED', problem: string): Fault {
    return new Fault(code, `Session "${this.name}": ${problem}.`, { session: this.name });
  }
}
