/**
 * What is seen of a session while it happens: envelopes as they arise, and pieces that are never kept. Whoever comes
 * late gets the pieces of what is still being said, so nothing is missing when the rest follows.
 */
import type { EventEnvelope } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import type { ToolRefusal } from '../views/conversation.js';
import { StreamDispatcher } from '../views/stream-dispatcher.js';

/** Somebody who watches. What it throws stays with it. */
export interface SessionSubscriber {
  envelope?(envelope: EventEnvelope, refusal?: ToolRefusal): void;
  delta?(delta: LiveDelta): void;
}

/** Pieces of one message or one tool's output, joined. */
type PartialOutput = LiveDelta & { text: string };

const MAX_PARTIAL_CHARS = 1024 * 1024;

export class SessionFeed {
  private readonly subscribers = new Set<SessionSubscriber>();
  private deferred: ((watcher: SessionSubscriber) => void)[] | undefined;
  /** What has begun and is not finished, by what it is part of. */
  private readonly partials = new Map<string, PartialOutput>();

  subscribe(watcher: SessionSubscriber): () => void {
    this.subscribers.add(watcher);
    return () => this.subscribers.delete(watcher);
  }

  get hasSubscribers(): boolean {
    return this.subscribers.size > 0;
  }

  publishDelta(delta: LiveDelta): void {
    if (delta.isRestart) this.dropGeneration(delta.generationId);
    const name = partialKeyOf(delta);
    const known = this.partials.get(name);
    if (known === undefined) this.partials.set(name, { ...delta });
    else if (known.text.length < MAX_PARTIAL_CHARS) known.text += delta.text;
    this.deliver((watcher) => watcher.delta?.(delta));
  }

  /** A finished message, or result, holds what its pieces were. */
  publishEnvelope(envelope: EventEnvelope, refusal?: ToolRefusal): void {
    this.finishPartial(envelope);
    // It arises while an entry is written: whoever hears of it then could write another in the middle of that.
    this.deferred ??= [];
    this.deliver((watcher) => watcher.envelope?.(envelope, refusal));
  }

  /** Tells all who watch, in order; what is late is told when the writing is over. */
  private deliver(news: (watcher: SessionSubscriber) => void): void {
    if (this.subscribers.size === 0) this.deferred = undefined;
    else if (this.deferred === undefined) this.deliverNow(news);
    else if (this.deferred.push(news) === 1) queueMicrotask(() => this.flush());
  }

  private deliverNow(news: (watcher: SessionSubscriber) => void): void {
    for (const watcher of this.subscribers) ignoringErrors(() => news(watcher));
  }

  /** Tells what is late. */
  flush(): void {
    const { deferred = [] } = this;
    this.deferred = undefined;
    for (const news of deferred) this.deliverNow(news);
  }

  /** What a generation was saying is said anew. */
  private dropGeneration(generationId: string): void {
    for (const [name, open] of this.partials) if (open.generationId === generationId) this.partials.delete(name);
  }

  /** Everything that is being said right now, in one piece each. */
  partialDeltas(): readonly LiveDelta[] {
    return [...this.partials.values()];
  }

  /** Nobody says anything any more. */
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

/** Who only listens must not harm the run. */
export function ignoringErrors(tell: () => void): void {
  try {
    tell();
  } catch {
    // What was told is in the journal all the same.
  }
}

/** Whether whoever asked for a turn watches it. */
export function hasLiveCallbacks({ onEnvelope, onDelta, stream }: LiveCallbacks): boolean {
  return onEnvelope !== undefined || onDelta !== undefined || stream !== undefined;
}

/** Whoever asked for a turn watches it, until it ends; leaving waits for handlers that are still at work. */
export function subscribeCallbacks(
  live: SessionFeed,
  options: LiveCallbacks,
  since: number,
): { leave(): Promise<void> } {
  const { onEnvelope, onDelta, stream } = options;
  const streaming = stream && new StreamDispatcher(stream, () => {}, since);
  const leave = live.subscribe({
    envelope: (envelope, refusal) => {
      onEnvelope?.(envelope);
      streaming?.envelope(envelope, refusal);
    },
    delta: (delta) => {
      onDelta?.(delta);
      streaming?.delta(delta);
    },
  });
  return {
    leave: async () => {
      live.flush();
      leave();
      await streaming?.settled();
    },
  };
}

interface LiveCallbacks {
  readonly onEnvelope?: (envelope: EventEnvelope) => void;
  readonly onDelta?: (delta: LiveDelta) => void;
  readonly stream?: StreamHandlers;
}
