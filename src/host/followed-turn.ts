/**
 * Following a turn that another process runs: its trace from the beginning, and live what is said. When the turn comes to an end,
 * or its process does, the caller goes on here, and what was received already is not repeated.
 */
import type { Entry } from '../protocol/entry.js';
import type { TraceEvent } from '../protocol/trace.js';
import { Tracing } from '../views/trace.js';
import type { SessionActions } from './actions.js';
import type { Attendance } from './attendance.js';
import type { TurnOptions } from './host.js';
import { isWatched, unharmed, type Watcher } from './live.js';
import type { Attend, PeerRequest, Piece, SendPiece } from './peers.js';

export class FollowedTurn {
  private readonly options: TurnOptions;
  private events = 0;

  constructor(options: TurnOptions) {
    this.options = options;
  }

  request(sessionId: string, turnId: string): Attend {
    return { verb: 'attend', sessionId, turnId, events: this.events, live: isWatched(this.options) };
  }

  receive(piece: Piece): void {
    const { onEvent, onEnvelope, onDelta } = this.options;
    if ('envelope' in piece) return void unharmed(() => onEnvelope?.(piece.envelope));
    if ('delta' in piece) return void unharmed(() => onDelta?.(piece.delta));
    this.events += 1;
    unharmed(() => onEvent?.(piece.event));
  }

  /** The options for going on with the turn here. */
  get remaining(): TurnOptions {
    const { onEvent } = this.options;
    let known = this.events;
    if (onEvent === undefined || known === 0) return this.options;
    const rest = (event: TraceEvent): void => {
      if (known > 0) known -= 1;
      else onEvent(event);
    };
    return { ...this.options, onEvent: rest };
  }
}

/** What a host does for the hosts of other processes. */
export interface ServingParts {
  actions(): SessionActions;
  running(turnId: string): Attendance | undefined;
  unstored(sessionId: string, from: number): readonly Entry[];
  /** Resolves when this process is done with what it does in a session. */
  idle(sessionId: string): Promise<void>;
  watch(sessionId: string, watcher: Watcher): () => void;
}

/** Does what the host of another process asks. */
export function servingPeers(parts: ServingParts): (request: PeerRequest, send: SendPiece) => Promise<unknown> {
  return async (request, send) => {
    const actions = parts.actions();
    if (request.verb === 'cancel') return actions.cancel(request.turnId, request.reason);
    if (request.verb === 'answer') return actions.answer(request.answer);
    if (request.verb === 'say') return actions.say(request.message);
    if (request.verb === 'decide') return actions.decide(request.key, request.decision, request.by, request.value);
    if (request.verb === 'entries') return parts.unstored(request.sessionId, request.from);
    return attended(parts, request, send);
  };
}

/** Sends what happens in a turn, until this process is done with it. */
async function attended(parts: ServingParts, request: Attend, send: SendPiece): Promise<void> {
  const { sessionId, turnId, live } = request;
  const watcher: Watcher = {
    envelope: (envelope) => send({ envelope }),
    delta: (delta) => send({ delta }, delta.again !== true),
  };
  const unwatch = live ? parts.watch(sessionId, watcher) : () => {};
  const leave = sendTrace(parts.running(turnId), request, send);
  await parts.idle(sessionId);
  leave();
  unwatch();
}

/** Sends the trace of a running turn to another process: what it does not know of it, then what happens; returns how to stop. */
function sendTrace(turn: Attendance | undefined, { turnId, events }: Attend, send: SendPiece): () => void {
  if (turn === undefined) return () => {};
  let known = events;
  const tracing = new Tracing(turnId, (event) => {
    if (known > 0) known -= 1;
    else send({ event });
  });
  for (const entry of turn.entries) tracing.apply(entry);
  return turn.listen((entry) => tracing.apply(entry));
}
