/**
 * Live subscriptions to sessions. The first subscriber of a session creates its feed. The feed is dropped when a
 * subscriber leaves or a turn ends, and the session then has neither a subscriber nor a running turn in this process.
 */
import type { Entry } from '../protocol/entry.js';
import { followSession } from './follow-session.js';
import { SessionFeed, type SessionSubscriber } from './session-feed.js';

interface SubscriptionDeps {
  /** Returns true if a turn of the session runs in this process. */
  isRunning(sessionId: string): boolean;
  /** Returns the entries of a session, including those that are not stored yet. */
  readEntries(sessionId: string): Promise<readonly Entry[]>;
}

/** The feeds of all sessions with subscribers. */
export class Subscriptions {
  private readonly deps: SubscriptionDeps;
  private readonly feedMap = new Map<string, SessionFeed>();

  constructor(deps: SubscriptionDeps) {
    this.deps = deps;
  }

  /**
   * The feeds by session. A turn gets this map and not this object, which refers to the host: V8 may allocate objects of
   * a turn in the old generation, where they would keep the host and its store alive until a major collection.
   */
  get feeds(): ReadonlyMap<string, SessionFeed> {
    return this.feedMap;
  }

  /** Returns the feed of a session and creates it if there is none. */
  feedOf(sessionId: string): SessionFeed {
    const feed = this.feedMap.get(sessionId) ?? new SessionFeed();
    this.feedMap.set(sessionId, feed);
    return feed;
  }

  /**
   * Delivers the partial output that is being streamed, then everything that the session publishes in this process.
   * Returns a function that unsubscribes.
   */
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

  /**
   * Delivers the envelopes after `afterEnvelopeId` (all if undefined), then like `subscribe`. Returns a function that
   * unsubscribes.
   */
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

  /** Deletes the feed of a session that has no subscriber and no running turn. */
  dropIfUnused(sessionId: string): void {
    const feed = this.feedMap.get(sessionId);
    if (feed !== undefined && !feed.hasSubscribers && !this.deps.isRunning(sessionId)) this.feedMap.delete(sessionId);
  }
}
