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
import { REQUESTED } from '../layers/approval.js';
import { memoryCache } from '../layers/memory-cache.js';
import { policyLayers } from '../layers/policy.js';
import { RateLimits } from '../layers/rate-limit.js';
import { Alert } from '../loops/agent/watch.js';
import { Bench } from '../loops/bench.js';
import type { Implementation } from '../loops/implementation.js';
import { linkedIn } from '../loops/link.js';
import type { Backend } from '../loops/model.js';
import type { Registered, Registry } from '../loops/registry.js';
import type { Approval, ApprovalAnswer } from '../protocol/approval.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { Json } from '../protocol/json.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../protocol/trace.js';
import { OPENED } from '../views/turns.js';
import { type Decision, SessionActions } from './actions.js';
import { Archive, type Known } from './archive.js';
import { Attendance, principalsOf } from './attendance.js';
import { expiry } from './decisions.js';
import { follow } from './follow.js';
import { FollowedTurn, servingPeers } from './followed-turn.js';
import { GovernedLoops, HostGate } from './gate.js';
import { Lanes } from './lanes.js';
import { isWatched, Live, type Watcher, watched } from './live.js';
import { PeerHosts } from './peers.js';
import { type Changed, changedSince, type Pinned, pin, unpin } from './pin.js';
import { type Replay, replayTurn } from './replay.js';
import {
  assertRequest,
  conflict,
  identityOf,
  keptIdentity,
  type Message,
  notFound,
  type TurnRequest,
} from './request.js';
import { type Identity, mismatch, resultOf, sessionOf, withTurn } from './result.js';

export type { Decision } from './actions.js';
export type { Message, TurnRequest } from './request.js';

export interface HostOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly registry: Registry;
  readonly backends?: ReadonlyMap<string, Backend>;
  readonly implementations?: ReadonlyMap<string, Implementation>;
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
export interface InFlight {
  readonly turn: TurnStatus;
  readonly changed: readonly (Changed & { readonly breaks: boolean; readonly why?: string })[];
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();
const CACHE = { entries: 10_000, bytes: 64 * 1024 * 1024 };
const MAX_DEPTH = 2000;
const MONTH = 30 * 86_400_000;

export class Host {
  readonly registry: Registry;
  /** What the store holds of turns. */
  readonly archive: Archive;
  private readonly options: HostOptions;
  private readonly bench: Bench;
  private readonly governed: GovernedLoops;
  private readonly layers: (effect: Effect, key: string) => readonly Layer[];
  private readonly lanes: Lanes;
  private readonly peers: PeerHosts;
  private readonly actions: SessionActions;
  private readonly running = new Map<string, Attendance>();
  /** What is seen of sessions in which something runs, or that somebody watches. */
  private readonly lives = new Map<string, Live>();
  private readonly alert = new Alert();

  constructor(options: HostOptions) {
    const { registry, clock, backends = NONE, implementations = NONE } = options;
    this.options = options;
    this.registry = registry;
    this.archive = new Archive(options.store, {
      has: (turnId) => this.running.has(turnId),
      unstored: async (sessionId, from) =>
        this.runningIn(sessionId) === undefined ? this.peers.unstored(sessionId, from) : this.unstored(sessionId, from),
    });
    const { leases } = options.store;
    this.peers = new PeerHosts(
      leases,
      options.ids,
      servingPeers({
        actions: () => this.actions,
        running: (turnId) => this.running.get(turnId),
        unstored: (sessionId, from) => this.unstored(sessionId, from),
        idle: (sessionId) => this.lanes.idle(sessionId),
        watch: (sessionId, watcher) => this.watch(sessionId, watcher),
      }),
    );
    this.lanes = new Lanes(leases, (request, send) => this.peers.answer(request, send));
    this.actions = new SessionActions({
      archive: this.archive,
      lanes: this.lanes,
      peers: this.peers,
      clock,
      ids: options.ids,
      open: (sessionId) => this.open(sessionId, () => {}),
      running: (turnId) => this.running.get(turnId),
      runningIn: (sessionId) => this.runningIn(sessionId),
      resume: (turnId) => this.resume(turnId),
    });
    const turn = (turnId: string): Attendance | undefined => this.running.get(turnId);
    this.layers = this.layersOf(turn);
    this.governed = new GovernedLoops(implementations);
    this.bench = new Bench({ backends, implementations, occasion: turn, clock, alert: this.alert });
  }

  private layersOf(
    turn: (turnId: string) => Attendance | undefined,
  ): (effect: Effect, key: string) => readonly Layer[] {
    const { clock, approvalMs = MONTH } = this.options;
    const gate = new HostGate({ turn, now: () => clock.now(), approvalMs, alert: this.alert });
    return policyLayers(() => ({ clock, cache: memoryCache(CACHE), limits: new RateLimits() }), gate);
  }

