/**
 * Following a turn that another process runs: its trace from the beginning, and live what is said. When the turn comes to an end,
 * or its process does, the caller goes on here, and what was received already is not repeated.
 */
import type { Entry } from '../protocol/entry.js';
import type { TraceEvent } from '../protocol/trace.js';
import { TraceBuilder } from '../views/trace.js';
import type { TurnOptions } from './host.js';
import type { FollowTurnRequest, PeerRequest, SendTurnUpdate, TurnUpdate } from './peers.js';
import type { RunningTurn } from './running-turn.js';
import type { SessionActions } from './session-actions.js';
import { hasLiveCallbacks, ignoringErrors, type SessionSubscriber } from './session-feed.js';

export class RemoteTurn {
  private readonly options: TurnOptions;
  private receivedEvents = 0;

  constructor(options: TurnOptions) {
    this.options = options;
  }

  followRequest(sessionId: string, turnId: string): FollowTurnRequest {
    return { verb: 'follow', sessionId, turnId, events: this.receivedEvents, live: hasLiveCallbacks(this.options) };
  }

  receive(piece: TurnUpdate): void {
    const { onEvent, onEnvelope, onDelta } = this.options;
    if ('envelope' in piece) return void ignoringErrors(() => onEnvelope?.(piece.envelope));
    if ('delta' in piece) return void ignoringErrors(() => onDelta?.(piece.delta));
    this.receivedEvents += 1;
    ignoringErrors(() => onEvent?.(piece.event));
  }

  /** The options for going on with the turn here. */
  get remainingOptions(): TurnOptions {
    const { onEvent } = this.options;
    let known = this.receivedEvents;
    if (onEvent === undefined || known === 0) return this.options;
    const rest = (event: TraceEvent): void => {
      if (known > 0) known -= 1;
      else onEvent(event);
    };
    return { ...this.options, onEvent: rest };
  }
}

/** What a host does for the hosts of other processes. */
export interface PeerServerDeps {
  actions(): SessionActions;
  runningTurn(turnId: string): RunningTurn | undefined;
  unstoredEntries(sessionId: string, from: number): readonly Entry[];
  /** Resolves when this process is done with what it does in a session. */
  whenIdle(sessionId: string): Promise<void>;
  subscribe(sessionId: string, watcher: SessionSubscriber): () => void;
}

/** Does what the host of another process asks. */
export function servePeerRequests(
  parts: PeerServerDeps,
): (request: PeerRequest, send: SendTurnUpdate) => Promise<unknown> {
  return async (request, send) => {
    const actions = parts.actions();
    if (request.verb === 'cancel') return actions.cancel(request.turnId, request.reason);
    if (request.verb === 'answer') return actions.answer(request.answer);
    if (request.verb === 'send') return actions.sendMessage(request.message);
    if (request.verb === 'resolve')
      return actions.resolveEffect(request.key, request.resolution, request.by, request.value);
    if (request.verb === 'entries') return parts.unstoredEntries(request.sessionId, request.from);
    return sendTurnUpdates(parts, request, send);
  };
}

/** Sends what happens in a turn, until this process is done with it. */
async function sendTurnUpdates(parts: PeerServerDeps, request: FollowTurnRequest, send: SendTurnUpdate): Promise<void> {
  const { sessionId, turnId, live } = request;
  const watcher: SessionSubscriber = {
    envelope: (envelope) => send({ envelope }),
    delta: (delta) => send({ delta }, delta.isRestart !== true),
  };
  const unwatch = live ? parts.subscribe(sessionId, watcher) : () => {};
  const leave = sendTrace(parts.runningTurn(turnId), request, send);
  await parts.whenIdle(sessionId);
  leave();
  unwatch();
}

/** Sends the trace of a running turn to another process: what it does not know of it, then what happens; returns how to stop. */
function sendTrace(
  turn: RunningTurn | undefined,
  { turnId, events }: FollowTurnRequest,
  send: SendTurnUpdate,
): () => void {
  if (turn === undefined) return () => {};
  let known = events;
  const tracing = new TraceBuilder(turnId, (event) => {
    if (known > 0) known -= 1;
    else send({ event });
  });
  for (const entry of turn.entries) tracing.apply(entry);
  return turn.subscribe((entry) => tracing.apply(entry));
}
