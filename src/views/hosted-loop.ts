/**
 * The view of a hosted loop: what is due, which turn is open, which signals wait, and why it stopped; folded from the
 * stream of the loop. Times are members of the entries, so that a decision can be applied before it is written. The head
 * is a chain of digests over the receipts and the admitted events, in their order.
 */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../json/canonical.js';
import type { Grant } from '../protocol/grant.js';
import type {
  HostedLoopDocument,
  HostedPauseReason,
  HostedStopReason,
  ProjectedHandoff,
  TurnGrant,
} from '../protocol/hosted-loop.js';
import type { Json } from '../protocol/json.js';

/** The types of the entries of a hosted loop. */
export const HOSTED_STARTED = 'rondo.hosted.started';
export const HOSTED_PLANNED = 'rondo.hosted.planned';
export const HOSTED_REQUESTED = 'rondo.hosted.requested';
export const HOSTED_WAITING = 'rondo.hosted.waiting';
export const HOSTED_CONTINUED = 'rondo.hosted.continued';
export const HOSTED_ENDED = 'rondo.hosted.ended';
export const HOSTED_STOPPED = 'rondo.hosted.stopped';
export const HOSTED_PAUSED = 'rondo.hosted.paused';
export const HOSTED_RESUMED = 'rondo.hosted.resumed';
export const HOSTED_RECEIVED = 'rondo.hosted.received';
export const HOSTED_HANDED_OFF = 'rondo.hosted.handed-off';

/** Due times that get no turn: all from `from` to `until`, both inclusive. */
export interface SkippedDueTimes {
  /** The first due time that is dropped. */
  readonly from: number;
  /** The end of the period; not necessarily a due time. */
  readonly until: number;
  /** `overlap`: the turn before was open. `missed`: no worker ran. */
  readonly why: 'overlap' | 'missed';
}

/** What is planned for a turn. */
export interface DuePlan {
  /** When it is due, in milliseconds since the epoch: a due time of the schedule. */
  readonly dueAt: number;
  /** The due times up to here, inclusive, are dealt with by this turn. */
  readonly through: number;
  /** The due times that were dropped when this was decided. A later decision about the plan does not repeat them. */
  readonly skipped?: SkippedDueTimes;
}

/** The start of a hosted loop. */
export interface StartedLoop {
  readonly document: HostedLoopDocument;
  readonly digest: string;
  /** The authority of all turns, with an id and no later than the deadline. */
  readonly grant: Grant;
  readonly at: number;
  readonly by?: string;
  /** True if the next input is made by code, which the process of a turn must have. */
  readonly hasCode: boolean;
  /** The directory of its file, if it was not trusted when the loop was started: nothing that needs trust runs for it. */
  readonly untrustedDirectory?: string;
  /** The directory of its file, which was trusted then; absent for a document of a program. */
  readonly directory?: string;
}

/** A signal or a handoff that waits for a turn. */
export interface WaitingSignal {
  readonly id: string;
  /** Empty for a handoff. */
  readonly name: string;
  readonly payload: Json;
  readonly at: number;
  readonly handoff?: ProjectedHandoff & { readonly grant?: TurnGrant };
}

/** Why a turn is due. */
export type TurnCause = 'schedule' | 'signal' | 'handoff' | 'retry';

/** The request of a turn. */
export interface RequestedTurn {
  readonly turn: number;
  readonly at: number;
  readonly cause: TurnCause;
  readonly dueAt: number;
  readonly through: number;
  readonly input: Json;
  readonly head: string;
  readonly previous?: string;
  /** The signal or the handoff that caused the turn. */
  readonly signal?: WaitingSignal;
  readonly contextSkills?: readonly string[];
}

/** What a turn that has not ended waits for. */
export type TurnWait = 'approval' | 'signal' | 'timer' | 'doubt';

/** The turn that has not ended. */
export interface OpenTurn {
  readonly request: RequestedTurn;
  /** Set while the turn is paused. */
  readonly waitsFor?: TurnWait;
}

/** The last turn that has ended. */
export interface EndedTurn {
  readonly turn: number;
  readonly turnId: string;
  readonly status: 'ok' | 'error' | 'stopped' | 'cancelled';
  /** The id of its final receipt; empty if it was never started. */
  readonly receipt: string;
  readonly at: number;
  readonly head: string;
  readonly previous?: string;
  /** The digest of its output. */
  readonly output?: string;
  readonly code?: string;
  /** When another turn is tried, if it failed. */
  readonly retryAt?: number;
  readonly handoffs?: readonly OutgoingHandoff[];
}

