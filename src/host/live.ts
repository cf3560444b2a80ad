/**
 * What is seen of a session while it happens: envelopes as they arise, and pieces that are never kept. Whoever comes
 * late gets the pieces of what is still being said, so nothing is missing when the rest follows.
 */
import type { EventEnvelope } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import type { Refusal } from '../views/conversation.js';
import { Streaming } from '../views/streaming.js';

/** Somebody who watches. What it throws stays with it. */
export interface Watcher {
  envelope?(envelope: EventEnvelope, refusal?: Refusal): void;
  delta?(delta: LiveDelta): void;
}

/** Pieces of one message or one tool's output, joined. */
type Open = LiveDelta & { text: string };

const MOST_KEPT = 1024 * 1024;

export class Live {
  private readonly watchers = new Set<Watcher>();
  private late: ((watcher: Watcher) => void)[] | undefined;
  /** What has begun and is not finished, by what it is part of. */
  private readonly open = new Map<string, Open>();

  watch(watcher: Watcher): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  get watched(): boolean {
    return this.watchers.size > 0;
  }

  delta(delta: LiveDelta): void {
    if (delta.again) this.forget(delta.generationId);
    const name = nameOf(delta);
    const known = this.open.get(name);
    if (known === undefined) this.open.set(name, { ...delta });
    else if (known.text.length < MOST_KEPT) known.text += delta.text;
    this.tell((watcher) => watcher.delta?.(delta));
  }

  /** A finished message, or result, holds what its pieces were. */
  envelope(envelope: EventEnvelope, refusal?: Refusal): void {
    this.finish(envelope);
    // It arises while an entry is written: whoever hears of it then could write another in the middle of that.
    this.late ??= [];
    this.tell((watcher) => watcher.envelope?.(envelope, refusal));
  }

  /** Tells all who watch, in order; what is late is told when the writing is over. */
  private tell(news: (watcher: Watcher) => void): void {
    if (this.watchers.size === 0) this.late = undefined;
    else if (this.late === undefined) this.now(news);
    else if (this.late.push(news) === 1) queueMicrotask(() => this.flush());
  }

  private now(news: (watcher: Watcher) => void): void {
    for (const watcher of this.watchers) unharmed(() => news(watcher));
  }

  /** Tells what is late. */
  flush(): void {
    const { late = [] } = this;
    this.late = undefined;
    for (const news of late) this.now(news);
  }

  /** What a generation was saying is said anew. */
  private forget(generationId: string): void {
    for (const [name, open] of this.open) if (open.generationId === generationId) this.open.delete(name);
  }

  /** Everything that is being said right now, in one piece each. */
  unfinished(): readonly LiveDelta[] {
    return [...this.open.values()];
  }

  /** Nobody says anything any more. */
  end(): void {
    this.open.clear();
  }

  private finish({ type, generationId, content }: EventEnvelope): void {
    if (this.open.size === 0) return;
    if (type === 'tool-result' || type === 'tool-error')
      this.open.delete(`tool-output ${generationId} ${content.toolCallId}`);
    else if (type === 'tool-call') this.open.delete(`tool-input ${generationId} ${content.toolCallId}`);
    else if (type === 'reasoning') this.open.delete(`reasoning ${generationId} `);
    else if (type === 'assistant-message' || type === 'other-agent-message') this.open.delete(`text ${generationId} `);
  }
}

function nameOf({ kind, generationId, toolCallId = '' }: LiveDelta): string {
  return `${kind} ${generationId} ${toolCallId}`;
}

/** Who only listens must not harm the run. */
export function unharmed(tell: () => void): void {
  try {
    tell();
  } catch {
    // What was told is in the journal all the same.
  }
}

/** Whether whoever asked for a turn watches it. */
export function isWatched({ onEnvelope, onDelta, stream }: Watching): boolean {
  return onEnvelope !== undefined || onDelta !== undefined || stream !== undefined;
}

/** Whoever asked for a turn watches it, until it ends; leaving waits for handlers that are still at work. */
export function watched(live: Live, options: Watching, since: number): { leave(): Promise<void> } {
  const { onEnvelope, onDelta, stream } = options;
  const streaming = stream && new Streaming(stream, () => {}, since);
  const leave = live.watch({
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

interface Watching {
  readonly onEnvelope?: (envelope: EventEnvelope) => void;
  readonly onDelta?: (delta: LiveDelta) => void;
  readonly stream?: StreamHandlers;
}
