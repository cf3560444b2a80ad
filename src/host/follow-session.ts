/** Following a session: what it holds, then what happens, with nothing lost and nothing twice in between. */
import type { Entry } from '../protocol/entry.js';
import type { EventEnvelope } from '../protocol/events.js';
import { Conversation, type ToolRefusal } from '../views/conversation.js';
import { ignoringErrors, type SessionFeed, type SessionSubscriber } from './session-feed.js';

interface FollowStart {
  readEntries(): Promise<readonly Entry[]>;
  /** The id of the last envelope that the watcher has. */
  readonly afterEnvelopeId: string | undefined;
}

/** Tells the watcher what it missed, then keeps telling; returns how to stop. */
export async function followSession(
  sessionId: string,
  live: SessionFeed,
  watcher: SessionSubscriber,
  from: FollowStart,
): Promise<() => void> {
  const late: (() => void)[] = [];
  let caught = false;
  const seen = new Map<string, string>();
  const tell = (envelope: EventEnvelope, refusal?: ToolRefusal): void => {
    const text = JSON.stringify(envelope.content);
    if (seen.get(envelope.id) === text) return;
    seen.set(envelope.id, text);
    ignoringErrors(() => watcher.envelope?.(envelope, refusal));
  };
  const leave = live.subscribe({
    envelope: (envelope, refusal) =>
      caught ? watcher.envelope?.(envelope, refusal) : void late.push(() => tell(envelope, refusal)),
    // Until then, what is being said is told as a whole.
    delta: (delta) => (caught ? watcher.delta?.(delta) : undefined),
  });
  const entries = await from.readEntries();
  for (const envelope of envelopesAfter(sessionId, entries, from.afterEnvelopeId)) tell(envelope);
  for (const again of late) again();
  for (const delta of live.partialDeltas()) ignoringErrors(() => watcher.delta?.(delta));
  caught = true;
  seen.clear();
  return leave;
}

/** What arose, or changed, behind the envelope of this id. */
function envelopesAfter(
  sessionId: string,
  entries: readonly Entry[],
  after: string | undefined,
): Iterable<EventEnvelope> {
  const news = new Map<string, EventEnvelope>();
  const [seq, nth] = (after ?? '-1.0').split('.').map(Number) as [number, number];
  let at = 0;
  const conversation = new Conversation(sessionId, (envelope) => {
    const first = envelope.id.startsWith(`${at}.`) ? Number(envelope.id.slice(`${at}.`.length)) : 0;
    if (at > seq || (at === seq && first > nth)) news.set(envelope.id, envelope);
  });
  for (const entry of entries) {
    at = entry.seq;
    conversation.apply(entry);
  }
  return news.values();
}
