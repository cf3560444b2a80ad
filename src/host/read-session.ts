/** Reads the stored entries of a session from its store, without a host that runs turns. */
import { fetchValue } from '../journal/fetch-value.js';
import type { Store } from '../journal/store.js';
import type { Entry } from '../protocol/entry.js';

/** Returns the stored entries of a session that `isNeeded` accepts, with the values that are stored as blobs. */
export async function readSession(
  store: Pick<Store, 'journal' | 'blobs'>,
  sessionId: string,
  isNeeded: (entry: Entry) => boolean = () => true,
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  if (sessionId === '') return entries;
  for await (const batch of store.journal.read(sessionId, 0))
    for (const entry of batch) {
      if (!isNeeded(entry)) continue;
      const value = await fetchValue(store.blobs, sessionId, entry);
      entries.push(value === undefined ? entry : { ...entry, value });
    }
  return entries;
}

/** Returns the time of the last stored entry of a session; 0 if there is none. */
export async function lastWrittenAt({ journal }: Pick<Store, 'journal'>, sessionId: string): Promise<number> {
  let at = 0;
  for await (const batch of journal.read(sessionId, 0)) at = batch.at(-1)?.at ?? at;
  return at;
}
