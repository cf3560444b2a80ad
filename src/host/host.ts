/**
 * The host: runs turns of registered loops on a store, finds them again, and says how they stand. A turn is a root call
 * in a session; its id begins with the session's, so it is found without an index. Turns of one session run one after
 * another, those of different sessions side by side.
 */

import { LoopError } from '../base/errors.js';
import type { Clock, Ids } from '../journal/clock.js';
import type { Store } from '../journal/store.js';
import type { Layer } from '../kernel/layer.js';
import { Session } from '../kernel/session.js';
import { APPROVAL_REQUESTED } from '../layers/approval.js';
import { memoryCache } from '../layers/memory-cache.js';
import { policyLayers } from '../layers/policy-layers.js';
import { RateLimiter } from '../layers/rate-limit.js';
import { RestrictionFlag } from '../loops/agent/restrictions.js';
import { linkLoop } from '../loops/link.js';
import type { ModelProvider } from '../loops/model.js';
import type { RegisteredLoop, Registry } from '../loops/registry.js';
import { LoopServices } from '../loops/services.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { Json } from '../protocol/json.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../protocol/trace.js';
import { TURN_OPENED } from '../views/turns.js';
import { expirySignal } from './approval-answers.js';
import { HostApprovalGate, LoopInspector } from './approval-gate.js';
import { Archive, type StoredTurn } from './archive.js';
import { followSession } from './follow-session.js';
import { PeerHosts } from './peers.js';
import { type CodeChange, codeChangesSince, type PinnedLoop, pin, unpin } from './pin.js';
import { RemoteTurn, servePeerRequests } from './remote-turn.js';
import { type ReplayReport, replayTurn } from './replay.js';
import { principalsOf, RunningTurn } from './running-turn.js';
import { type Resolution, SessionActions } from './session-actions.js';
import { hasLiveCallbacks, SessionFeed, type SessionSubscriber, subscribeCallbacks } from './session-feed.js';
import { SessionQueues } from './session-queues.js';
import {
  assertTurnRequest,
  attachConflict,
  loopNotFoundError,
  recordedIdentity,
  type SessionMessage,
  type TurnRequest,
  turnIdentityOf,
} from './turn-request.js';
import { faultWithTurn, mismatchOutcome, sessionIdOf, type TurnIdentity, turnResultOf } from './turn-result.js';

export type { Resolution } from './session-actions.js';
export type { SessionMessage, TurnRequest } from './turn-request.js';

export interface HostOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly registry: Registry;
  readonly backends?: ReadonlyMap<string, ModelProvider>;
  readonly implementations?: ReadonlyMap<string, ToolImplementation>;
  /** Whether a recorded definition that claims this directory may run code; none unless told. */
  readonly trusts?: (directory: string | undefined) => boolean;
  readonly maxDepth?: number;
  /** How long an approval may wait, in milliseconds; thirty days unless told. */
  readonly approvalMs?: number;
}

export interface TurnOptions {
  /** Receives the id of the turn before anything of it is written. */
  readonly onTurn?: (turnId: string) => void;
  /** Hears of each event of the trace when it happens. */
  readonly onEvent?: (event: TraceEvent) => void;
  /** Hears of each envelope of the session when it arises, or changes. */
  readonly onEnvelope?: (envelope: EventEnvelope) => void;
  /** Hears of pieces of messages and of tools' output while they come. */
  readonly onDelta?: (delta: LiveDelta) => void;
  /** The protocol's handlers, called one after another; all have been when the result is returned. */
  readonly stream?: StreamHandlers;
}

/** A turn that has not ended, and the code it needs that is not what it was. */
export interface InFlightTurn {
  readonly turn: TurnStatus;
  readonly changed: readonly (CodeChange & { readonly breaks: boolean; readonly why?: string })[];
}

const EMPTY_MAP: ReadonlyMap<string, never> = new Map<string, never>();
const CACHE_LIMITS = { entries: 10_000, bytes: 64 * 1024 * 1024 };
const DEFAULT_MAX_DEPTH = 2000;
const DEFAULT_APPROVAL_MS = 30 * 86_400_000;

export class Host {
  readonly registry: Registry;
  /** What the store holds of turns. */
  readonly archive: Archive;
  private readonly options: HostOptions;
  private readonly loopServices: LoopServices;
  private readonly loopInspector: LoopInspector;
  private readonly layersFor: (effect: Effect, key: string) => readonly Layer[];
  private readonly sessionQueues: SessionQueues;
  private readonly peers: PeerHosts;
  private readonly actions: SessionActions;
  private readonly runningTurns = new Map<string, RunningTurn>();
  /** What is seen of sessions in which something runs, or that somebody watches. */
  private readonly feeds = new Map<string, SessionFeed>();
  private readonly alert = new RestrictionFlag();