  /** Runs a turn to its end or its pause. Only a failure of the machinery rejects; anything else is a result. */
  async run<I, O>(request: TurnRequest<I, O>, options: TurnOptions = {}): Promise<TurnResult<O>> {
    assertRequest(request);
    const registered = this.resolve(request);
    const own = identityOf(request, registered, this.options.ids.id());
    if (registered === undefined) return this.refused(own, notFound(request)) as TurnResult<O>;
    const identity = request.key === undefined ? own : await keptIdentity(this.archive, request, own);
    const fresh = async (rest: TurnOptions): Promise<TurnResult> => {
      const pinned = pin(linkedIn(this.registry, registered));
      // A session that is made up here has no past.
      const past =
        request.sessionId !== undefined && this.governed.has(pinned)
          ? await this.archive.entries(identity.sessionId)
          : [];
      return await this.drive(identity, pinned, request, past, rest);
    };
    // A session that was just made up has a lane too: whoever hears of the turn may resume or decide it while it runs.
    if (request.key === undefined) return (await this.inLane(identity, options, fresh)) as TurnResult<O>;
    const attach = async (rest: TurnOptions): Promise<TurnResult> => {
      const known = await this.archive.known(identity.turnId);
      if (known === undefined) return fresh(rest);
      try {
        const other = conflict(known, request, identity);
        return other === undefined ? await this.goOn(known, rest) : this.refused(identity, other);
      } catch (thrown) {
        if (thrown instanceof LoopError) return this.refused(identity, thrown);
        throw thrown;
      }
    };
    return (await this.inLane(identity, options, attach).catch((thrown) => {
      // Another process may have begun it under the same key.
      throw withTurn(thrown, identity.turnId, 'perhaps');
    })) as TurnResult<O>;
  }

  /** Goes on with a turn, or returns how it ended. */
  async resume(turnId: string, options: TurnOptions = {}): Promise<TurnResult> {
    const work = async (rest: TurnOptions): Promise<TurnResult> => this.goOn(await this.archive.require(turnId), rest);
    return this.inLane({ sessionId: sessionOf(turnId), turnId }, options, work).catch((thrown) => {
      throw withTurn(thrown, turnId);
    });
  }

  /** Asks a turn to stop, and drives it to its end. False if it had ended. */
  cancel(turnId: string, reason: string): Promise<boolean> {
    return this.actions.cancel(turnId, reason);
  }

  /** Answers an approval. DECISION_REFUSED says why it was not taken; that, too, is journaled. */
  answer(given: ApprovalAnswer): Promise<Approval> {
    return this.actions.answer(given);
  }

  /** Says something to the turn of a session that runs, or waits. */
  say(message: Message): Promise<void> {
    return this.actions.say(message);
  }

  /** Says what becomes of an effect in doubt; `value` is what the tool gave back, for one that is supplied. */
  decide(key: string, decision: Decision, by: string, value?: Json): Promise<void> {
    return this.actions.decide(key, decision, by, value);
  }

  /**
   * Follows a session: what it holds after the envelope of this id, then what happens, and what is being said right now.
   * Returns how to stop.
   */
  async follow(sessionId: string, watcher: Watcher, after?: string): Promise<() => void> {
    const live = this.liveOf(sessionId);
    const entries = async (): Promise<readonly Entry[]> =>
      this.runningIn(sessionId)?.entries ?? (await this.archive.entries(sessionId));
    const leave = await follow(sessionId, live, watcher, { entries, after });
    return () => {
      leave();
      this.forget(sessionId, live);
    };
  }

  /** Runs a turn's bodies over its record, performing nothing; with the code and definitions of now if asked. */
  async replay(turnId: string, against: 'then' | 'now' = 'then'): Promise<Replay> {
    const known = await this.archive.require(turnId);
    const { loopId, loopVersion, sessionId: session } = known.identity;
    const current = against === 'now' ? this.registry.find(loopId, loopVersion) : undefined;
    const { loop } = current === undefined ? await this.unpinned(known) : pin(linkedIn(this.registry, current));
    const { clock, ids, maxDepth } = this.options;
    const input = (known.turn.started.value ?? null) as Json;
    const parts = { session, turn: turnId, loop, input, entries: known.entries, clock, ids, maxDepth };
    const attended = new Attendance({
      turnId,
      sessionId: session,
      past: known.entries,
      lives: new Map(),
      clock,
      alert: this.alert,
    });
    return replayTurn({ ...parts, layers: this.layersOf(() => attended), context: this.bench.attending(attended) });
  }

  /** Turns that have not ended and whose code is not what it was: which of them cannot go on. */
  async inFlight(): Promise<readonly InFlight[]> {
    const open = (await this.archive.turns()).filter(({ endedAt }) => endedAt === undefined);
    return Promise.all(open.map((turn) => this.changesOf(turn)));
  }

  private async changesOf(turn: TurnStatus): Promise<InFlight> {
    const known = await this.archive.require(turn.turnId);
    const text = await this.archive.pinText(known);
    const changed = text === undefined ? [] : changedSince(text, this.registry);
    const judged = changed.map(async (change) => {
      if (change.now === 'missing') return { ...change, breaks: true, why: 'it is not registered any more' };
      const { matches, difference } = await this.replay(turn.turnId, 'now');
      return matches ? { ...change, breaks: false } : { ...change, breaks: true, why: difference ?? '' };
    });
    return { turn, changed: await Promise.all(judged) };
  }

