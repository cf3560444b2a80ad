/**
 * Runs turns in this process: opens the session, runs the root call with the layers of the host (the functions around
 * effects that enforce policies) and tracks running turns. The host handles queues and other processes.
 */

import type { SessionOptions } from '../journal/session-options.js';
import type { View } from '../journal/view.js';
import { Session } from '../kernel/session.js';
import { memoryCache } from '../layers/memory-cache.js';
import { policyLayers } from '../layers/policy-layers.js';
import { RateLimiter } from '../layers/rate-limit.js';
import { linkLoop } from '../loops/link.js';
import { CODE_ORIGIN } from '../loops/origin.js';
import { LoopServices } from '../loops/services.js';
import { mixedTrustError } from '../loops/trust-boundary.js';
import { RestrictionFlag } from '../policy/restrictions.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Grant } from '../protocol/grant.js';
import type { HostedTurnOrigin } from '../protocol/hosted-loop.js';
import type { Json } from '../protocol/json.js';
import type { Layer, RunOutcome } from '../protocol/session.js';
import type { TurnResult } from '../protocol/trace.js';
import { receiptHeadView } from '../views/receipt/sealed-receipts.js';
import { grantOf, openingOf, TURN_GRANTED } from '../views/turns.js';
import { expireApprovals, nextExpiryOf } from './approval-answers.js';
import { HostApprovalGate, LoopInspector } from './approval-gate.js';
import type { StoredTurn } from './archive.js';
import { Governance, identifiedGrant } from './budget/governance.js';
import type { GovernedTurnDeps } from './budget/governed-turn.js';
import { type CodeChange, codeChangesSince } from './code-changes.js';
import { contextSourcesOf, type HostOptions, type TurnOptions } from './host-options.js';
import type { PinnedLoop } from './pin.js';
import { assertNotClosed } from './receipts/closed-session.js';
import { Sealing, withReceipt } from './receipts/sealing.js';
import { type ReplayReport, replayTurn } from './replay.js';
import { RunningTurn } from './running-turn.js';
import { hasLiveCallbacks, ignoringErrors, type SessionFeed, subscribeCallbacks } from './session-feed.js';
import type { Subscriptions } from './subscriptions.js';
import { recordOpening } from './turn-opening.js';
import type { TurnRequest } from './turn-request.js';
import { mismatchOutcome, type TurnIdentity, turnResultOf } from './turn-result.js';
import { hostClosedFault } from './until-closed.js';

const EMPTY_MAP: ReadonlyMap<string, never> = new Map<string, never>();
/** The limits of the in-memory cache of effect results. */
const CACHE_LIMITS = { entries: 10_000, bytes: 64 * 1024 * 1024 };
const DEFAULT_MAX_DEPTH = 2000;
/** A turn waits for a timer that is due within this time. It pauses for a later one. */
const MAX_HELD_TIMER_MS = 10_000;
const DEFAULT_APPROVAL_MS = 30 * 86_400_000;

/** The feeds of a replayed turn, which publishes nothing. */
const NO_FEEDS: ReadonlyMap<string, SessionFeed> = new Map();

/** The start of a turn: the pinned loop, its input and principals, and the existing entries of its session. */
interface TurnStart {
  readonly pinned: PinnedLoop;
  readonly request: Pick<TurnRequest, 'input' | 'principal' | 'approvers' | 'grant' | 'history'> & {
    readonly hosted?: HostedTurnOrigin;
  };
  readonly earlierEntries: readonly Entry[];
  /** The pin that a turn which continues was started with. */
  readonly startedWith?: string | undefined;
  /** True for a turn that was started before. */
  readonly isContinued?: boolean;
  /** True for a turn whose result is recorded. */
  readonly hasEnded?: boolean;
}

/** The views of a session with receipts. */
const RECEIPT_VIEWS = [receiptHeadView] as unknown as readonly View<never>[];

/** The number of unfinished turns whose code is kept in this process. Older ones continue with the registered code. */
const MAX_KEPT_LOOPS = 10_000;

/** Runs and replays turns, and tracks those that run. */
export class TurnRunner {
  private readonly options: HostOptions;
  private readonly subscriptions: () => Subscriptions;
  private readonly loopServices: LoopServices;
  private readonly loopInspector: LoopInspector;
  private readonly layersFor: (effect: Effect, key: string) => readonly Layer[];
  private readonly running = new Map<string, RunningTurn>();
  /** The loops of the turns that this process ran and that have not ended, so that a redefined loop does not reach them. */
  private keptLoops: Map<string, PinnedLoop> | undefined;
  private readonly restrictionFlag = new RestrictionFlag();
  readonly governance: Governance;
  readonly sealing: Sealing | undefined;
  /** Called when a turn of the session starts to run. Created on first use. */
  private startListeners: Map<string, Set<() => void>> | undefined;
  private isClosed = false;
  /** Created on first use: most hosts never wait for another process. */
  private closingController: AbortController | undefined;

