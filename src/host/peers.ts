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
import type { Message } from './request.js';

/** What one host asks of another. */
export type PeerRequest =
  | { readonly verb: 'cancel'; readonly turnId: string; readonly reason: string }
  | { readonly verb: 'answer'; readonly answer: ApprovalAnswer }
  | { readonly verb: 'say'; readonly message: Message }
  | {
      readonly verb: 'decide';
      readonly key: string;
      readonly decision: 'retry' | 'supply' | 'fail';
      readonly by: string;
      readonly value?: Json;
    }
  | Attend
  | { readonly verb: 'entries'; readonly sessionId: string; readonly from: number };

/** Follows a turn until the process that runs it is done with it. */
export interface Attend {
  readonly verb: 'attend';
  readonly sessionId: string;
  readonly turnId: string;
  /** How many events of its trace are known already. */
  readonly events: number;
  /** Asks for envelopes and deltas too. */
  readonly live: boolean;
}

/** What happens in a turn that is followed. */
export type Piece =
  | { readonly event: TraceEvent }
  | { readonly envelope: EventEnvelope }
  | { readonly delta: LiveDelta };

export type SendPiece = (piece: Piece, droppable?: boolean) => void;

/** What another process answered; or that none is at the session, and whether one may have got the request before. */
export type Routed =
  | { readonly answered: true; readonly value: Json }
  | { readonly answered: false; readonly retried: boolean };

/** How long a look at what another process has not stored yet may take. */
const LOOK_MS = 1000;
/** Answers that are remembered, for a request that is put again. */
const MAX_REMEMBERED = 1000;

type Identified = PeerRequest & { readonly id?: string };

export class PeerHosts {
  private readonly leases: Leases;
  private readonly ids: Ids;
  private readonly perform: (request: PeerRequest, send: SendPiece) => Promise<unknown>;
  private answers: Map<string, Promise<Json>> | undefined;

  /** `perform` does what another host asks of this one. */
  constructor(leases: Leases, ids: Ids, perform: (request: PeerRequest, send: SendPiece) => Promise<unknown>) {
    this.leases = leases;
    this.ids = ids;
    this.perform = perform;
  }

  /** Puts a request to the process that works on a session. */
  async route(sessionId: string, request: PeerRequest): Promise<Routed> {
    const identified = { ...request, id: this.ids.id() } as unknown as Json;
    for (let retried = false; ; retried = true) {
      const reply = await this.leases.ask(sessionId, identified);
      if (reply.status === 'answered') return { answered: true, value: reply.value };
      if (reply.status === 'nobody') return { answered: false, retried };
    }
  }

  /** Follows a turn in another process; returns when that process is done, or gone. */
  async attend(request: Attend, onPiece: (piece: Piece) => void): Promise<void> {
    const options = { onPiece: (piece: Json) => onPiece(piece as unknown as Piece) };
    await this.leases.ask(request.sessionId, request as unknown as Json, options);
  }

  /** Entries that the process at work on a session has written and not stored yet. */
  async unstored(sessionId: string, from: number): Promise<readonly Entry[]> {
    const request: PeerRequest = { verb: 'entries', sessionId, from };
    const reply = await this.leases.ask(sessionId, request as unknown as Json, { timeoutMs: LOOK_MS });
    return reply.status === 'answered' ? (reply.value as unknown as readonly Entry[]) : [];
  }

  /** Answers another host. */
  answer(given: Json, send: (piece: Json, droppable?: boolean) => void): Promise<Json> {
    const request = given as unknown as Identified;
    const { id } = request;
    const known = id === undefined ? undefined : this.answers?.get(id);
    if (known !== undefined) return known;
    const answer = this.performed(request, (piece, droppable) => send(piece as unknown as Json, droppable));
    if (id !== undefined) this.remember(id, answer);
    return answer;
  }

  private async performed(request: PeerRequest, send: SendPiece): Promise<Json> {
    return ((await this.perform(request, send)) ?? null) as Json;
  }

  private remember(id: string, answer: Promise<Json>): void {
    this.answers ??= new Map();
    this.answers.set(id, answer);
    answer.catch(() => undefined);
    if (this.answers.size <= MAX_REMEMBERED) return;
    const [oldest] = this.answers.keys();
    if (oldest !== undefined) this.answers.delete(oldest);
  }
}
