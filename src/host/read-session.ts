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