  constructor(options: HostOptions, subscriptions: () => Subscriptions) {
    const { clock, registry, providers = EMPTY_MAP, implementations = EMPTY_MAP, fileExists } = options;
    this.options = options;
    this.subscriptions = subscriptions;
    const { store, priceOf = () => undefined } = options;
    this.governance = new Governance({ store, clock, registry, priceOf, witness: options.lengthWitness });
    this.sealing = Sealing.of(options, () => this.running.size <= 1);
    const turnContext = (turnId: string): RunningTurn | undefined => this.running.get(turnId);
    this.layersFor = this.createLayers(turnContext);
    this.loopInspector = new LoopInspector(implementations);
    const { restrictionFlag } = this;
    this.loopServices = new LoopServices({
      ...{ providers, modelOverride: options.modelOverride },
      implementations,
      turnContext,
      clock,
      restrictionFlag,
      fileExists,
      contextSources: contextSourcesOf(options),
      link: (loop) => {
        const linked = linkLoop(registry, registry.registrationOf(loop) ?? registry.add(loop, CODE_ORIGIN));
        const reason = linked.trustProblem({ isCode: true });
        // guard: mixed-trust-not-called
        if (reason !== undefined) throw mixedTrustError(linked.root, reason);
        return linked.loop;
      },
    });
  }

  /** Returns the turn with this id if it runs in this process. */
  get(turnId: string): RunningTurn | undefined {
    return this.running.get(turnId);
  }

  /** Returns the turns that run in this process. */
  list(): readonly RunningTurn[] {
    return [...this.running.values()];
  }

  /** Returns the turn of this session that runs in this process, if there is one. */
  runningIn(sessionId: string): RunningTurn | undefined {
    for (const turn of this.running.values()) if (turn.sessionId === sessionId) return turn;
    return undefined;
  }

