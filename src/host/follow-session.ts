/**
 * Follows a session: delivers its recorded envelopes (events with an id), then live ones, without gaps or duplicates in
 * between.
 */
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import { Conversation, type ToolRefusal } from '../views/conversation.js';
import { ignoringErrors, type SessionFeed, type SessionSubscriber } from './session-feed.js';

interface FollowStart {
  /** Reads the entries of the session, including those that are not stored yet. */
  readEntries(): Promise<readonly Entry[]>;
  /** The id of the last envelope that the subscriber has received; undefined for all envelopes. */
  readonly afterEnvelopeId: string | undefined;
}

/**
 * Delivers the envelopes that the subscriber has missed, then the partial output of unfinished messages, then
 * everything that the feed publishes. Returns a function that unsubscribes. Errors of the subscriber are ignored.
 */
export async function followSession(
  sessionId: string,
  feed: SessionFeed,
  subscriber: SessionSubscriber,
  start: FollowStart,
): Promise<() => void> {
  const buffered: (() => void)[] = [];
  let isCaughtUp = false;
  /** The delivered content of each envelope, to drop live envelopes that were also read from the store. */
  const deliveredContents = new Map<string, string>();
  const deliver = (envelope: EventEnvelope, refusal?: ToolRefusal): void => {
    const text = JSON.stringify(envelope.content);
    if (deliveredContents.get(envelope.id) === text) return;
    deliveredContents.set(envelope.id, text);
    ignoringErrors(() => subscriber.envelope?.(envelope, refusal));
  };
  const unsubscribe = feed.subscribe({
    envelope: (envelope, refusal) =>
      isCaughtUp ? subscriber.envelope?.(envelope, refusal) : void buffered.push(() => deliver(envelope, refusal)),
    // Earlier deltas are part of the partial output that is delivered below.
    delta: (delta) => (isCaughtUp ? subscriber.delta?.(delta) : undefined),
  });
  const entries = await start.readEntries();
  for (const envelope of envelopesAfter(sessionId, entries, start.afterEnvelopeId)) deliver(envelope);
  for (const deliverBuffered of buffered) deliverBuffered();
  for (const delta of feed.partialDeltas()) ignoringErrors(() => subscriber.delta?.(delta));
  isCaughtUp = true;
  deliveredContents.clear();
  return unsubscribe;
}

/**
 * Returns the envelopes that were created or replaced after the envelope with the id `after`, each in its last version.
 * An envelope id is the sequence number of an entry and the index of the envelope in that entry: `12.0`.
 */
function envelopesAfter(
  sessionId: string,
  entries: readonly Entry[],
  after: string | undefined,
): Iterable<EventEnvelope> {
  const envelopes = new Map<string, EventEnvelope>();
  const [afterSeq, afterIndex] = (after ?? '-1.0').split('.').map(Number) as [number, number];
  let seq = 0;
  const conversation = new Conversation(sessionId, (envelope) => {
    const index = envelope.id.startsWith(`${seq}.`) ? Number(envelope.id.slice(`${seq}.`.length)) : 0;
    if (seq > afterSeq || (seq === afterSeq && index > afterIndex)) envelopes.set(envelope.id, envelope);
  });
  for (const entry of entries) {
    seq = entry.seq;
    conversation.apply(entry);
  }
  return envelopes.values();
}
