/** Publishes the envelopes of a running turn to the feed of its session while the feed has subscribers. */
import type { Entry } from '../protocol/entry.js';
import { Conversation } from '../views/conversation.js';
import type { SessionFeed } from './session-feed.js';

/** Folds the entries of a turn into envelopes. A turn without subscribers folds nothing. */
export class EnvelopePublisher {
  private readonly sessionId: string;
  private readonly feeds: ReadonlyMap<string, SessionFeed>;
  private conversation: Conversation | undefined;

  constructor(sessionId: string, feeds: ReadonlyMap<string, SessionFeed>) {
    this.sessionId = sessionId;
    this.feeds = feeds;
  }

  /**
   * Publishes the envelopes of an entry, which is the last of `entries`. Subscribers have the envelopes of earlier
   * entries already.
   */
  publish(entry: Entry, entries: readonly Entry[]): void {
    const feed = this.feeds.get(this.sessionId);
    if (feed?.hasSubscribers !== true) this.conversation = undefined;
    else {
      this.conversation ??= this.catchUp(entry, entries, feed);
      this.conversation.apply(entry);
    }
  }

  private catchUp(entry: Entry, entries: readonly Entry[], feed: SessionFeed): Conversation {
    let isCaughtUp = false;
    const conversation = new Conversation(this.sessionId, (envelope, refusal) => {
      if (isCaughtUp) feed.publishEnvelope(envelope, refusal);
    });
    for (const earlier of entries) if (earlier !== entry) conversation.apply(earlier);
    isCaughtUp = true;
    return conversation;
  }
}
