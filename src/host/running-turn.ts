/**
 * What the host keeps of a turn while it runs, folded from the entries as they are written: what its bodies may ask for
 * and what those who watch are told. Whoever asks for nothing pays for nothing.
 */
import type { Clock } from '../journal/clock.js';
import type { Session } from '../kernel/session.js';
import { Watchdog } from '../loops/agent/watchdog.js';
import type { ModelRef, TurnContext } from '../loops/services.js';
import { type RestrictionFlag, RestrictionTable } from '../policy/restrictions.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { LiveDelta } from '../protocol/live.js';
import type { ModelMessage } from '../protocol/model.js';
import type { TraceEvent } from '../protocol/trace.js';
import { Approvals } from '../views/approvals.js';
import { CallResults, type CallTimes } from '../views/call-results.js';
import { Conversation } from '../views/conversation.js';
import { History } from '../views/history.js';
import { MessageInbox } from '../views/message-inbox.js';
import { ModelAnswerCounter } from '../views/model-answer-counter.js';
import { TraceBuilder } from '../views/trace.js';
import { isKeyOfTurn, TURN_OPENED } from '../views/turns.js';
import { ignoringErrors, type SessionFeed } from './session-feed.js';

/** Who starts a turn, and who may answer for it. */
export interface TurnPrincipals {
  readonly principal?: string;
  readonly approvers?: readonly string[];
}

/** Who a turn was begun by and for, as it is recorded; undefined if it is not told. */
export function principalsOf({ principal, approvers }: TurnPrincipals): { readonly [name: string]: Json } | undefined {
  if (principal === undefined && approvers === undefined) return undefined;
  return { ...(principal !== undefined && { principal }), ...(approvers !== undefined && { approvers }) };
}

/** A turn whose starter is not told. */
const ANONYMOUS: TurnPrincipals = {};

/** Finds the feed of a session that has subscribers. */
export interface FeedLookup {
  get(sessionId: string): SessionFeed | undefined;
}

interface RunningTurnDeps {
  readonly sessionId: string;
  readonly turnId: string;
  /** All entries of the session so far, where they matter. */
  readonly earlierEntries: readonly Entry[];
  readonly feeds: FeedLookup;
  readonly clock: Clock;
  readonly restrictionFlag: RestrictionFlag;
  readonly onEvent?: ((event: TraceEvent) => void) | undefined;
}

export class RunningTurn implements TurnContext {
  readonly sessionId: string;
  readonly turnId: string;
  readonly entries: Entry[] = [];
  session: Session | undefined;
  private readonly deps: RunningTurnDeps;
  private readonly traceBuilder: TraceBuilder | undefined;
  private readonly modelAnswers = new ModelAnswerCounter();
  private createdAgentState: AgentTurnState | undefined;
  private callResults: CallResults | undefined;
  /** Those who follow the turn from another process. */
  private listeners: Set<(entry: Entry) => void> | undefined;
  /** Whether other turns of the session are heard of too. */
  private readonly hasEarlierEntries: boolean;

  constructor(attended: RunningTurnDeps) {
    const { sessionId, turnId, earlierEntries, onEvent } = attended;
    this.sessionId = sessionId;
    this.turnId = turnId;
    this.deps = attended;
    this.hasEarlierEntries = earlierEntries.length > 0;
    this.traceBuilder = onEvent && new TraceBuilder(turnId, (event) => ignoringErrors(() => onEvent(event)));
    for (const entry of earlierEntries) this.applyEntry(entry);
  }

  /** Hears of every entry of the session, those of the past first. */
  applyEntry(entry: Entry): void {
    this.entries.push(entry);
    this.traceBuilder?.apply(entry);
    if (!this.hasEarlierEntries || isKeyOfTurn(entry.key, this.turnId)) this.modelAnswers.apply(entry);
    this.createdAgentState?.applyEntry(entry);
    if (this.listeners !== undefined) for (const listener of this.listeners) listener(entry);
  }

  /** Calls the listener with each entry from now on; returns how to stop. */
  subscribe(listener: (entry: Entry) => void): () => void {
    this.listeners ??= new Set();
    this.listeners.add(listener);
    return () => this.listeners?.delete(listener);
  }

  /** What is kept of a turn that agents or approvals have a part in: made when the first of them asks for it. */
  get agentState(): AgentTurnState {
    this.createdAgentState ??= new AgentTurnState(this.deps, this.entries);
    return this.createdAgentState;
  }

  /** Who watches over the turn, if anybody does. */
  get activeRestrictions(): RestrictionTable | undefined {
    return this.createdAgentState?.restrictions;
  }

