/**
 * The state of a turn while it runs, folded from its entries as they are written: the context of its bodies and the
 * updates for subscribers. Views are created on first use, so that a turn without agents, approvals and subscribers
 * costs little.
 */
import type { Clock } from '../journal/clock.js';
import type { Session } from '../kernel/session.js';
import type { AdmittedBody, ModelRef, TurnContext } from '../loops/services.js';
import { Watchdog } from '../loops/watchdog.js';
import { assertBodyAdmitted, needsGate } from '../policy/grant-admission.js';
import { type RestrictionFlag, RestrictionTable } from '../policy/restrictions.js';
import type { Entry } from '../protocol/entry.js';
import type { LiveDelta } from '../protocol/live.js';
import type { ModelMessage } from '../protocol/model.js';
import type { RunStop } from '../protocol/session.js';
import type { TraceEvent, TurnResult } from '../protocol/trace.js';
import { Approvals } from '../views/approvals.js';
import { CallResults, type CallTimes } from '../views/call-results.js';
import { MessageInbox } from '../views/message-inbox.js';
import { ModelAnswerCounter } from '../views/model-answer-counter.js';
import type { SealedReceipt } from '../views/receipt/sealed-receipts.js';
import { TraceBuilder } from '../views/trace.js';
import { openingOf, TURN_OPENED } from '../views/turns.js';
import type { GovernedTurn } from './budget/governed-turn.js';
import { EnvelopePublisher } from './envelope-publisher.js';
import { ignoringErrors, type SessionFeed } from './session-feed.js';
import { historyBefore, principalsIn, type TurnPrincipals } from './turn-opening.js';

/** The principals of a turn that names none. */
const ANONYMOUS: TurnPrincipals = {};

interface RunningTurnDeps {
  readonly sessionId: string;
  readonly turnId: string;
  /** The existing entries of the session; empty if it has none or the turn does not need them. */
  readonly earlierEntries: readonly Entry[];
  readonly feeds: ReadonlyMap<string, SessionFeed>;
  readonly clock: Clock;
  readonly restrictionFlag: RestrictionFlag;
  readonly onEvent?: ((event: TraceEvent) => void) | undefined;
}

/** A turn that runs in this process, or that is replayed. */
export class RunningTurn implements TurnContext {
  readonly sessionId: string;
  readonly turnId: string;
  /** The earlier entries that the turn was given, followed by all entries written since. */
  readonly entries: Entry[] = [];
  /** The open session; undefined before it is opened and during a replay. */
  session: Session | undefined;
  /** The run of the turn in its session; undefined before it is opened and during a replay. */
  work: Promise<TurnResult> | undefined;
  /** The last receipt of the turn that this run made. */
  receipt: SealedReceipt | undefined;
  /** The turn under its grant; undefined if it has none. */
  governed: GovernedTurn | undefined;
  private readonly deps: RunningTurnDeps;
  private readonly traceBuilder: TraceBuilder | undefined;
  /** Created when a provider first asks for a count: few do. */
  private modelAnswers: ModelAnswerCounter | undefined;
  private createdAgentState: AgentTurnState | undefined;
  private createdWatchdog: Watchdog | undefined;
  private callResults: CallResults | undefined;
  private publisher: EnvelopePublisher | undefined;
  /** Listeners that send entries to other processes. */
  private listeners: Set<(entry: Entry) => void> | undefined;

  constructor(deps: RunningTurnDeps) {
    const { sessionId, turnId, earlierEntries, onEvent } = deps;
    this.sessionId = sessionId;
    this.turnId = turnId;
    this.deps = deps;
    this.traceBuilder = onEvent && new TraceBuilder(turnId, (event) => ignoringErrors(() => onEvent(event)));
    for (const entry of earlierEntries) this.addEntry(entry);
  }

  private addEntry(entry: Entry): void {
    this.entries.push(entry);
    this.traceBuilder?.apply(entry);
    this.modelAnswers?.apply(entry);
  }

  /** Applies the next entry of the session, and publishes its envelopes to subscribers. */
  applyEntry(entry: Entry): void {
    this.addEntry(entry);
    this.createdAgentState?.applyEntry(entry);
    this.governed?.applyEntry(entry);
    // Few sessions have subscribers; the map of their feeds is almost always empty.
    if (this.deps.feeds.size > 0) this.publishEntry(entry);
    if (this.listeners !== undefined) for (const listener of this.listeners) listener(entry);
  }

  private publishEntry(entry: Entry): void {
    this.publisher ??= new EnvelopePublisher(this.sessionId, this.deps.feeds);
    this.publisher.publish(entry, this.entries);
  }

  /** Calls the listener with each new entry. Returns a function that unsubscribes. */
  subscribe(listener: (entry: Entry) => void): () => void {
    this.listeners ??= new Set();
    this.listeners.add(listener);
    return () => this.listeners?.delete(listener);
  }

  /** The state for agents and approvals, created on first use. */
  get agentState(): AgentTurnState {
    this.createdAgentState ??= new AgentTurnState(this.deps, this.entries);
    return this.createdAgentState;
  }

  /** Stops the turn, which no body can notice. */
  stop(stop: RunStop): void {
    this.session?.stop(this.turnId, stop);
  }

