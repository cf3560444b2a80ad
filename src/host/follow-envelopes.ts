/** Follows the conversation of a session, whichever process runs its turns. */
import type { EventEnvelope } from '../protocol/events.js';
import { Conversation } from '../views/conversation.js';
import type { FollowedEntries } from './follow-entries.js';

/** Followed entries with the envelopes that they created or changed. */
export interface FollowedEnvelopes extends FollowedEntries {
  readonly envelopes: readonly EventEnvelope[];
}

/** Yields followed entries with their envelopes. An envelope is yielded again when its content has changed. */
export async function* followEnvelopes(
  sessionId: string,
  followed: AsyncIterable<FollowedEntries>,
): AsyncGenerator<FollowedEnvelopes> {
  const contents = new Map<string, string>();
  let envelopes: EventEnvelope[] = [];
  const createConversation = (): Conversation =>
    new Conversation(sessionId, (envelope) => {
      const content = JSON.stringify(envelope.content);
      if (contents.get(envelope.id) === content) return;
      contents.set(envelope.id, content);
      envelopes.push(envelope);
    });
  let conversation = createConversation();
  for await (const { entries, isRestart } of followed) {
    if (isRestart) conversation = createConversation();
    for (const entry of entries) conversation.apply(entry);
    yield { entries, isRestart, envelopes };
    envelopes = [];
  }
}
