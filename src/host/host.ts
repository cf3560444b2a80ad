/**
 * The host: runs turns of registered loops on a store and reports their state. A turn is a root call in a session. Its
 * id begins with the session id, so no index is needed to find it. Turns of one session run one after another, others
 * concurrently. turn-kernel/ runs one turn, and session-actions.ts acts on turns from outside (cancel, answer, signal, …).
 */
import type { Registry } from '../loops/registry.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Json } from '../protocol/json.js';
import type { TurnResult } from '../protocol/trace.js';
import type { SealedReceipt } from '../views/receipt/sealed-receipts.js';
import { Archive } from './archive.js';
import { type FollowedEntries, followEntries } from './follow-entries.js';
import { type ForkedTurn, type ForkOptions, forkTurn } from './fork-turn.js';
import { assertBuild, type HostOptions, type TurnOptions } from './host-options.js';
import { assertNotHosted, createHostedLoops, hostedForkError, hostedRetryError } from './hosted/hosted-host.js';
import type { HostedLoops } from './hosted/hosted-loops.js';
import { hostedLoopOf, leasedSessionOf } from './hosted/hosted-stream.js';
import { PeerHosts } from './peers.js';
import { type InFlightTurn, PinnedTurns } from './pinned-turns.js';
import { lastWrittenAt } from './read-session.js';
import { rebuildDueTurns } from './rebuild-due-turns.js';
import { ReceiptArchive } from './receipts/receipt-archive.js';
import { performPeerRequest } from './remote-turn.js';
import type { ReplayReport } from './replay.js';
import { type Resolution, SessionActions } from './session-actions.js';
import type { SessionSubscriber } from './session-feed.js';
import { SessionQueues } from './session-queues.js';
import type { SignalRequest } from './signal-request.js';
import { Subscriptions } from './subscriptions.js';
import { TurnKernel } from './turn-kernel/turn-kernel.js';
import type { SessionMessage, TurnRequest } from './turn-request.js';
import { sessionIdOf } from './turn-result.js';
import { TurnRunner } from './turn-runner.js';
import { TurnWaiter } from './turn-waiter.js';
import { type HostedLoopListener, Worker, type WorkOptions } from './worker.js';

export type { HostOptions, TurnOptions } from './host-options.js';
export type { InFlightTurn } from './pinned-turns.js';
export type { Resolution } from './session-actions.js';
export type { SignalRequest } from './signal-request.js';
export type { SessionMessage, TurnRequest } from './turn-request.js';

/** A worker holds a turn whose next timer fires within this many ms. `Host.close` waits this many ms for effects. */
const [WORKER_HOLD_MS, DEFAULT_CLOSE_MS] = [1000, 10_000];

/**
 * Runs turns of loops on a store, continues them after a restart, and accepts answers, messages and cancellations.
 *
 * @example
 * ```ts
 * const host = new Host({ store: memoryStore(), clock: systemClock, ids: systemIds, registry: new Registry() });
 * const greet = defineLoop({
 *   id: 'greet',
 *   input: z.object({ name: z.string() }),
 *   output: z.object({ text: z.string() }),
 *   body: async ({ name }) => ({ text: `Hello ${name}` }),
 * });
 * const result = await host.run({ loop: greet, input: { name: 'Ada' } });
 * if (result.status === 'ok') console.log(result.output); // { text: 'Hello Ada' }
 * ```
 */
export class Host {
  /** The loops that this host can run. */
  readonly registry: Registry;
  /** Reads turns, traces, approvals and events, of running turns too. */
  readonly archive: Archive;
  private readonly options: HostOptions;
  private readonly turns: TurnRunner;
  private readonly subscriptions: Subscriptions;
  private readonly sessionQueues: SessionQueues;
  private readonly peers: PeerHosts;
  private readonly pinned: PinnedTurns;
  private readonly kernel: TurnKernel;
  private createdActions: SessionActions | undefined;
  private createdReceipts: ReceiptArchive | undefined;
  private createdWaiter: TurnWaiter | undefined;
  private createdHosted: HostedLoops | undefined;
  private workers: Set<Worker> | undefined;

