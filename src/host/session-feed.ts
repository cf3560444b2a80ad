/**
 * The live feed of a session: envelopes (events with an id) when they are created, and deltas, which are never
 * journaled. The feed joins the deltas of unfinished messages, so that a late subscriber can receive them first.
 */
import type { EventEnvelope } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import type { ToolRefusal } from '../views/conversation.js';
import { StreamDispatcher } from '../views/stream-dispatcher.js';

/** A subscriber to a session. Errors that it throws are ignored. */
export interface SessionSubscriber {
  /** Receives an envelope. `refusal` is set for a tool call that was refused before it started. */
  envelope?(envelope: EventEnvelope, refusal?: ToolRefusal): void;
  /** Receives a piece of a message or of tool output. */
  delta?(delta: LiveDelta): void;
}

/** The joined deltas of one unfinished message or tool output. */
type PartialOutput = LiveDelta & { text: string };

/** The length at which joined deltas stop growing. Later deltas are still published. */
const MAX_PARTIAL_CHARS = 1024 * 1024;

/** Publishes envelopes and deltas of one session to its subscribers, in order. */
export class SessionFeed {
  private readonly subscribers = new Set<SessionSubscriber>();
  /** Notifications that wait for the next microtask; undefined if none waits. */
  private deferred: ((subscriber: SessionSubscriber) => void)[] | undefined;
  /** Unfinished messages and tool outputs, by kind, generation and tool call. */
  private readonly partials = new Map<string, PartialOutput>();

  /** Adds a subscriber. Returns a function that removes it. */
  subscribe(subscriber: SessionSubscriber): () => void {
    this.subscribers.add(subscriber);
    return () => this.subscribers.delete(subscriber);
  }

  /** True if the feed has at least one subscriber. */
  get hasSubscribers(): boolean {
    return this.subscribers.size > 0;
  }

  /** Publishes a delta and adds it to the partial output that it continues. */
  publishDelta(delta: LiveDelta): void {
    if (delta.isRestart) this.dropGeneration(delta.generationId);
    const key = partialKeyOf(delta);
    const partial = this.partials.get(key);
    if (partial === undefined) this.partials.set(key, { ...delta });
    else if (partial.text.length < MAX_PARTIAL_CHARS) partial.text += delta.text;
    this.deliver((subscriber) => subscriber.delta?.(delta));
  }

  /** Publishes an envelope in the next microtask. The envelope of a finished message or result replaces its deltas. */
  publishEnvelope(envelope: EventEnvelope, refusal?: ToolRefusal): void {
    this.finishPartial(envelope);
    // Envelopes are created while an entry is being written. Delivery is deferred, because a subscriber may itself
    // write an entry.
    this.deferred ??= [];
    this.deliver((subscriber) => subscriber.envelope?.(envelope, refusal));
  }

  /** Calls all subscribers: at once, or after the deferred notifications if there are any. */
  private deliver(notify: (subscriber: SessionSubscriber) => void): void {
    if (this.subscribers.size === 0) this.deferred = undefined;
    else if (this.deferred === undefined) this.deliverNow(notify);
    else if (this.deferred.push(notify) === 1) queueMicrotask(() => this.flush());
  }

  private deliverNow(notify: (subscriber: SessionSubscriber) => void): void {
    for (const subscriber of this.subscribers) ignoringErrors(() => notify(subscriber));
  }

  /** Delivers the deferred notifications at once. */
  flush(): void {
    const { deferred = [] } = this;
    this.deferred = undefined;
    for (const notify of deferred) this.deliverNow(notify);
  }

  /** Discards the partial output of a generation that starts its reply again. */
  private dropGeneration(generationId: string): void {
    for (const [key, partial] of this.partials) if (partial.generationId === generationId) this.partials.delete(key);
  }

  /** Returns the unfinished messages and tool outputs, each as one delta. */
  partialDeltas(): readonly LiveDelta[] {
    return [...this.partials.values()];
  }

  /** Discards all partial output. Call it when the turn has ended or paused. */
  clearPartials(): void {
    this.partials.clear();
  }

  private finishPartial({ type, generationId, content }: EventEnvelope): void {
    if (this.partials.size === 0) return;
    if (type === 'tool-result' || type === 'tool-error')
      this.partials.delete(`tool-output ${generationId} ${content.toolCallId}`);
    else if (type === 'tool-call') this.partials.delete(`tool-input ${generationId} ${content.toolCallId}`);
    else if (type === 'reasoning') this.partials.delete(`reasoning ${generationId} `);
    else if (type === 'assistant-message' || type === 'other-agent-message')
      this.partials.delete(`text ${generationId} `);
  }
}

function partialKeyOf({ kind, generationId, toolCallId = '' }: LiveDelta): string {
  return `${kind} ${generationId} ${toolCallId}`;
}

/** Runs a callback of a subscriber. Its errors are ignored, so that they cannot fail the turn. */
export function ignoringErrors(callback: () => void): void {
  try {
    callback();
  } catch {
    // The journal is complete without the subscriber.
  }
}

/** Returns true if the options of a turn have a callback for envelopes or deltas. */
export function hasLiveCallbacks({ onEnvelope, onDelta, stream }: LiveCallbacks): boolean {
  return onEnvelope !== undefined || onDelta !== undefined || stream !== undefined;
}

/**
 * Subscribes the callbacks of a turn to a feed. Stream handlers treat envelopes of entries before the sequence number
 * `firstSeq` as known already.
 * `unsubscribe` resolves when the last stream handler has finished.
 */
export function subscribeCallbacks(
  feed: SessionFeed,
  options: LiveCallbacks,
  firstSeq: number,
): { unsubscribe(): Promise<void> } {
  const { onEnvelope, onDelta, stream } = options;
  const dispatcher = stream && new StreamDispatcher(stream, () => {}, firstSeq);
  const unsubscribe = feed.subscribe({
    envelope: (envelope, refusal) => {
      onEnvelope?.(envelope);
      dispatcher?.envelope(envelope, refusal);
    },
    delta: (delta) => {
      onDelta?.(delta);
      dispatcher?.delta(delta);
    },
  });
  return {
    unsubscribe: async () => {
      feed.flush();
      unsubscribe();
      await dispatcher?.settled();
    },
  };
}

interface LiveCallbacks {
  readonly onEnvelope?: (envelope: EventEnvelope) => void;
  readonly onDelta?: (delta: LiveDelta) => void;
  readonly stream?: StreamHandlers;
}
