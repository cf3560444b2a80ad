/**
 * The host: runs turns of registered loops on a store, finds them again and reports their state. A turn is a root call in a
 * session; its id begins with the id of the session, so it is found without an index. Turns of one session run one after
 * another, those of different sessions concurrently. Running is done by turn-runner.ts, live subscriptions by
 * subscriptions.ts, and what is done to turns from outside (cancel, answer, message, resolve) by session-actions.ts.
 */
import { LoopError } from '../base/errors.js';
import { linkLoop } from '../loops/link.js';
import type { RegisteredLoop, Registry } from '../loops/registry.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Json } from '../protocol/json.js';
import type { TurnResult, TurnStatus } from '../protocol/trace.js';
import { Archive, type StoredTurn } from './archive.js';
import type { HostOptions, TurnOptions } from './host-options.js';
import { PeerHosts } from './peers.js';
import { type CodeChange, codeChangesSince, type PinnedLoop, pin, unpin } from './pin.js';
import { RemoteTurn, servePeerRequests } from './remote-turn.js';
import type { ReplayReport } from './replay.js';
import { type Resolution, SessionActions } from './session-actions.js';
import type { SessionSubscriber } from './session-feed.js';
import { SessionQueues } from './session-queues.js';
import { Subscriptions } from './subscriptions.js';
import {
  assertTurnRequest,
  attachConflict,
  loopNotFoundError,
  recordedIdentity,
  type SessionMessage,
  type TurnRequest,
  turnIdentityOf,
} from './turn-request.js';
import { faultWithTurn, sessionIdOf, type TurnIdentity, turnResultOf } from './turn-result.js';
import { TurnRunner } from './turn-runner.js';

export type { HostOptions, TurnOptions } from './host-options.js';
export type { Resolution } from './session-actions.js';
export type { SessionMessage, TurnRequest } from './turn-request.js';

/** A turn that has not ended, and the code it needs that is not what it was. */
export interface InFlightTurn {
  readonly turn: TurnStatus;
  readonly changed: readonly (CodeChange & { readonly breaks: boolean; readonly why?: string })[];
}

export class Host {
  readonly registry: Registry;
  /** What the store holds of turns. */
  readonly archive: Archive;
  private readonly options: HostOptions;
  private readonly turns: TurnRunner;
  private readonly subscriptions: Subscriptions;
  private readonly sessionQueues: SessionQueues;
  private readonly peers: PeerHosts;
  private readonly actions: SessionActions;

  constructor(options: HostOptions) {
    const { store, registry, clock, ids } = options;
    this.options = options;
    this.registry = registry;
    const turns = new TurnRunner(options, () => this.subscriptions);
    this.turns = turns;
    this.archive = new Archive(store, {
      has: (turnId) => turns.get(turnId) !== undefined,
      unstoredEntries: async (sessionId, from) =>
        turns.runningIn(sessionId) === undefined
          ? this.peers.unstoredEntries(sessionId, from)
          : turns.unstoredEntries(sessionId, from),
    });
    this.subscriptions = new Subscriptions({
      isRunning: (sessionId) => turns.runningIn(sessionId) !== undefined,
      readEntries: async (sessionId) => turns.runningIn(sessionId)?.entries ?? (await this.archive.entries(sessionId)),
    });
    this.peers = new PeerHosts(store.leases, ids, this.servePeers());
    this.sessionQueues = new SessionQueues(store.leases, (request, send) => this.peers.answer(request, send));
    this.actions = new SessionActions({
      archive: this.archive,
      sessionQueues: this.sessionQueues,
      peers: this.peers,
      clock,
      ids,
      openSession: (sessionId) => turns.openSession(sessionId),
      runningTurn: (turnId) => turns.get(turnId),
      runningTurnIn: (sessionId) => turns.runningIn(sessionId),
      resume: (turnId) => this.resume(turnId),
    });
  }

  private servePeers(): ReturnType<typeof servePeerRequests> {
    return servePeerRequests({
      actions: () => this.actions,
      runningTurn: (turnId) => this.turns.get(turnId),
      unstoredEntries: (sessionId, from) => this.turns.unstoredEntries(sessionId, from),
      whenIdle: (sessionId) => this.sessionQueues.whenIdle(sessionId),
      subscribe: (sessionId, subscriber) => this.subscriptions.subscribe(sessionId, subscriber),
    });
  }

  /** Runs a turn to its end or its pause. Only a failure of the machinery rejects; anything else is a result. */
  async run<I, O>(request: TurnRequest<I, O>, options: TurnOptions = {}): Promise<TurnResult<O>> {
    assertTurnRequest(request);
    const registered = this.findLoop(request);
    const own = turnIdentityOf(request, registered, this.options.ids.id());
    if (registered === undefined) return this.refusedResult(own, loopNotFoundError(request)) as TurnResult<O>;
    const identity = request.key === undefined ? own : await recordedIdentity(this.archive, request, own);
    const fresh = async (rest: TurnOptions): Promise<TurnResult> => {
      const pinned = pin(linkLoop(this.registry, registered));
      // A session that is created here has no earlier entries.
      const earlierEntries =
        request.sessionId !== undefined && this.turns.needsEarlierEntries(pinned)
          ? await this.archive.entries(identity.sessionId)
          : [];
      return await this.turns.run(identity, { pinned, request, earlierEntries }, rest);
    };
    // A new session is queued too: a caller that learns of the turn may resume it or answer its approvals while it runs.
    if (request.key === undefined) return (await this.runInSession(identity, options, fresh)) as TurnResult<O>;
    const attach = async (rest: TurnOptions): Promise<TurnResult> => {
      const known = await this.archive.find(identity.turnId);
      if (known === undefined) return fresh(rest);
      try {
        const other = attachConflict(known, request, identity);
        return other === undefined ? await this.continueTurn(known, rest) : this.refusedResult(identity, other);
      } catch (thrown) {
        if (thrown instanceof LoopError) return this.refusedResult(identity, thrown);
        throw thrown;
      }
    };
    return (await this.runInSession(identity, options, attach).catch((thrown) => {
      // Another process may have begun it under the same key.
      throw faultWithTurn(thrown, identity.turnId, 'perhaps');
    })) as TurnResult<O>;
  }