/** A handoff that is to be delivered. */
export interface OutgoingHandoff {
  readonly target: string;
  readonly receipt: string;
  /** The number of the rule that made it, from 0: several may name one target. Undefined for that of a program. */
  readonly rule?: number;
  readonly input: Json;
  readonly grant?: TurnGrant;
  readonly reason: string;
}

/** What became of a handoff. */
export interface DeliveredHandoff {
  readonly target: string;
  readonly receipt: string;
  /** `accepted`, `duplicate`, or the code and the message of its refusal. */
  readonly result: string;
}

/** Why and when a hosted loop stopped. */
export interface StoppedLoop {
  readonly reason: HostedStopReason;
  readonly message: string;
  readonly at: number;
  readonly by?: string;
}

/** Who pauses a loop that its operator has to repair. */
export const PAUSER = 'rondo';

/** Why and when a hosted loop was paused. */
export interface PausedLoop {
  readonly at: number;
  readonly by: string;
  readonly reason?: string;
  /** What has to be repaired; absent if a person paused it. */
  readonly cause?: HostedPauseReason;
}

/** A signal as it is recorded. */
export interface ReceivedSignal extends WaitingSignal {
  /** A digest of name and payload, by which a repeated delivery is compared. */
  readonly digest: string;
  /** How the sender was authenticated. */
  readonly method: 'operator' | 'hmac-sha256' | 'receipt';
  /** Until when a repeated delivery is recognised for certain. */
  readonly keepUntil: number;
}

/** An entry of the stream. */
export interface HostedEntry {
  readonly type: string;
  readonly key: string;
  readonly value?: Json;
}

/** How many delivery ids are kept at least. Older ones are forgotten once their time has passed. */
const KEPT_DELIVERIES = 10_000;

/** The parts of the state that are plain JSON. */
interface PlainState {
  started?: StartedLoop;
  turns: number;
  through: number;
  plan?: DuePlan;
  open?: OpenTurn;
  last?: EndedTurn;
  head: string;
  /** How many turns in a row brought no new output. */
  unchanged: number;
  /** How many turns in a row have failed. */
  failures: number;
  retryAt?: number;
  /** The request of the failed turn, which is made again at `retryAt`. */
  retryOf?: RequestedTurn;
  /** The digest of the last output; a failed turn has none, and leaves it. */
  output?: string;
  paused?: PausedLoop;
  stopped?: StoppedLoop;
  asOf?: number;
}

/** The state of one hosted loop. */
export class HostedLoopState {
  private plain: PlainState = { turns: 0, through: 0, head: '', unchanged: 0, failures: 0 };
  private readonly waiting: WaitingSignal[] = [];
  private readonly outgoing: OutgoingHandoff[] = [];
  private readonly delivered = new Map<string, { readonly digest: string; readonly keepUntil: number }>();

  constructor(saved?: Json) {
    if (saved !== undefined) this.restore(saved as unknown as SavedState);
  }

  /** The state without the signals. */
  get now(): Readonly<PlainState> {
    return this.plain;
  }

  /** The signals and handoffs that wait for a turn, oldest first. */
  get signals(): readonly WaitingSignal[] {
    return this.waiting;
  }

  /** The handoffs that are to be delivered. */
  get handoffs(): readonly OutgoingHandoff[] {
    return this.outgoing;
  }

  /** Returns the digest under which a delivery was received; undefined if it was not, or is forgotten. */
  deliveredDigest(key: string): string | undefined {
    return this.delivered.get(key)?.digest;
  }

  /** Applies the next entry. */
  apply({ type, key, value }: HostedEntry): void {
    const { plain } = this;
    if (type === HOSTED_STARTED) this.applyStarted(value as unknown as StartedLoop);
    else if (type === HOSTED_PLANNED) this.applyPlanned(value as unknown as DuePlan | null);
    else if (type === HOSTED_REQUESTED) this.applyRequested(value as unknown as RequestedTurn);
    else if (type === HOSTED_WAITING) this.applyWaiting(value as unknown as { readonly for: TurnWait });
    else if (type === HOSTED_CONTINUED && plain.open !== undefined) plain.open = { request: plain.open.request };
    else if (type === HOSTED_ENDED) this.applyEnded(value as unknown as EndedTurn);
    else if (type === HOSTED_STOPPED) this.applyStopped(value as unknown as StoppedLoop);
    else if (type === HOSTED_PAUSED) plain.paused = value as unknown as PausedLoop;
    else if (type === HOSTED_RESUMED) delete plain.paused;
    else if (type === HOSTED_RECEIVED) this.applyReceived(key, value as unknown as ReceivedSignal);
    else if (type === HOSTED_HANDED_OFF) this.outgoing.shift();
  }

