/**
 * Follows a turn that runs in another process, and serves such followers: the trace from the start, envelopes and
 * deltas live. When that process has finished with the turn or has exited, the caller continues the turn here without
 * repeating events.
 */
import type { TraceEvent } from '../protocol/trace.js';
import { StreamDispatcher } from '../views/stream-dispatcher.js';
import { TraceBuilder } from '../views/trace.js';
import type { TurnOptions } from './host-options.js';
import type { FollowTurnRequest, PeerRequest, SendTurnUpdate, TurnUpdate } from './peers.js';
import type { RunningTurn } from './running-turn.js';
import type { SessionActions } from './session-actions.js';
import { hasLiveCallbacks, ignoringErrors, type SessionSubscriber } from './session-feed.js';
import type { SessionQueues } from './session-queues.js';
import type { Subscriptions } from './subscriptions.js';
import type { TurnRunner } from './turn-runner.js';

/** The client side: passes the updates of another process to the callbacks of a caller. */
export class RemoteTurn {
  private readonly options: TurnOptions;
  private receivedEvents = 0;
  /** Calls the stream handlers; created with the first update from another process. */
  private dispatcher: StreamDispatcher | undefined;

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
    const { onEvent, onEnvelope, onDelta, stream } = this.options;
    if (stream !== undefined) this.dispatcher ??= new StreamDispatcher(stream, () => {});
    if ('envelope' in update) {
      ignoringErrors(() => onEnvelope?.(update.envelope));
      this.dispatcher?.envelope(update.envelope, update.refusal);
    } else if ('delta' in update) {
      ignoringErrors(() => onDelta?.(update.delta));
      this.dispatcher?.delta(update.delta);
    } else {
      this.receivedEvents += 1;
      ignoringErrors(() => onEvent?.(update.event));
    }
  }

  /** Resolves when the stream handlers have finished with the updates received so far. */
  async settled(): Promise<void> {
    await this.dispatcher?.settled();
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
  readonly actions: SessionActions;
  readonly turns: TurnRunner;
  readonly sessionQueues: SessionQueues;
  readonly subscriptions: Subscriptions;
}

/** Performs a request of another process. */
export async function performPeerRequest(
  host: PeerServerDeps,
  request: PeerRequest,
  send: SendTurnUpdate,
): Promise<unknown> {
  const { actions, turns } = host;
  if (request.verb === 'cancel') return actions.cancel(request.turnId, request.reason);
  if (request.verb === 'answer') return actions.answer(request.answer);
  if (request.verb === 'send') return actions.sendMessage(request.message);
  if (request.verb === 'signal') return actions.signal(request.request);
  if (request.verb === 'resolve')
    return actions.resolveEffect(request.key, request.resolution, request.by, request.value);
  if (request.verb === 'entries') return turns.unstoredEntries(request.sessionId, request.from);
  return sendTurnUpdates(host, request, send);
}

/** Sends the updates of a turn until this process has finished its current task in the session. */
async function sendTurnUpdates(host: PeerServerDeps, request: FollowTurnRequest, send: SendTurnUpdate): Promise<void> {
  const { sessionId, turnId, live } = request;
  const subscriber: SessionSubscriber = {
    envelope: (envelope, refusal) => send(refusal === undefined ? { envelope } : { envelope, refusal }),
    delta: (delta) => send({ delta }, delta.isRestart !== true),
  };
  const unsubscribe = live ? host.subscriptions.subscribe(sessionId, subscriber) : () => {};
  const stopTrace = sendTrace(host.turns.get(turnId), request, send);
  await host.sessionQueues.whenIdle(sessionId);
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
