/**
 * What the host keeps of a turn while it runs, folded from the entries as they are written: what its bodies may ask for
 * and what those who watch are told. Whoever asks for nothing pays for nothing.
 */
import type { Clock } from '../journal/clock.js';
import type { Session } from '../kernel/session.js';
import { type Alert, Watches } from '../loops/agent/watch.js';
import { Watchdog } from '../loops/agent/watchdog.js';
import type { NamedModel, Occasion } from '../loops/bench.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { LiveDelta } from '../protocol/live.js';
import type { ModelMessage } from '../protocol/model.js';
import type { TraceEvent } from '../protocol/trace.js';
import { Answers } from '../views/answers.js';
import { Approvals } from '../views/approvals.js';
import { CallResults, type CallTimes } from '../views/call-results.js';
import { Conversation } from '../views/conversation.js';
import { History } from '../views/history.js';
import { Mailbox } from '../views/mailbox.js';
import { Tracing } from '../views/trace.js';
import { isOfTurn, OPENED } from '../views/turns.js';
import { type Live, unharmed } from './live.js';

/** Who starts a turn, and who may answer for it. */
export interface Principals {
  readonly principal?: string;
  readonly approvers?: readonly string[];
}

/** Who a turn was begun by and for, as it is recorded; undefined if it is not told. */
export function principalsOf({ principal, approvers }: Principals): { readonly [name: string]: Json } | undefined {
  if (principal === undefined && approvers === undefined) return undefined;
  return { ...(principal !== undefined && { principal }), ...(approvers !== undefined && { approvers }) };
}

/** A turn whose starter is not told. */
const UNTOLD: Principals = {};

interface Attended {
  readonly sessionId: string;
  readonly turnId: string;
  /** All entries of the session so far, where they matter. */
  readonly past: readonly Entry[];
  /** What is seen of sessions that somebody watches. */
  readonly lives: ReadonlyMap<string, Live>;
  readonly clock: Clock;
  readonly alert: Alert;
  readonly onEvent?: ((event: TraceEvent) => void) | undefined;
}

export class Attendance implements Occasion {
  readonly sessionId: string;
  readonly turnId: string;
  readonly entries: Entry[] = [];
  session: Session | undefined;
  private readonly attended: Attended;
  private readonly tracing: Tracing | undefined;
  private readonly answers = new Answers();
  private own: Governed | undefined;
  private results: CallResults | undefined;
  /** Those who follow the turn from another process. */
  private listeners: Set<(entry: Entry) => void> | undefined;
  /** Whether other turns of the session are heard of too. */
  private readonly shared: boolean;

  constructor(attended: Attended) {
    const { sessionId, turnId, past, onEvent } = attended;
    this.sessionId = sessionId;
    this.turnId = turnId;
    this.attended = attended;
    this.shared = past.length > 0;
    this.tracing = onEvent && new Tracing(turnId, (event) => unharmed(() => onEvent(event)));
    for (const entry of past) this.hear(entry);
  }

  /** Hears of every entry of the session, those of the past first. */
  hear(entry: Entry): void {
    this.entries.push(entry);
    this.tracing?.apply(entry);
    if (!this.shared || isOfTurn(entry.key, this.turnId)) this.answers.apply(entry);
    this.own?.hear(entry);
    if (this.listeners !== undefined) for (const listener of this.listeners) listener(entry);
  }

  /** Calls the listener with each entry from now on; returns how to stop. */
  listen(listener: (entry: Entry) => void): () => void {
    this.listeners ??= new Set();
    this.listeners.add(listener);
    return () => this.listeners?.delete(listener);
  }

  /** What is kept of a turn that agents or approvals have a part in: made when the first of them asks for it. */
  get governed(): Governed {
    this.own ??= new Governed(this.attended, this.entries);
    return this.own;
  }

  /** Who watches over the turn, if anybody does. */
  get watching(): Watches | undefined {
    return this.own?.watches;
  }