  replyCount({ id, model }: ModelRef, by: 'turn' | 'session'): number {
    const own = this.modelAnswers.count(id, model);
    return by === 'turn' ? own : own + this.agentState.earlierModelAnswers.count(id, model);
  }

  /** What was said before this turn began: a turn that is resumed must not learn what came later. */
  earlierMessages(): readonly ModelMessage[] {
    return historyBefore(this.turnId, this.entries);
  }

  callTimes(callId: string, parent: string): CallTimes | undefined {
    this.callResults ??= new CallResults(this.entries);
    return this.callResults.timesOf(callId, parent);
  }

  inboxCounts(): { readonly steer: number; readonly queue: number } {
    const { inbox } = this.agentState;
    return { steer: inbox.count('steer'), queue: inbox.count('queue') };
  }

  get onLiveDelta(): ((delta: LiveDelta) => void) | undefined {
    return this.deps.feeds.get(this.sessionId)?.hasSubscribers === true ? this.agentState.publishDelta : undefined;
  }

  get restrictions(): RestrictionTable {
    return this.agentState.restrictions;
  }

  get watchdog(): Watchdog {
    return this.agentState.watchdog;
  }

  /** Nothing moves any more. */
  close(): void {
    this.createdAgentState?.close();
  }
}

/** What is kept of a turn that agents or approvals have a part in; what few ask for is folded when it is asked for. */
export class AgentTurnState {
  readonly restrictions: RestrictionTable;
  readonly inbox = new MessageInbox();
  readonly earlierModelAnswers = new ModelAnswerCounter();
  readonly watchdog: Watchdog;
  principals: TurnPrincipals = ANONYMOUS;
  readonly publishDelta: (delta: LiveDelta) => void;
  private readonly deps: RunningTurnDeps;
  /** Whether other turns of the session are heard of too. */
  private readonly hasEarlierEntries: boolean;
  private entries: readonly Entry[];
  private approvalsView: Approvals | undefined;
  private conversation: Conversation | undefined;

  constructor(attended: RunningTurnDeps, entries: readonly Entry[]) {
    this.deps = attended;
    this.hasEarlierEntries = attended.earlierEntries.length > 0;
    this.entries = entries;
    this.restrictions = new RestrictionTable(attended.restrictionFlag);
    this.watchdog = new Watchdog(attended.clock);
    this.publishDelta = (delta) => this.feed?.publishDelta(delta);
    for (const entry of entries) {
      if (entry.type === 'call.started')
        // guard: recorded-calls-known-to-policy
        this.restrictions.earlierCallStarted(entry.key, entry.name ?? '');
      else this.updateState(entry);
    }
  }

  /** Lets go. The collector takes what is made once a turn for something that stays: a turn must not stay with it. */
  close(): void {
    this.watchdog.close();
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

  /** Hears of an entry that is already among the entries. */
  applyEntry(entry: Entry): void {
    this.updateState(entry);
    this.approvalsView?.apply(entry);
    const { feed } = this;
    if (feed?.hasSubscribers === true) this.publishEntry(entry, feed);
    else this.conversation = undefined;
  }

  private get feed(): SessionFeed | undefined {
    const { feeds, sessionId } = this.deps;
    return feeds.get(sessionId);
  }

  private updateState(entry: Entry): void {
    const { key, type } = entry;
    const { turnId } = this.deps;
    if (type === 'call.started') this.restrictions.callStarted(key, entry.name ?? '');
    else if (type === 'call.completed' || type === 'call.errored') this.restrictions.callEnded(key);
    else if (type === 'signal.received' || type === 'wait.settled') this.inbox.apply(entry);
    else if (type === TURN_OPENED && key === `#${turnId}`) this.principals = (entry.value ?? {}) as TurnPrincipals;
    else if (this.hasEarlierEntries && !isKeyOfTurn(key, turnId)) this.earlierModelAnswers.apply(entry);
  }

  /** Tells those who watch; what came before the first of them is known to them. */
  private publishEntry(entry: Entry, live: SessionFeed): void {
    const { sessionId } = this.deps;
    if (this.conversation === undefined) {
      let present = false;
      this.conversation = new Conversation(sessionId, (envelope, refusal) => {
        if (present) live.publishEnvelope(envelope, refusal);
      });
      for (const before of this.entries) if (before !== entry) this.conversation.apply(before);
      present = true;
    }
    this.conversation.apply(entry);
  }
}

function historyBefore(turnId: string, entries: readonly Entry[]): readonly ModelMessage[] {
  const history = new History();
  for (const entry of entries) {
    if (entry.key === turnId) break;
    history.apply(entry);
  }
  return history.messages();
}