  constructor(options: HostOptions) {
    const { store, registry, clock, ids } = options;
    assertBuild(options.build);
    this.options = options;
    this.registry = registry;
    const turns = new TurnRunner(options, () => this.subscriptions);
    this.turns = turns;
    this.archive = new Archive(
      store,
      {
        list: () => turns.list(),
        unstoredEntries: async (sessionId, from) =>
          turns.runningIn(sessionId) === undefined
            ? this.peers.unstoredEntries(sessionId, from)
            : turns.unstoredEntries(sessionId, from),
      },
      () => clock.now(),
    );
    this.subscriptions = new Subscriptions({
      isRunning: (sessionId) => turns.runningIn(sessionId) !== undefined,
      readEntries: async (sessionId) => {
        const entries = turns.runningIn(sessionId)?.entries;
        // A turn without agents has only its own entries, not those of earlier turns of its session.
        return entries?.[0]?.seq === 0 ? entries : this.archive.entries(sessionId);
      },
    });
    this.peers = new PeerHosts(store.leases, ids, (request, send) => {
      const { actions, subscriptions, sessionQueues } = this;
      return performPeerRequest({ actions, turns, sessionQueues, subscriptions }, request, send);
    });
    this.sessionQueues = new SessionQueues(
      store.leases,
      () => turns.closing,
      (request, send) => this.peers.answer(request, send),
    );
    this.pinned = new PinnedTurns(options, this.archive, turns);
    const { archive, pinned, peers, sessionQueues } = this;
    this.kernel = new TurnKernel({ options, archive, turns, pinned, peers, sessionQueues });
  }

  /** Waits for the results of turns that other processes run. */
  get waiter(): TurnWaiter {
    const { clock } = this.options;
    this.createdWaiter ??= new TurnWaiter(this.archive, this.peers, clock, () => this.turns.closing);
    return this.createdWaiter;
  }

  /** Loops whose turns are run one after another, only while a stop policy allows it. */
  get hosted(): HostedLoops {
    const { options, archive, kernel, sessionQueues, peers, turns, actions } = this;
    this.createdHosted ??= createHostedLoops({ options, archive, kernel, sessionQueues, peers, turns, actions });
    return this.createdHosted;
  }

  /** The receipts of the store; undefined if the host has no keys for them. */
  get receipts(): ReceiptArchive | undefined {
    const { archive, turns, options } = this;
    const { receiptKeys: keys, logWitness: witness } = options;
    if (keys === undefined || turns.sealing === undefined) return undefined;
    const close = (sessionId: string): Promise<SealedReceipt> => this.actions.closeSession(sessionId);
    this.createdReceipts ??= new ReceiptArchive({ archive, keys, witness, sealing: turns.sealing, close });
    return this.createdReceipts;
  }

  /** Acts on turns from outside. */
  private get actions(): SessionActions {
    const { archive, sessionQueues, peers, turns } = this;
    const { clock, ids } = this.options;
    const resume = (turnId: string): Promise<TurnResult> => this.kernel.resumeTurn(turnId);
    this.createdActions ??= new SessionActions({ archive, sessionQueues, peers, clock, ids, turns, resume });
    return this.createdActions;
  }

  /**
   * Runs a turn until it ends or pauses. A failure of the loop, also an unknown loop, is a result with the status
   * `error`. With a `key`, a second call attaches to the turn of the first one; if its principal, loop or input
   * differs, the result is the error KEY_CONFLICT. The promise rejects with REQUEST_INVALID for a value that cannot be
   * used, a TypeError for an unknown option, DEFINITION_INVALID for a loop in code that conflicts with a registered
   * version or names a model that is not configured, and with a Fault if the runtime itself fails, for example if the store cannot be written.
   *
   * @example
   * ```ts
   * const result = await host.run({ loop: 'support', input: { prompt: 'My lamp broke.' }, key: 'case-7' });
   * if (result.status === 'paused') {
   *   for (const approval of await host.archive.approvals(result.sessionId))
   *     await host.answer({ id: approval.id, approved: true, by: 'ada' });
   *   await host.resume(result.turnId);
   * }
   * ```
   */
  async run<I, O>(request: TurnRequest<I, O>, options: TurnOptions = {}): Promise<TurnResult<O>> {
    assertNotHosted(request.sessionId);
    return (await this.kernel.runTurn(request as TurnRequest, options)) as TurnResult<O>;
  }

