/** Live subscriptions to sessions. A session has a feed while one of its turns runs here or a subscriber listens to it. */
import type { Entry } from '../protocol/entry.js';
import { followSession } from './follow-session.js';
import { SessionFeed, type SessionSubscriber } from './session-feed.js';

interface SubscriptionDeps {
  /** True if a turn of the session runs in this process. */
  isRunning(sessionId: string): boolean;
  /** The entries of a session, including those that are not stored yet. */
  readEntries(sessionId: string): Promise<readonly Entry[]>;
}

export class Subscriptions {
  private readonly deps: SubscriptionDeps;
  private readonly feeds = new Map<string, SessionFeed>();

  constructor(deps: SubscriptionDeps) {
    this.deps = deps;
  }

  /** The feed of a session, if it has one. */
  get(sessionId: string): SessionFeed | undefined {
    return this.feeds.size === 0 ? undefined : this.feeds.get(sessionId);
  }

  /** The feed of a session, created if there is none. */
  feedOf(sessionId: string): SessionFeed {
    const feed = this.feeds.get(sessionId) ?? new SessionFeed();
    this.feeds.set(sessionId, feed);
    return feed;
  }

  /** Sends everything that happens in a session from now on, after what is being streamed right now. */
  subscribe(sessionId: string, subscriber: SessionSubscriber): () => void {
    const feed = this.feedOf(sessionId);
    for (const delta of feed.partialDeltas()) subscriber.delta?.(delta);
    const unsubscribe = feed.subscribe(subscriber);
    return () => {
      feed.flush();
      unsubscribe();
      this.dropIfUnused(sessionId);
    };
  }

  /** Sends the envelopes after `afterEnvelopeId`, then everything that happens. */
  async follow(
    sessionId: string,
    subscriber: SessionSubscriber,
    afterEnvelopeId: string | undefined,
  ): Promise<() => void> {
    const readEntries = (): Promise<readonly Entry[]> => this.deps.readEntries(sessionId);
    const unsubscribe = await followSession(sessionId, this.feedOf(sessionId), subscriber, {
      readEntries,
      afterEnvelopeId,
    });
    return () => {
      unsubscribe();
      this.dropIfUnused(sessionId);
    };
  }

  dropIfUnused(sessionId: string): void {
    const feed = this.feeds.get(sessionId);
    if (feed !== undefined && !feed.hasSubscribers && !this.deps.isRunning(sessionId)) this.feeds.delete(sessionId);
  }
}
