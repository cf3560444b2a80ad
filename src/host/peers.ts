/**
 * Requests between the hosts of the processes that share a store. A host sends an action on a session to the process
 * that holds the session, which performs it like an action of a local caller. A request whose reply is lost is sent
 * again under the same id, and the receiver returns its remembered answer instead of performing the request twice.
 */
import type { Ids } from '../journal/clock.js';
import type { Leases } from '../journal/store.js';
import type { ApprovalAnswer } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { Json } from '../protocol/json.js';
import type { LiveDelta } from '../protocol/live.js';
import type { TraceEvent } from '../protocol/trace.js';
import type { ToolRefusal } from '../views/conversation.js';
import type { SignalRequest } from './signal-request.js';
import type { SessionMessage } from './turn-request.js';

/** A request from one host to another. */
export type PeerRequest =
  | { readonly verb: 'cancel'; readonly turnId: string; readonly reason: string }
  | { readonly verb: 'answer'; readonly answer: ApprovalAnswer }
  | { readonly verb: 'send'; readonly message: SessionMessage }
  | { readonly verb: 'signal'; readonly request: SignalRequest }
  | {
      readonly verb: 'resolve';
      readonly key: string;
      readonly resolution: 'retry' | 'supply' | 'fail';
      readonly by: string;
      readonly value?: Json;
    }
  | FollowTurnRequest
  | { readonly verb: 'entries'; readonly sessionId: string; readonly from: number };

/** Requests the updates of a turn until the other process has finished with it. */
export interface FollowTurnRequest {
  readonly verb: 'follow';
  readonly sessionId: string;
  readonly turnId: string;
  /** The number of trace events that the client has received already. */
  readonly events: number;
  /** True to receive envelopes and deltas as well. */
  readonly live: boolean;
}

/** One update of a followed turn. */
export type TurnUpdate =
  | { readonly event: TraceEvent }
  | { readonly envelope: EventEnvelope; readonly refusal?: ToolRefusal }
  | { readonly delta: LiveDelta };

/** Sends an update to the client. A droppable update may be skipped for a slow reader. */
export type SendTurnUpdate = (update: TurnUpdate, droppable?: boolean) => void;

/**
 * The outcome of a routed request: the answer of the process that holds the session, or `answered: false` if no process
 * holds it. `retried` is true if the reply of an earlier holder was lost, which may have performed the request.
 */
export type RoutedReply =
  | { readonly answered: true; readonly value: Json }
  | { readonly answered: false; readonly retried: boolean };

/** The time limit for reading unstored entries from another process, in milliseconds. */
const UNSTORED_TIMEOUT_MS = 1000;
/** The maximum number of answers that are remembered for repeated requests. */
const MAX_REMEMBERED_ANSWERS = 1000;

/** A request with its idempotency key. `follow` and `entries` have none, because they may be performed twice. */
type IdentifiedRequest = PeerRequest & { readonly id?: string };

/** The client and server side of requests between hosts. */
export class PeerHosts {
  private readonly leases: Leases;
  private readonly ids: Ids;
  private readonly perform: (request: PeerRequest, send: SendTurnUpdate) => Promise<unknown>;
  private answers: Map<string, Promise<Json>> | undefined;

  /** `perform` performs the requests of other hosts. */
  constructor(leases: Leases, ids: Ids, perform: (request: PeerRequest, send: SendTurnUpdate) => Promise<unknown>) {
    this.leases = leases;
    this.ids = ids;
    this.perform = perform;
  }

  /**
   * Sends a request to the process that holds a session, and repeats it while replies are lost. Throws the errors that
   * the other process throws.
   */
  async route(sessionId: string, request: PeerRequest): Promise<RoutedReply> {
    const identified = { ...request, id: this.ids.id() } as unknown as Json;
    for (let retried = false; ; retried = true) {
      const reply = await this.leases.request(sessionId, identified);
      if (reply.status === 'answered') return { answered: true, value: reply.value };
      if (reply.status === 'not-held') return { answered: false, retried };
    }
  }

  /**
   * Follows a turn in another process. Resolves when that process has finished with the session or has exited, and at
   * once if no process holds the session.
   */
  async followTurn(request: FollowTurnRequest, onUpdate: (update: TurnUpdate) => void): Promise<void> {
    const options = { onChunk: (chunk: Json) => onUpdate(chunk as unknown as TurnUpdate) };
    await this.leases.request(request.sessionId, request as unknown as Json, options);
  }

  /** Resolves when the process that runs a turn has finished with it or has exited; at once if none runs it. */
  whenFinished(sessionId: string, turnId: string): Promise<void> {
    return this.followTurn({ verb: 'follow', sessionId, turnId, events: 0, live: false }, () => {});
  }

  /**
   * Returns the entries of a running turn, from sequence number `from` on, from the process that holds its session.
   * Some may not be stored yet. Returns an empty list if no process holds the session or the reply is lost or late.
   */
  async unstoredEntries(sessionId: string, from: number): Promise<readonly Entry[]> {
    const request: PeerRequest = { verb: 'entries', sessionId, from };
    const reply = await this.leases.request(sessionId, request as unknown as Json, { timeoutMs: UNSTORED_TIMEOUT_MS });
    return reply.status === 'answered' ? (reply.value as unknown as readonly Entry[]) : [];
  }

  /** Answers a request of another host. A repeated request gets the remembered answer. */
  answer(json: Json, send: (chunk: Json, droppable?: boolean) => void): Promise<Json> {
    const request = json as unknown as IdentifiedRequest;
    const { id } = request;
    const remembered = id === undefined ? undefined : this.answers?.get(id);
    if (remembered !== undefined) return remembered;
    const answer = this.performRequest(request, (update, droppable) => send(update as unknown as Json, droppable));
    if (id !== undefined) this.rememberAnswer(id, answer);
    return answer;
  }

  private async performRequest(request: PeerRequest, send: SendTurnUpdate): Promise<Json> {
    return ((await this.perform(request, send)) ?? null) as Json;
  }

  private rememberAnswer(id: string, answer: Promise<Json>): void {
    this.answers ??= new Map();
    this.answers.set(id, answer);
    answer.catch(() => undefined);
    if (this.answers.size <= MAX_REMEMBERED_ANSWERS) return;
    const [oldest] = this.answers.keys();
    if (oldest !== undefined) this.answers.delete(oldest);
  }
}