  private applyStarted(started: StartedLoop): void {
    const { document, digest, at } = started;
    this.plain = {
      ...this.plain,
      started,
      through: at - 1,
      head: nextHead('', { loop: document.id, digest }),
      asOf: at,
    };
  }

  private applyPlanned(plan: DuePlan | null): void {
    delete this.plain.plan;
    if (plan === null) return;
    this.plain.plan = plan;
    // Due times before the planned one are dealt with, also if a signal causes the next turn.
    // guard: planned-turn-deals-with-earlier-times
    this.plain.through = Math.max(this.plain.through, plan.dueAt - 1);
  }

  private applyRequested(request: RequestedTurn): void {
    const { plain } = this;
    const { turn, at, signal, through, head } = request;
    plain.open = { request };
    plain.turns = turn;
    plain.through = Math.max(plain.through, through);
    plain.head = head;
    delete plain.retryAt;
    delete plain.retryOf;
    if (signal === undefined) return;
    plain.asOf = at;
    const key = deliveryKey(signal);
    const index = this.waiting.findIndex((waiting) => deliveryKey(waiting) === key);
    // guard: admitted-signal-leaves-the-inbox
    if (index !== -1) this.waiting.splice(index, 1);
  }

  private applyWaiting({ for: waitsFor }: { readonly for: TurnWait }): void {
    const { open } = this.plain;
    if (open !== undefined) this.plain.open = { ...open, waitsFor };
  }

  private applyEnded(ended: EndedTurn): void {
    const { plain } = this;
    const { turn, receipt, status, output, at, retryAt, handoffs = [] } = ended;
    plain.unchanged = unchangedAfter(plain, ended);
    plain.failures = status === 'ok' ? 0 : plain.failures + 1;
    if (status === 'ok' && output !== undefined) plain.output = output;
    if (retryAt !== undefined) plain.retryAt = retryAt;
    if (retryAt !== undefined && plain.open !== undefined) plain.retryOf = plain.open.request;
    delete plain.open;
    plain.last = ended;
    plain.head = nextHead(plain.head, { turn, receipt, status });
    plain.asOf = at;
    this.outgoing.push(...handoffs);
  }

  /** A person who stops a loop also stops what it was about to hand off. */
  private applyStopped(stopped: StoppedLoop): void {
    this.plain.stopped ??= stopped;
    if (stopped.reason === 'stopped_by') this.outgoing.length = 0;
  }

  private applyReceived(key: string, { digest, keepUntil, method: _, ...signal }: ReceivedSignal): void {
    const { at } = signal;
    this.waiting.push(signal);
    this.delivered.set(key, { digest, keepUntil });
    for (const [oldest, known] of this.delivered) {
      // guard: delivery-remembered-for-its-time
      if (this.delivered.size <= KEPT_DELIVERIES || known.keepUntil >= at) break;
      this.delivered.delete(oldest);
    }
  }

  /** Returns the state as JSON. */
  save(): Json {
    const { plain, waiting, outgoing, delivered } = this;
    return { plain, waiting, outgoing, delivered: [...delivered] } as unknown as Json;
  }

  private restore({ plain, waiting, outgoing, delivered }: SavedState): void {
    this.plain = { ...plain };
    this.waiting.push(...waiting);
    this.outgoing.push(...outgoing);
    for (const [id, known] of delivered) this.delivered.set(id, known);
  }
}

interface SavedState {
  readonly plain: PlainState;
  readonly waiting: readonly WaitingSignal[];
  readonly outgoing: readonly OutgoingHandoff[];
  readonly delivered: readonly (readonly [string, { readonly digest: string; readonly keepUntil: number }])[];
}

/** Returns what a delivery is known by: its id among those of its signal, since each sender chooses its own ids. */
export function deliveryKey({ id, name }: Pick<WaitingSignal, 'id' | 'name'>): string {
  return name === '' ? id : `${name} ${id}`;
}

/** Returns how many turns in a row have brought no new output, after another one has ended. */
export function unchangedAfter(
  { output, unchanged }: Pick<PlainState, 'output' | 'unchanged'>,
  ended: Pick<EndedTurn, 'status' | 'output'>,
): number {
  // guard: output-compared-with-the-last-one
  const isNew = ended.status === 'ok' && ended.output !== output;
  return isNew ? 0 : unchanged + 1;
}

/** Returns the head after another receipt or admitted event. */
export function nextHead(head: string, item: Json): string {
  return createHash('sha256')
    .update(`${head}\n${canonicalJson(item)}`)
    .digest('hex');
}

/** Returns the digest of a JSON value. */
export function jsonDigest(value: Json): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}