  private resolve({ loop, version }: TurnRequest): Registered | undefined {
    return typeof loop === 'string' ? this.registry.find(loop, version) : this.registry.add(loop);
  }

  /** Drives a turn, when nothing else is at its session. While another process runs it, its events come from there. */
  private inLane(
    { sessionId, turnId }: Pick<Identity, 'sessionId' | 'turnId'>,
    options: TurnOptions,
    work: (options: TurnOptions) => Promise<TurnResult>,
  ): Promise<TurnResult> {
    options.onTurn?.(turnId);
    const followed = new FollowedTurn(options);
    return this.lanes.run({
      sessionId,
      turnId,
      work: () => work(followed.remaining),
      elsewhere: () => this.peers.attend(followed.request(sessionId, turnId), (piece) => followed.receive(piece)),
    });
  }

  private unstored(sessionId: string, from: number): readonly Entry[] {
    return this.runningIn(sessionId)?.entries.filter(({ seq }) => seq >= from) ?? [];
  }

  private runningIn(sessionId: string): Attendance | undefined {
    for (const turn of this.running.values()) if (turn.sessionId === sessionId) return turn;
    return undefined;
  }

  private liveOf(sessionId: string): Live {
    const known = this.lives.get(sessionId) ?? new Live();
    this.lives.set(sessionId, known);
    return known;
  }

  /** Watches a session from now on; what is being said is told as a whole. */
  private watch(sessionId: string, watcher: Watcher): () => void {
    const live = this.liveOf(sessionId);
    for (const delta of live.unfinished()) watcher.delta?.(delta);
    const leave = live.watch(watcher);
    return () => {
      live.flush();
      leave();
      this.forget(sessionId, live);
    };
  }

  private forget(sessionId: string, live: Live): void {
    if (!live.watched && this.runningIn(sessionId) === undefined) this.lives.delete(sessionId);
  }

  private open(sessionId: string, heard: (entry: Entry) => void): Promise<Session> {
    const { store, clock, ids, maxDepth = MAX_DEPTH } = this.options;
    return Session.open(sessionId, { store, clock, ids, layers: this.layers, context: this.bench, heard, maxDepth });
  }

  private async goOn(known: Known, options: TurnOptions): Promise<TurnResult> {
    const { identity, turn, entries } = known;
    return this.drive(identity, await this.unpinned(known), { input: turn.started.value }, entries, options);
  }

  private async drive(
    identity: Identity,
    pinned: Pinned,
    request: Pick<TurnRequest, 'input' | 'principal' | 'approvers'>,
    past: readonly Entry[],
    options: TurnOptions,
  ): Promise<TurnResult> {
    const { sessionId, turnId } = identity;
    const { store, clock } = this.options;
    const { loop, text } = pinned;
    const { lives, alert } = this;
    const attended = new Attendance({ sessionId, turnId, past, lives, clock, alert, onEvent: options.onEvent });
    const session = await this.open(sessionId, (entry) => attended.hear(entry));
    attended.session = session;
    const watching = isWatched(options)
      ? watched(this.liveOf(sessionId), options, (past.at(-1)?.seq ?? -1) + 1)
      : undefined;
    this.running.set(turnId, attended);
    try {
      await store.blobs.put(sessionId, loop.definitionDigest ?? '', text);
      const principals = principalsOf(request);
      if (principals !== undefined) await session.note(OPENED, turnId, principals);
      if (past.length > 0) await this.expireApprovals(attended, session);
      const outcome = await session.run(turnId, loop, request.input as Json);
      return resultOf(identity, outcome, attended.entries, clock.now());
    } catch (thrown) {
      return resultOf(identity, mismatch(thrown, turnId), attended.entries, clock.now());
    } finally {
      this.running.delete(turnId);
      await session.close();
      attended.end();
      const live = lives.get(sessionId);
      live?.end();
      if (watching !== undefined) await watching.leave();
      if (live !== undefined) this.forget(sessionId, live);
    }
  }

  /** Approvals that nobody answered in time are over before the turn goes on. */
  private async expireApprovals(attended: Attendance, session: Session): Promise<void> {
    if (!attended.entries.some(({ type }) => type === REQUESTED)) return;
    const now = this.options.clock.now();
    for (const { id, expiresAt } of attended.governed.approvals.pending()) {
      if (now > Date.parse(expiresAt)) await session.signal(expiry(id, expiresAt, now));
    }
  }

  private refused(identity: Identity, error: LoopError): TurnResult {
    return resultOf(identity, { status: 'error', error: error.record() }, [], this.options.clock.now());
  }

  /** What the turn was begun with; without a pin, what is registered under its name. */
  private async unpinned(known: Known): Promise<Pinned> {
    const text = await this.archive.pinText(known);
    const { implementations = new Map(), trusts = () => false } = this.options;
    if (text !== undefined) return unpin(text, { registry: this.registry, implementations, trusts });
    const { loopId, loopVersion } = known.identity;
    const registered = this.registry.find(loopId, loopVersion);
    if (registered !== undefined) return pin(linkedIn(this.registry, registered));
    throw notFound({ loop: loopId, version: loopVersion });
  }
}
