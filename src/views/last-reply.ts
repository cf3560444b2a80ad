/** Finds the reply of a model in the entries of a session, to settle a reservation that an interrupted process left. */

import { expandLeaves } from '../journal/leaf-entries.js';
import type { Entry } from '../protocol/entry.js';

/** A recorded reply and its request. */
interface AnsweredRequest {
  readonly request: { readonly backendId: string; readonly model: string };
  readonly reply: { readonly text: string; readonly inputTokens?: number; readonly outputTokens?: number };
  readonly at: number;
}

/** Returns the reply to the last attempt at a model call; undefined if that attempt has no recorded reply. */
export function lastReplyAt(entries: readonly Entry[], effectKey: string): AnsweredRequest | undefined {
  let request: Entry | undefined;
  let reply: Entry | undefined;
  for (const entry of expandLeaves(entries)) {
    const { key, type } = entry;
    if (key !== effectKey && !key.startsWith(`${effectKey}/`) && !key.startsWith(`${effectKey}~`)) continue;
    if (type === 'effect.requested') {
      request = entry;
      reply = undefined;
    } else if (type === 'effect.returned') reply = entry;
  }
  const sent = request?.value as Partial<AnsweredRequest['request']> | undefined;
  if (reply?.value === undefined || typeof sent?.backendId !== 'string') return undefined;
  const { backendId, model = '' } = sent;
  return { request: { backendId, model }, reply: reply.value as unknown as AnsweredRequest['reply'], at: reply.at };
}