  constructor(options: HostOptions) {
    const { registry, clock, backends = EMPTY_MAP, implementations = EMPTY_MAP } = options;
    this.options = options;
    this.registry = registry;
    this.archive = new Archive(options.store, {
      has: (turnId) => this.runningTurns.has(turnId),
      unstoredEntries: async (sessionId, from) =>
        this.runningTurnIn(sessionId) === undefined
          ? this.peers.unstoredEntries(sessionId, from)
          : this.unstoredEntries(sessionId, from),
    });
    const { leases } = options.store;
    this.peers = new PeerHosts(
      leases,
      options.ids,
      servePeerRequests({
        actions: () => this.actions,
        runningTurn: (turnId) => this.runningTurns.get(turnId),
        unstoredEntries: (sessionId, from) => this.unstoredEntries(sessionId, from),
        whenIdle: (sessionId) => this.sessionQueues.whenIdle(sessionId),
        subscribe: (sessionId, watcher) => this.subscribe(sessionId, watcher),
      }),
    );
    this.sessionQueues = new SessionQueues(leases, (request, send) => this.peers.answer(request, send));
    this.actions = new SessionActions({
      archive: this.archive,
      sessionQueues: this.sessionQueues,
      peers: this.peers,
      clock,
      ids: options.ids,
      openSession: (sessionId) => this.openSession(sessionId, () => {}),
      runningTurn: (turnId) => this.runningTurns.get(turnId),
      runningTurnIn: (sessionId) => this.runningTurnIn(sessionId),
      resume: (turnId) => this.resume(turnId),
    });
    const turn = (turnId: string): RunningTurn | undefined => this.runningTurns.get(turnId);
    this.layersFor = this.createLayers(turn);
    this.loopInspector = new LoopInspector(implementations);
    this.loopServices = new LoopServices({
      providers: backends,
      implementations,
      turnContext: turn,
      clock,
      restrictionFlag: this.alert,
    });
  }

  private createLayers(
    turn: (turnId: string) => RunningTurn | undefined,
  ): (effect: Effect, key: string) => readonly Layer[] {
    const { clock, approvalMs = DEFAULT_APPROVAL_MS } = this.options;
    const gate = new HostApprovalGate({ runningTurn: turn, now: () => clock.now(), approvalMs, alert: this.alert });
    return policyLayers(() => ({ clock, cache: memoryCache(CACHE_LIMITS), rateLimiter: new RateLimiter() }), gate);
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
      // A session that is made up here has no past.
      const past =
        request.sessionId !== undefined && this.loopInspector.hasAgentsOrApprovals(pinned)
          ? await this.archive.entries(identity.sessionId)
          : [];
      return await this.runTurn(identity, pinned, request, past, rest);
    };
    // A session that was just made up has a lane too: whoever hears of the turn may resume or decide it while it runs.
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
   * Follows a session: what it holds after the envelope of this id, then what happens, and what is being said right now.
   * Returns how to stop.
   */
  async follow(sessionId: string, watcher: SessionSubscriber, after?: string): Promise<() => void> {
    const live = this.feedOf(sessionId);
    const entries = async (): Promise<readonly Entry[]> =>
      this.runningTurnIn(sessionId)?.entries ?? (await this.archive.entries(sessionId));
    const leave = await followSession(sessionId, live, watcher, { readEntries: entries, afterEnvelopeId: after });
    return () => {
      leave();
      this.dropUnusedFeed(sessionId, live);
    };
  }