  /**
   * Continues a turn until it ends or pauses. Returns the recorded result if the turn has ended. Throws TURN_NOT_FOUND
   * if the store has no such turn, and another LoopError if its loop is no longer registered or its recorded
   * definitions may not run.
   */
  async resume(turnId: string, options: TurnOptions = {}): Promise<TurnResult> {
    if (hostedLoopOf(sessionIdOf(turnId)) !== undefined) return this.hosted.resumeTurn(turnId, options);
    return this.kernel.resumeTurn(turnId, options);
  }

  /**
   * Continues a failed turn where it failed, until it ends or pauses. What succeeded is kept; the steps that failed, and
   * caused the turn to fail, are performed again, also an effect with the safety `once`: its error is recorded, so it is
   * not in doubt. A turn can be retried several times. Throws RETRY_REFUSED if the turn has not failed, and otherwise
   * the errors of `resume`.
   */
  async retry(turnId: string, options: TurnOptions = {}): Promise<TurnResult> {
    if (hostedLoopOf(sessionIdOf(turnId)) !== undefined) throw hostedRetryError(turnId);
    return this.kernel.retryTurn(turnId, options);
  }

  /**
   * Copies the session of a turn up to the entry `at` into a new one, whose turn is due. Throws FORK_REFUSED, and
   * HOSTED_LOOP_CONFLICT for a turn of a hosted loop.
   */
  async fork(turnId: string, options: ForkOptions): Promise<ForkedTurn> {
    // guard: hosted-turn-not-forked
    if (hostedLoopOf(sessionIdOf(turnId)) !== undefined) throw hostedForkError(turnId);
    return forkTurn(this.options, turnId, options);
  }

  /**
   * Continues turns that are due, also those of other processes whose loops are registered here, until the host is
   * closed or `options.signal` is aborted. Any number of hosts may work on one store.
   */
  async work(options: WorkOptions = {}): Promise<void> {
    const { store, clock } = this.options;
    const worker = new Worker(
      {
        dueTurns: store.dueTurns,
        leases: store.leases,
        clock,
        rebuild: () => rebuildDueTurns(store),
        lastWrittenAt: (sessionId) => lastWrittenAt(store, sessionId),
        isBusy: (sessionId) => this.sessionQueues.isBusy(sessionId),
        leasedSession: leasedSessionOf,
        continueTurn: (turnId, sessionId, listener) => this.workOn(turnId, sessionId, listener),
      },
      options,
    );
    this.workers ??= new Set();
    this.workers.add(worker);
    await worker.run().finally(() => this.workers?.delete(worker));
  }

  /** Continues a turn, or does what is due of a hosted loop. Returns undefined without waiting if it is not free. */
  private workOn(turnId: string, sessionId: string, listener: HostedLoopListener): Promise<TurnResult | undefined> {
    const options: TurnOptions = { timers: WORKER_HOLD_MS };
    const loop = hostedLoopOf(sessionId);
    if (loop !== undefined) return this.hosted.driveIfFree(loop, options, listener);
    return this.sessionQueues.tryRun(sessionId, turnId, async () =>
      this.kernel.continueTurn(await this.archive.get(turnId), options),
    );
  }

  /**
   * Interrupts all turns of this host, each after its current effects, and accepts no further ones. The turns stay open:
   * a later `resume`, in any process, continues them. Waits at most `timeoutMs` for effects, and not for other processes.
   */
  async close({ timeoutMs = DEFAULT_CLOSE_MS }: { readonly timeoutMs?: number } = {}): Promise<void> {
    for (const worker of this.workers ?? []) worker.stop();
    const timeout = new AbortController();
    const isLate = this.options.clock.sleep(timeoutMs, timeout.signal).catch(() => undefined);
    await Promise.race([this.turns.close(), isLate]);
    timeout.abort();
  }

