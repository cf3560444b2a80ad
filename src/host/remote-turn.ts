/**
 * Follows a turn that runs in another process, and serves such followers: the trace from the start, envelopes and
 * deltas live. When that process has finished with the turn or has exited, the caller continues the turn here without
 * repeating events.
 */
import type { Entry } from '../protocol/entry.js';
import type { TraceEvent } from '../protocol/trace.js';
import { TraceBuilder } from '../views/trace.js';
import type { TurnOptions } from './host.js';
import type { FollowTurnRequest, PeerRequest, SendTurnUpdate, TurnUpdate } from './peers.js';
import type { RunningTurn } from './running-turn.js';
import type { SessionActions } from './session-actions.js';
import { hasLiveCallbacks, ignoringErrors, type SessionSubscriber } from './session-feed.js';

/**
 * The client side: passes the updates of another process to the callbacks of a caller. Stream handlers receive nothing
 * from another process.
 */
export class RemoteTurn {
  private readonly options: TurnOptions;
  private receivedEvents = 0;

  constructor(options: TurnOptions) {
    this.options = options;
  }

  /**
   * Returns the request for the trace events that have not been received yet and, for live callbacks, other updates.
   */
  followRequest(sessionId: string, turnId: string): FollowTurnRequest {
    return { verb: 'follow', sessionId, turnId, events: this.receivedEvents, live: hasLiveCallbacks(this.options) };
  }

  /** Passes an update to the callbacks and counts trace events. Errors of the callbacks are ignored. */
  receive(update: TurnUpdate): void {
    const { onEvent, onEnvelope, onDelta } = this.options;
    if ('envelope' in update) return void ignoringErrors(() => onEnvelope?.(update.envelope));
    if ('delta' in update) return void ignoringErrors(() => onDelta?.(update.delta));
    this.receivedEvents += 1;
    ignoringErrors(() => onEvent?.(update.event));
  }

  /** The options to continue the turn here: `onEvent` skips the events that were received already. */
  get remainingOptions(): TurnOptions {
    const { onEvent } = this.options;
    let eventsToSkip = this.receivedEvents;
    if (onEvent === undefined || eventsToSkip === 0) return this.options;
    const onNewEvent = (event: TraceEvent): void => {
      if (eventsToSkip > 0) eventsToSkip -= 1;
      else onEvent(event);
    };
    return { ...this.options, onEvent: onNewEvent };
  }
}

/** What the server side needs of the host. */
interface PeerServerDeps {
  actions(): SessionActions;
  runningTurn(turnId: string): RunningTurn | undefined;
  unstoredEntries(sessionId: string, from: number): readonly Entry[];
  /** Resolves when this process has finished its current task in a session. */
  whenIdle(sessionId: string): Promise<void>;
  subscribe(sessionId: string, subscriber: SessionSubscriber): () => void;
}

/** Returns the function that performs the requests of other processes. */
export function servePeerRequests(
  host: PeerServerDeps,
): (request: PeerRequest, send: SendTurnUpdate) => Promise<unknown> {
  return async (request, send) => {
    const actions = host.actions();
    if (request.verb === 'cancel') return actions.cancel(request.turnId, request.reason);
    if (request.verb === 'answer') return actions.answer(request.answer);
    if (request.verb === 'send') return actions.sendMessage(request.message);
    if (request.verb === 'signal') return actions.signal(request.request);
    if (request.verb === 'resolve')
      return actions.resolveEffect(request.key, request.resolution, request.by, request.value);
    if (request.verb === 'entries') return host.unstoredEntries(request.sessionId, request.from);
    return sendTurnUpdates(host, request, send);
  };
}

/** Sends the updates of a turn until this process has finished its current task in the session. */
async function sendTurnUpdates(host: PeerServerDeps, request: FollowTurnRequest, send: SendTurnUpdate): Promise<void> {
  const { sessionId, turnId, live } = request;
  const subscriber: SessionSubscriber = {
    envelope: (envelope) => send({ envelope }),
    delta: (delta) => send({ delta }, delta.isRestart !== true),
  };
  const unsubscribe = live ? host.subscribe(sessionId, subscriber) : () => {};
  const stopTrace = sendTrace(host.runningTurn(turnId), request, send);
  await host.whenIdle(sessionId);
  stopTrace();
  unsubscribe();
}

/** Sends the trace of a turn if it runs here, without the first `events` events. Returns a function that stops it. */
function sendTrace(
  turn: RunningTurn | undefined,
  { turnId, events }: FollowTurnRequest,
  send: SendTurnUpdate,
): () => void {
  if (turn === undefined) return () => {};
  let eventsToSkip = events;
  const traceBuilder = new TraceBuilder(turnId, (event) => {
    if (eventsToSkip > 0) eventsToSkip -= 1;
    else send({ event });
  });
  for (const entry of turn.entries) traceBuilder.apply(entry);
  return turn.subscribe((entry) => traceBuilder.apply(entry));
}