  /** Runs a turn's bodies over its record, performing nothing; with the code and definitions of now if asked. */
  async replay(turnId: string, against: 'then' | 'now' = 'then'): Promise<ReplayReport> {
    const known = await this.archive.get(turnId);
    const { loopId, loopVersion, sessionId: session } = known.identity;
    const current = against === 'now' ? this.registry.find(loopId, loopVersion) : undefined;
    const { loop } = current === undefined ? await this.pinnedLoopOf(known) : pin(linkLoop(this.registry, current));
    const { clock, ids, maxDepth } = this.options;
    const input = (known.turn.startedEntry.value ?? null) as Json;
    const parts = { session, turn: turnId, loop, input, entries: known.entries, clock, ids, maxDepth };
    const attended = new RunningTurn({
      turnId,
      sessionId: session,
      earlierEntries: known.entries,
      feeds: new Map(),
      clock,
      alert: this.alert,
    });
    return replayTurn({
      ...parts,
      layers: this.createLayers(() => attended),
      context: this.loopServices.withTurnContext(attended),
    });
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

  private unstoredEntries(sessionId: string, from: number): readonly Entry[] {
    return this.runningTurnIn(sessionId)?.entries.filter(({ seq }) => seq >= from) ?? [];
  }

  private runningTurnIn(sessionId: string): RunningTurn | undefined {
    for (const turn of this.runningTurns.values()) if (turn.sessionId === sessionId) return turn;
    return undefined;
  }

  private feedOf(sessionId: string): SessionFeed {
    const known = this.feeds.get(sessionId) ?? new SessionFeed();
    this.feeds.set(sessionId, known);
    return known;
  }

  /** Watches a session from now on; what is being said is told as a whole. */
  private subscribe(sessionId: string, watcher: SessionSubscriber): () => void {
    const live = this.feedOf(sessionId);
    for (const delta of live.partialDeltas()) watcher.delta?.(delta);
    const leave = live.subscribe(watcher);
    return () => {
      live.flush();
      leave();
      this.dropUnusedFeed(sessionId, live);
    };
  }

  private dropUnusedFeed(sessionId: string, live: SessionFeed): void {
    if (!live.hasSubscribers && this.runningTurnIn(sessionId) === undefined) this.feeds.delete(sessionId);
  }

  private openSession(sessionId: string, heard: (entry: Entry) => void): Promise<Session> {
    const { store, clock, ids, maxDepth = DEFAULT_MAX_DEPTH } = this.options;
    return Session.open(sessionId, {
      store,
      clock,
      ids,
      layers: this.layersFor,
      context: this.loopServices,
      onEntry: heard,
      maxDepth,
    });
  }

  private async continueTurn(known: StoredTurn, options: TurnOptions): Promise<TurnResult> {
    const { identity, turn, entries } = known;
    return this.runTurn(identity, await this.pinnedLoopOf(known), { input: turn.startedEntry.value }, entries, options);
  }

  private async runTurn(
    identity: TurnIdentity,
    pinned: PinnedLoop,
    request: Pick<TurnRequest, 'input' | 'principal' | 'approvers'>,
    past: readonly Entry[],
    options: TurnOptions,
  ): Promise<TurnResult> {
    const { sessionId, turnId } = identity;
    const { store, clock } = this.options;
    const { loop, pinText } = pinned;
    const { feeds, alert } = this;
    const attended = new RunningTurn({
      sessionId,
      turnId,
      earlierEntries: past,
      feeds,
      clock,
      alert,
      onEvent: options.onEvent,
    });
    const session = await this.openSession(sessionId, (entry) => attended.applyEntry(entry));
    attended.session = session;
    const watching = hasLiveCallbacks(options)
      ? subscribeCallbacks(this.feedOf(sessionId), options, (past.at(-1)?.seq ?? -1) + 1)
      : undefined;
    this.runningTurns.set(turnId, attended);
    try {
      await store.blobs.put(sessionId, loop.definitionDigest ?? '', pinText);
      const principals = principalsOf(request);
      if (principals !== undefined) await session.recordFact(TURN_OPENED, turnId, principals);
      if (past.length > 0) await this.expireApprovals(attended, session);
      const outcome = await session.run(turnId, loop, request.input as Json);
      return turnResultOf(identity, outcome, attended.entries, clock.now());
    } catch (thrown) {
      return turnResultOf(identity, mismatchOutcome(thrown, turnId), attended.entries, clock.now());
    } finally {
      this.runningTurns.delete(turnId);
      await session.close();
      attended.close();
      const live = feeds.get(sessionId);
      live?.clearPartials();
      if (watching !== undefined) await watching.leave();
      if (live !== undefined) this.dropUnusedFeed(sessionId, live);
    }
  }

  /** Approvals that nobody answered in time are over before the turn goes on. */
  private async expireApprovals(attended: RunningTurn, session: Session): Promise<void> {
    if (!attended.entries.some(({ type }) => type === APPROVAL_REQUESTED)) return;
    const now = this.options.clock.now();
    for (const { id, expiresAt } of attended.agentState.approvals.pending()) {
      if (now > Date.parse(expiresAt)) await session.signal(expirySignal(id, expiresAt, now));
    }
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