  /** Resolves when a turn of this session runs in this process, or when `task` has settled. */
  whenRunning(sessionId: string, task: Promise<unknown>): Promise<void> {
    if (this.runningIn(sessionId) !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      this.startListeners ??= new Map();
      const listeners = this.startListeners.get(sessionId) ?? new Set();
      this.startListeners.set(sessionId, listeners.add(resolve));
      const stop = (): void => {
        listeners.delete(resolve);
        if (listeners.size === 0) this.startListeners?.delete(sessionId);
        resolve();
      };
      task.then(stop, stop);
    });
  }

  /**
   * Returns the entries of a session's running turn from sequence number `from` on, including those not stored yet;
   * empty if no turn of the session runs here.
   */
  unstoredEntries(sessionId: string, from: number): readonly Entry[] {
    return this.runningIn(sessionId)?.entries.filter(({ seq }) => seq >= from) ?? [];
  }

  /** Returns the loop with which an unfinished turn ran in this process; undefined if it did not, or is forgotten. */
  keptLoop(turnId: string): PinnedLoop | undefined {
    return this.keptLoops?.get(turnId);
  }

  private keepLoop(turnId: string, pinned: PinnedLoop): void {
    this.keptLoops ??= new Map();
    this.keptLoops.set(turnId, pinned);
    for (const oldest of this.keptLoops.keys()) {
      if (this.keptLoops.size <= MAX_KEPT_LOOPS) break;
      this.keptLoops.delete(oldest);
    }
  }

  /** Aborted by `close`. */
  get closing(): AbortSignal {
    this.closingController ??= new AbortController();
    if (this.isClosed) this.closingController.abort();
    return this.closingController.signal;
  }

  /**
   * Interrupts all turns and refuses further ones. Each turn ends its current effects, records their results, and stays
   * open; one that is just ending is sealed. Resolves when all have been interrupted.
   */
  async close(): Promise<void> {
    this.isClosed = true;
    this.closingController?.abort();
    const turns = [...this.running.values()];
    await Promise.allSettled(turns.map((turn) => turn.session?.close()));
    await Promise.allSettled(turns.map((turn) => turn.work));
    await this.sealing?.flush();
  }

  /** Returns true if a turn of this loop needs the earlier entries of its session. */
  needsEarlierEntries(pinned: PinnedLoop): boolean {
    return this.loopInspector.hasAgentsOrApprovals(pinned);
  }

  /** Opens a session with the layers and services of the host. */
  openSession(
    sessionId: string,
    { onEntry = () => {}, wakeAt = () => undefined, admit }: Pick<SessionOptions, 'onEntry' | 'wakeAt' | 'admit'> = {},
  ): Promise<Session> {
    const { store, clock, ids, maxDepth = DEFAULT_MAX_DEPTH, errorStacks } = this.options;
    const { layersFor: layers, loopServices: context } = this;
    const callbacks = { onEntry, wakeAt, admit, errorStacks };
    const views = this.sealing === undefined ? [] : RECEIPT_VIEWS;
    return Session.open(sessionId, { store, clock, ids, layers, context, maxDepth, views, ...callbacks });
  }

  /**
   * Runs a turn until it ends or pauses. A replay mismatch is a result with the status `error`; other faults are
   * thrown.
   */
  async run(identity: TurnIdentity, start: TurnStart, options: TurnOptions): Promise<TurnResult> {
    const { sessionId, turnId } = identity;
    const { earlierEntries } = start;
    const subscriptions = this.subscriptions();
    if (this.isClosed) throw hostClosedFault();
    const newGrant = identifiedGrant(turnId, options.grant ?? start.request.grant);
    // Nothing of a turn that has ended or was cancelled runs again, so its grant is not asked and counts no turn.
    // guard: ended-turn-not-counted
    const grant = start.hasEnded === true ? undefined : (newGrant ?? grantOf(turnId, earlierEntries));
    const { definitions } = start.pinned;
    const { grants, previous } = start.request.hosted ?? openingOf(turnId, earlierEntries)?.hosted ?? {};
    const origin = { grants, isKnown: previous !== undefined };
    const opening = { turnId, isContinued: newGrant === undefined, definitions, entries: earlierEntries, ...origin };
    const opened = grant === undefined ? undefined : await this.governance.open({ ...opening, document: grant });
    if (opened?.refusal !== undefined) return this.refuse(identity, opened.refusal, earlierEntries);
    const turn = this.createTurn(identity, earlierEntries, subscriptions.feeds, options.onEvent);
    if (opened !== undefined) this.govern(turn, opened);
    const session = await this.openSession(sessionId, {
      onEntry: (entry) => turn.applyEntry(entry),
      wakeAt: (pending) => nextExpiryOf(turn, pending),
      admit: turn.governed && ((effect, key) => turn.governed?.admit(effect, key) ?? effect),
    });
    if (this.isClosed) {
      await session.close();
      throw hostClosedFault();
    }
    turn.session = session;
    const callbacks = hasLiveCallbacks(options)
      ? subscribeCallbacks(subscriptions.feedOf(sessionId), options, (earlierEntries.at(-1)?.seq ?? -1) + 1)
      : undefined;
    this.running.set(turnId, turn);
    if (this.startListeners !== undefined) this.notifyStart(sessionId);
    try {
      turn.work = this.runOpened(identity, turn, session, { ...start, newGrant }, options);
      return await turn.work;
    } finally {
      this.running.delete(turnId);
      await session.close();
      turn.close();
      if (turn.governed !== undefined) this.governance.release(turn.governed.ledger.grantId);
      subscriptions.feeds.get(sessionId)?.clearPartials();
      if (callbacks !== undefined) await callbacks.unsubscribe();
      subscriptions.dropIfUnused(sessionId);
    }
  }

  /** Runs a turn in its open session. */
  private async runOpened(
    identity: TurnIdentity,
    turn: RunningTurn,
    session: Session,
    {
      pinned,
      request,
      earlierEntries,
      startedWith,
      isContinued = false,
      newGrant,
    }: TurnStart & { readonly newGrant: Grant | undefined },
    options: TurnOptions,
  ): Promise<TurnResult> {
    const { sessionId, turnId } = identity;
    const { store, clock } = this.options;
    const { loop, pinText } = pinned;
    const { sealing } = this;
    try {
      assertNotClosed(session, sealing !== undefined);
      await store.blobs.put(sessionId, loop.definitionDigest ?? '', pinText);
      const opening = { ...request, grant: newGrant, sealed: sealing !== undefined };
      if (!isContinued) recordOpening(session, turnId, opening, earlierEntries);
      else if (newGrant !== undefined) session.addFact(TURN_GRANTED, turnId, newGrant as unknown as Json);
      if (earlierEntries.length > 0) await expireApprovals(turn, session, clock.now());
      const { timers = MAX_HELD_TIMER_MS, onStarted } = options;
      const budget = turn.governed?.ledger.budget.totals();
      const seal = sealing && ((outcome: RunOutcome) => sealing.sealTurn(session, turn, budget, isOpen(outcome)));
      turn.governed?.startTimer();
      const running = session.run(turnId, loop, request.input as Json, { timers, seal });
      if (onStarted !== undefined) notifyWhenDurable(session, () => onStarted(turnId));
      const outcome = await running;
      await turn.governed?.end(!isOpen(outcome));
      if (turn.receipt !== undefined) sealing?.log.append(sessionId, turn.receipt);
      if (isOpen(outcome)) this.keepLoop(turnId, pinned);
      else this.keptLoops?.delete(turnId);
      return withReceipt(turnResultOf(identity, outcome, turn.entries, clock.now()), turn);
    } catch (thrown) {
      const outcome = mismatchOutcome(thrown, turnId, () => changesSince(startedWith, pinned));
      return turnResultOf(identity, outcome, turn.entries, clock.now());
    }
  }

  /** Returns the result of a turn that may not run, and seals its refusal. A refused turn has an id of its own. */
  private async refuse(
    identity: TurnIdentity,
    outcome: RunOutcome,
    earlierEntries: readonly Entry[],
  ): Promise<TurnResult> {
    const { sealing } = this;
    const { clock, ids } = this.options;
    if (sealing === undefined || earlierEntries.some(({ key }) => key === identity.turnId))
      return turnResultOf(identity, outcome, earlierEntries, clock.now());
    const refused = { ...identity, turnId: `${identity.sessionId}.refused-${ids.id().slice(-12)}` };
    const turn = this.createTurn(refused, [], NO_FEEDS);
    const session = await this.openSession(identity.sessionId, { onEntry: (entry) => turn.applyEntry(entry) });
    try {
      assertNotClosed(session, true);
      await sealing.sealRefusal(session, turn, outcome);
    } finally {
      await session.close();
    }
    if (turn.receipt !== undefined) sealing.log.append(identity.sessionId, turn.receipt);
    return withReceipt(turnResultOf(refused, outcome, [], clock.now()), turn);
  }

  private govern(turn: RunningTurn, opened: Pick<GovernedTurnDeps, 'grant' | 'ledger' | 'accounts'>): void {
    const { turnId, entries } = turn;
    turn.governed = this.governance.govern(opened, {
      turnId,
      entries,
      agentAround: (key) => turn.activeRestrictions?.activeToolCall(key)?.agentKey,
      stop: (stop) => turn.stop(stop),
    });
    this.restrictionFlag.isSet = true;
  }

  /** Reopens a failed turn at its failed steps, so that the next run continues it. */
  async reopen(sessionId: string, turnId: string, keys: readonly string[]): Promise<void> {
    const session = await this.openSession(sessionId);
    try {
      assertNotClosed(session, this.sealing !== undefined);
      await session.reopen(turnId, keys);
    } finally {
      await session.close();
    }
  }

  private notifyStart(sessionId: string): void {
    for (const listener of this.startListeners?.get(sessionId) ?? []) listener();
    this.startListeners?.delete(sessionId);
  }

  /** Runs the bodies of a turn over its entries without performing effects. */
  replay({ identity, turn, entries }: StoredTurn, { loop }: PinnedLoop): Promise<ReplayReport> {
    const { sessionId: session, turnId } = identity;
    const { clock, ids, maxDepth } = this.options;
    const replayed = this.createTurn(identity, entries, NO_FEEDS);
    const input = (turn.startedEntry.value ?? null) as Json;
    const layers = this.createLayers(() => replayed);
    const context = this.loopServices.withTurnContext(replayed);
    return replayTurn({ session, turn: turnId, loop, input, entries, clock, ids, maxDepth, layers, context });
  }

  private createTurn(
    { sessionId, turnId }: TurnIdentity,
    earlierEntries: readonly Entry[],
    feeds: ReadonlyMap<string, SessionFeed>,
    onEvent?: TurnOptions['onEvent'],
  ): RunningTurn {
    const { restrictionFlag } = this;
    const { clock } = this.options;
    return new RunningTurn({ sessionId, turnId, earlierEntries, feeds, clock, restrictionFlag, onEvent });
  }

  private createLayers(
    runningTurn: (turnId: string) => RunningTurn | undefined,
  ): (effect: Effect, key: string) => readonly Layer[] {
    const { clock, approvalMs = DEFAULT_APPROVAL_MS } = this.options;
    const { restrictionFlag } = this;
    const { build } = this.options;
    const gate = new HostApprovalGate({ runningTurn, now: () => clock.now(), approvalMs, restrictionFlag, build });
    return policyLayers(() => ({ clock, cache: memoryCache(CACHE_LIMITS), rateLimiter: new RateLimiter() }), gate);
  }
}

/** Returns the loops in code that a turn no longer has as it started with them. */
function changesSince(startedWith: string | undefined, { definitions }: PinnedLoop): readonly CodeChange[] {
  if (startedWith === undefined) return [];
  return codeChangesSince(startedWith, (id, version) =>
    definitions.find(({ definition }) => definition.id === id && definition.version === version),
  );
}

/** True for the outcome of a turn that continues later. */
function isOpen({ status }: RunOutcome): boolean {
  return status === 'paused' || status === 'stopped';
}

/** Calls `notify` when everything that the session has written so far is durable. A failure ends the turn itself. */
function notifyWhenDurable(session: Session, notify: () => void): void {
  session.flush().then(
    () => ignoringErrors(notify),
    () => undefined,
  );
}