  /**
   * Cancels a turn. A running turn ends by itself afterwards; any other turn is resumed until it has ended. Returns
   * false if the turn had ended, or is running and was cancelled before. Throws TURN_NOT_FOUND if the store has no such
   * turn.
   */
  cancel(turnId: string, reason: string): Promise<boolean> {
    const cancel = (): Promise<boolean> => this.actions.cancel(turnId, reason);
    return hostedLoopOf(sessionIdOf(turnId)) === undefined ? cancel() : this.hosted.cancelTurn(turnId, cancel);
  }

  /**
   * Answers an approval and returns it. Call `resume` afterwards if the turn has paused; a running turn continues by
   * itself. Throws ANSWER_REFUSED with the reason if the answer is refused, and journals the refusal. Throws a
   * TypeError if the answer is malformed.
   */
  answer(answer: ApprovalAnswer): Promise<Approval> {
    return this.actions.answer(answer);
  }

  /**
   * Sends a message to the running, paused or interrupted turn of a session. Throws TURN_NOT_FOUND if there is none,
   * and a TypeError for an unknown mode.
   */
  async sendMessage(message: SessionMessage): Promise<void> {
    assertNotHosted(message.sessionId);
    return this.actions.sendMessage(message);
  }

  /**
   * Sends a signal to a turn, or to any turn of a session that waits for its name, and returns true; false if a signal
   * with this id was delivered before. It is kept until a turn waits for it. Call `resume` afterwards if the turn has
   * paused; a running turn, also one of another process, continues by itself. Throws TURN_NOT_FOUND for an unknown turn
   * or session, TURN_ENDED for a turn that has ended, SIGNAL_CONFLICT for a known id with another name or payload,
   * VALUE_INVALID if the payload is not JSON, INPUT_VALIDATION_FAILED if it does not fit the signal type, and a
   * TypeError for a malformed request or a name that is reserved for messages and approvals. Throws HOSTED_LOOP_CONFLICT
   * for the session of a hosted loop: it is sent to one of its turns, which seals it, or to the loop.
   */
  async signal<P = unknown>(request: SignalRequest<P>): Promise<boolean> {
    assertNotHosted(request.sessionId);
    return this.actions.signal(request as SignalRequest);
  }

  /**
   * Resolves an effect in doubt: an effect that must happen once and was interrupted, so that it is unknown whether it
   * happened. `key` is the key of the effect, and `by` names the person who decides to retry it, to supply its result
   * as `value`, or to fail it. Call `resume` afterwards. Throws TURN_NOT_FOUND for an unknown turn, and ANSWER_REFUSED
   * if the effect is not in doubt.
   */
  resolveEffect(key: string, resolution: Resolution, by: string, value?: Json): Promise<void> {
    return this.actions.resolveEffect(key, resolution, by, value);
  }

  /**
   * Follows a session: delivers the envelopes (events with an id) after `afterEnvelopeId`, or all of them, then the
   * partial output that is being streamed, then everything that a turn of the session in this process publishes.
   * Returns a function that unsubscribes.
   */
  follow(sessionId: string, subscriber: SessionSubscriber, afterEnvelopeId?: string): Promise<() => void> {
    return this.subscriptions.follow(sessionId, subscriber, afterEnvelopeId);
  }

  /**
   * Follows the entries of a session in any process: yields the recorded ones, then new ones as they are written, and an
   * empty list while there are none, until the signal aborts.
   */
  followEntries(sessionId: string, signal: AbortSignal): AsyncGenerator<FollowedEntries> {
    return followEntries((from) => this.archive.tail(sessionId, from), this.options.clock, signal);
  }

  /**
   * Runs the bodies of a turn again with its recorded entries, without performing effects or writing entries, and
   * reports whether they take the same steps and return the same results. `then` uses the definitions that the turn
   * started with. `now` uses the registered ones, or those of `then` if the loop is not registered in the version of
   * the turn. Throws TURN_NOT_FOUND for an unknown turn.
   */
  replay(turnId: string, against: 'then' | 'now' = 'then'): Promise<ReplayReport> {
    return this.pinned.replay(turnId, against);
  }

  /** Returns all turns that have not ended, with the loops in code and the build that have changed since. */
  inFlightTurns(): Promise<readonly InFlightTurn[]> {
    return this.pinned.inFlightTurns();
  }
}
