/**
 * Requests between the hosts of different processes. A host that is asked about a session which runs elsewhere puts the request
 * to the process that runs it, and that one does what it would have done for a caller of its own. A request whose answer was lost is
 * put again under the same id, and answered again without being done twice.
 */
import type { Ids } from '../journal/clock.js';
import type { Leases } from '../journal/store.js';
import type { ApprovalAnswer } from '../protocol/approval.js';
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { Json } from '../protocol/json.js';
import type { LiveDelta } from '../protocol/live.js';
import type { TraceEvent } from '../protocol/trace.js';
import type { SessionMessage } from './turn-request.js';

/** What one host asks of another. */
export type PeerRequest =
  | { readonly verb: 'cancel'; readonly turnId: string; readonly reason: string }
  | { readonly verb: 'answer'; readonly answer: ApprovalAnswer }
  | { readonly verb: 'send'; readonly message: SessionMessage }
  | {
      readonly verb: 'resolve';
      readonly key: string;
      readonly resolution: 'retry' | 'supply' | 'fail';
      readonly by: string;
      readonly value?: Json;
    }
  | FollowTurnRequest
  | { readonly verb: 'entries'; readonly sessionId: string; readonly from: number };

/** Follows a turn until the process that runs it is done with it. */
export interface FollowTurnRequest {
  readonly verb: 'follow';
  readonly sessionId: string;
  readonly turnId: string;
  /** How many events of its trace are known already. */
  readonly events: number;
  /** Asks for envelopes and deltas too. */
  readonly live: boolean;
}

/** What happens in a turn that is followed. */
export type TurnUpdate =
  | { readonly event: TraceEvent }
  | { readonly envelope: EventEnvelope }
  | { readonly delta: LiveDelta };

export type SendTurnUpdate = (piece: TurnUpdate, droppable?: boolean) => void;

/** What another process answered; or that none is at the session, and whether one may have got the request before. */
export type RoutedReply =
  | { readonly answered: true; readonly value: Json }
  | { readonly answered: false; readonly retried: boolean };

/** How long a look at what another process has not stored yet may take. */
const UNSTORED_TIMEOUT_MS = 1000;
/** Answers that are remembered, for a request that is put again. */
const MAX_REMEMBERED_ANSWERS = 1000;

type IdentifiedRequest = PeerRequest & { readonly id?: string };

export class PeerHosts {
  private readonly leases: Leases;
  private readonly ids: Ids;
  private readonly perform: (request: PeerRequest, send: SendTurnUpdate) => Promise<unknown>;
  private answers: Map<string, Promise<Json>> | undefined;

  /** `perform` does what another host asks of this one. */
  constructor(leases: Leases, ids: Ids, perform: (request: PeerRequest, send: SendTurnUpdate) => Promise<unknown>) {
    this.leases = leases;
    this.ids = ids;
    this.perform = perform;
  }

  /** Puts a request to the process that works on a session. */
  async route(sessionId: string, request: PeerRequest): Promise<RoutedReply> {
    const identified = { ...request, id: this.ids.id() } as unknown as Json;
    for (let retried = false; ; retried = true) {
      const reply = await this.leases.request(sessionId, identified);
      if (reply.status === 'answered') return { answered: true, value: reply.value };
      if (reply.status === 'nobody') return { answered: false, retried };
    }
  }

  /** Follows a turn in another process; returns when that process is done, or gone. */
  async followTurn(request: FollowTurnRequest, onPiece: (piece: TurnUpdate) => void): Promise<void> {
    const options = { onChunk: (piece: Json) => onPiece(piece as unknown as TurnUpdate) };
    await this.leases.request(request.sessionId, request as unknown as Json, options);
  }

  /** Entries that the process at work on a session has written and not stored yet. */
  async unstoredEntries(sessionId: string, from: number): Promise<readonly Entry[]> {
    const request: PeerRequest = { verb: 'entries', sessionId, from };
    const reply = await this.leases.request(sessionId, request as unknown as Json, { timeoutMs: UNSTORED_TIMEOUT_MS });
    return reply.status === 'answered' ? (reply.value as unknown as readonly Entry[]) : [];
  }

  /** Answers another host. */
  answer(given: Json, send: (piece: Json, droppable?: boolean) => void): Promise<Json> {
    const request = given as unknown as IdentifiedRequest;
    const { id } = request;
    const known = id === undefined ? undefined : this.answers?.get(id);
    if (known !== undefined) return known;
    const answer = this.performRequest(request, (piece, droppable) => send(piece as unknown as Json, droppable));
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