  /** Goes on with a turn, or returns how it ended. */
  async resume(turnId: string, options: TurnOptions = {}): Promise<TurnResult> {
    const work = async (rest: TurnOptions): Promise<TurnResult> =>
      this.continueTurn(await this.archive.get(turnId), rest);
    return this.runInSession({ sessionId: sessionIdOf(turnId), turnId }, options, work).catch((thrown) => {
      throw faultWithTurn(thrown, turnId);
    });
  }

  /** Asks a turn to stop, and drives it to its end. False if it had ended. */
  cancel(turnId: string, reason: string): Promise<boolean> {
    return this.actions.cancel(turnId, reason);
  }

  /** Answers an approval. ANSWER_REFUSED says why it was not taken; that, too, is journaled. */
  answer(given: ApprovalAnswer): Promise<Approval> {
    return this.actions.answer(given);
  }

  /** Says something to the turn of a session that runs, or waits. */
  sendMessage(message: SessionMessage): Promise<void> {
    return this.actions.sendMessage(message);
  }

  /** Says what becomes of an effect in doubt; `value` is what the tool gave back, for one that is supplied. */
  resolveEffect(key: string, decision: Resolution, by: string, value?: Json): Promise<void> {
    return this.actions.resolveEffect(key, decision, by, value);
  }

  /**
   * Follows a session: the envelopes after `afterEnvelopeId`, then everything that happens, and what is being streamed right
   * now. Returns how to stop.
   */
  follow(sessionId: string, subscriber: SessionSubscriber, afterEnvelopeId?: string): Promise<() => void> {
    return this.subscriptions.follow(sessionId, subscriber, afterEnvelopeId);
  }

  /** Runs the bodies of a turn over its entries, performing nothing: with the definitions of then, or those of now. */
  async replay(turnId: string, against: 'then' | 'now' = 'then'): Promise<ReplayReport> {
    const known = await this.archive.get(turnId);
    const { loopId, loopVersion } = known.identity;
    const current = against === 'now' ? this.registry.find(loopId, loopVersion) : undefined;
    const pinned = current === undefined ? await this.pinnedLoopOf(known) : pin(linkLoop(this.registry, current));
    return this.turns.replay(known, pinned);
  }

  /** Turns that have not ended and whose code is not what it was: which of them cannot go on. */
  async inFlightTurns(): Promise<readonly InFlightTurn[]> {
    const open = (await this.archive.turns()).filter(({ endedAt }) => endedAt === undefined);
    return Promise.all(open.map((turn) => this.changesOf(turn)));
  }

  private async changesOf(turn: TurnStatus): Promise<InFlightTurn> {
    const known = await this.archive.get(turn.turnId);
    const text = await this.archive.pinnedText(known);
    const changed = text === undefined ? [] : codeChangesSince(text, this.registry);
    const judged = changed.map(async (change) => {
      if (change.now === 'missing') return { ...change, breaks: true, why: 'it is not registered any more' };
      const { matches, difference } = await this.replay(turn.turnId, 'now');
      return matches ? { ...change, breaks: false } : { ...change, breaks: true, why: difference ?? '' };
    });
    return { turn, changed: await Promise.all(judged) };
  }

  private findLoop({ loop, version }: TurnRequest): RegisteredLoop | undefined {
    return typeof loop === 'string' ? this.registry.find(loop, version) : this.registry.add(loop);
  }

  /** Drives a turn, when nothing else is at its session. While another process runs it, its events come from there. */
  private runInSession(
    { sessionId, turnId }: Pick<TurnIdentity, 'sessionId' | 'turnId'>,
    options: TurnOptions,
    work: (options: TurnOptions) => Promise<TurnResult>,
  ): Promise<TurnResult> {
    options.onTurn?.(turnId);
    const followed = new RemoteTurn(options);
    return this.sessionQueues.run({
      sessionId,
      turnId,
      perform: () => work(followed.remainingOptions),
      whileHeldElsewhere: () =>
        this.peers.followTurn(followed.followRequest(sessionId, turnId), (piece) => followed.receive(piece)),
    });
  }

  private async continueTurn(known: StoredTurn, options: TurnOptions): Promise<TurnResult> {
    const { identity, turn, entries: earlierEntries } = known;
    const pinned = await this.pinnedLoopOf(known);
    const request = { input: turn.startedEntry.value };
    return this.turns.run(identity, { pinned, request, earlierEntries }, options);
  }

  private refusedResult(identity: TurnIdentity, error: LoopError): TurnResult {
    return turnResultOf(identity, { status: 'error', error: error.toErrorRecord() }, [], this.options.clock.now());
  }

  /** What the turn was begun with; without a pin, what is registered under its name. */
  private async pinnedLoopOf(known: StoredTurn): Promise<PinnedLoop> {
    const text = await this.archive.pinnedText(known);
    const { implementations = new Map(), trusts = () => false } = this.options;
    if (text !== undefined) return unpin(text, { registry: this.registry, implementations, trusts });
    const { loopId, loopVersion } = known.identity;
    const registered = this.registry.find(loopId, loopVersion);
    if (registered !== undefined) return pin(linkLoop(this.registry, registered));
    throw loopNotFoundError({ loop: loopId, version: loopVersion });
  }
}