  /**
   * Throws TOOL_NOT_ADMITTED if the grant of the turn does not permit the body of a loop. Returns true if the body must
   * pass a gate.
   */
  admitBody({ name, input, key, isCode }: AdmittedBody): boolean {
    if (this.governed === undefined) return false;
    const { grant } = this.governed;
    const isChosen = this.activeRestrictions?.activeToolCall(key)?.loopId === name;
    const call = { name, input, isChosen, isCode, isRoot: key === this.turnId };
    assertBodyAdmitted(grant, call);
    return needsGate(grant, call);
  }

  /** The restrictions of the turn; undefined until `agentState` is first used. */
  get activeRestrictions(): RestrictionTable | undefined {
    return this.createdAgentState?.restrictions;
  }

  /** Returns how many answers of a model are recorded, in this turn or in the whole session. */
  replyCount({ id, model }: ModelRef, by: 'turn' | 'session'): number {
    this.modelAnswers ??= new ModelAnswerCounter(this.turnId, this.entries);
    return this.modelAnswers.count(id, model, by);
  }

  /**
   * Returns the messages of the session before this turn started, also if the turn is resumed after later messages; none
   * for a turn that was opened without history.
   */
  earlierMessages(): readonly ModelMessage[] {
    // guard: no-history-unless-declared
    if (openingOf(this.turnId, this.entries)?.history === 'none') return [];
    return historyBefore(this.turnId, this.entries);
  }

  /** Returns the references to context that the turn adds to those of its own loop; none for any other call. */
  addedContext(key: string): readonly string[] {
    if (key !== this.turnId) return [];
    return openingOf(this.turnId, this.entries)?.hosted?.contextSkills ?? [];
  }

  /** Returns the times and the trace of a step of the call `parent`; undefined if the step has not completed. */
  callTimes(callId: string, parent: string): CallTimes | undefined {
    this.callResults ??= new CallResults(this.entries);
    return this.callResults.timesOf(callId, parent);
  }

  /** Returns how many messages wait in the inbox, by mode. */
  inboxCounts(): { readonly steer: number; readonly queue: number } {
    const { inbox } = this.agentState;
    return { steer: inbox.count('steer'), queue: inbox.count('queue') };
  }

  /** The function that publishes a delta; undefined while the session has no subscriber. */
  get onLiveDelta(): ((delta: LiveDelta) => void) | undefined {
    return this.deps.feeds.get(this.sessionId)?.hasSubscribers === true ? this.agentState.publishDelta : undefined;
  }

  /** The restrictions of the agents of the turn. Reading it creates the state for agents. */
  get restrictions(): RestrictionTable {
    return this.agentState.restrictions;
  }

  /** Enforces the timeouts of tool and model calls. Created on first use. */
  get watchdog(): Watchdog {
    this.createdWatchdog ??= new Watchdog(this.deps.clock);
    return this.createdWatchdog;
  }

  /** Stops the timers, and closes the state for agents and approvals. Call it when the turn has ended or paused. */
  close(): void {
    this.createdWatchdog?.close();
    this.createdAgentState?.close();
    this.governed?.close();
  }
}

/** The state of a turn with agents or approvals. Views that few turns need are folded on first use. */
class AgentTurnState {
  readonly restrictions: RestrictionTable;
  readonly inbox = new MessageInbox();
  principals: TurnPrincipals = ANONYMOUS;
  readonly publishDelta: (delta: LiveDelta) => void;
  private readonly deps: RunningTurnDeps;
  private entries: readonly Entry[];
  private approvalsView: Approvals | undefined;

  constructor(deps: RunningTurnDeps, entries: readonly Entry[]) {
    this.deps = deps;
    this.entries = entries;
    this.restrictions = new RestrictionTable(deps.restrictionFlag);
    this.publishDelta = (delta) => this.feed?.publishDelta(delta);
    for (const entry of entries) {
      if (entry.type === 'call.started')
        // guard: recorded-calls-known-to-policy
        this.restrictions.earlierCallStarted(entry.key, entry.name ?? '');
      else this.updateState(entry);
    }
  }

  /** Drops the reference to the entries: V8 pretenures per-turn objects, which would otherwise keep finished turns alive. */
  close(): void {
    this.entries = [];
  }

  /** The approvals of the session. */
  get approvals(): Approvals {
    if (this.approvalsView === undefined) {
      this.approvalsView = new Approvals(this.deps.sessionId);
      for (const entry of this.entries) this.approvalsView.apply(entry);
    }
    return this.approvalsView;
  }

  /** Applies an entry that is already in `entries`. */
  applyEntry(entry: Entry): void {
    this.updateState(entry);
    this.approvalsView?.apply(entry);
  }

  private get feed(): SessionFeed | undefined {
    const { feeds, sessionId } = this.deps;
    return feeds.get(sessionId);
  }

  private updateState(entry: Entry): void {
    const { key, type } = entry;
    if (type === 'call.started') this.restrictions.callStarted(key, entry.name ?? '');
    else if (type === 'call.completed' || type === 'call.errored') this.restrictions.callEnded(key);
    else if (type === 'signal.received' || type === 'wait.settled') this.inbox.apply(entry);
    else if (type === TURN_OPENED && key === `#${this.deps.turnId}`) this.principals = principalsIn(entry);
  }
}