  answered({ id, model }: NamedModel, by: 'turn' | 'session'): number {
    const own = this.answers.count(id, model);
    return by === 'turn' ? own : own + this.governed.earlier.count(id, model);
  }

  /** What was said before this turn began: a turn that is resumed must not learn what came later. */
  history(): readonly ModelMessage[] {
    return historyBefore(this.turnId, this.entries);
  }

  result(callId: string, parent: string): CallTimes | undefined {
    this.results ??= new CallResults(this.entries);
    return this.results.of(callId, parent);
  }

  waiting(): { readonly steer: number; readonly queue: number } {
    const { mailbox } = this.governed;
    return { steer: mailbox.count('steer'), queue: mailbox.count('queue') };
  }

  get live(): ((delta: LiveDelta) => void) | undefined {
    return this.attended.lives.get(this.sessionId)?.watched === true ? this.governed.speak : undefined;
  }

  get watches(): Watches {
    return this.governed.watches;
  }

  get watchdog(): Watchdog {
    return this.governed.watchdog;
  }

  /** Nothing moves any more. */
  end(): void {
    this.own?.close();
  }
}

/** What is kept of a turn that agents or approvals have a part in; what few ask for is folded when it is asked for. */
export class Governed {
  readonly watches: Watches;
  readonly mailbox = new Mailbox();
  readonly earlier = new Answers();
  readonly watchdog: Watchdog;
  principals: Principals = UNTOLD;
  readonly speak: (delta: LiveDelta) => void;
  private readonly attended: Attended;
  /** Whether other turns of the session are heard of too. */
  private readonly shared: boolean;
  private entries: readonly Entry[];
  private asked: Approvals | undefined;
  private told: Conversation | undefined;

  constructor(attended: Attended, entries: readonly Entry[]) {
    this.attended = attended;
    this.shared = attended.past.length > 0;
    this.entries = entries;
    this.watches = new Watches(attended.alert);
    this.watchdog = new Watchdog(attended.clock);
    this.speak = (delta) => this.live?.delta(delta);
    for (const entry of entries) {
      if (entry.type === 'call.started')
        // guard: recorded-calls-known-to-policy
        this.watches.began(entry.key, entry.name ?? '');
      else this.keep(entry);
    }
  }

  /** Lets go. The collector takes what is made once a turn for something that stays: a turn must not stay with it. */
  close(): void {
    this.watchdog.close();
    this.entries = [];
  }

  /** The approvals of the session. */
  get approvals(): Approvals {
    if (this.asked === undefined) {
      this.asked = new Approvals(this.attended.sessionId);
      for (const entry of this.entries) this.asked.apply(entry);
    }
    return this.asked;
  }

  /** Hears of an entry that is already among the entries. */
  hear(entry: Entry): void {
    this.keep(entry);
    this.asked?.apply(entry);
    const { live } = this;
    if (live?.watched === true) this.tell(entry, live);
    else this.told = undefined;
  }

  private get live(): Live | undefined {
    const { lives, sessionId } = this.attended;
    return lives.size === 0 ? undefined : lives.get(sessionId);
  }

  private keep(entry: Entry): void {
    const { key, type } = entry;
    const { turnId } = this.attended;
    if (type === 'call.started') this.watches.begin(key, entry.name ?? '');
    else if (type === 'call.completed' || type === 'call.errored') this.watches.end(key);
    else if (type === 'signal.received' || type === 'wait.settled') this.mailbox.apply(entry);
    else if (type === OPENED && key === `#${turnId}`) this.principals = (entry.value ?? {}) as Principals;
    else if (this.shared && !isOfTurn(key, turnId)) this.earlier.apply(entry);
  }

  /** Tells those who watch; what came before the first of them is known to them. */
  private tell(entry: Entry, live: Live): void {
    const { sessionId } = this.attended;
    if (this.told === undefined) {
      let present = false;
      this.told = new Conversation(sessionId, (envelope, refusal) => {
        if (present) live.envelope(envelope, refusal);
      });
      for (const before of this.entries) if (before !== entry) this.told.apply(before);
      present = true;
    }
    this.told.apply(entry);
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
