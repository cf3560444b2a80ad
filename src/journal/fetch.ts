/** The way back to a value that was put aside by digest. */
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Fault } from './errors.js';
import { digest } from './record.js';
import type { Blobs } from './store.js';

/** The value of an entry; one that lies in the blobs is fetched and checked against its digest. */
export async function fetchValue(blobs: Blobs, session: string, entry: Entry): Promise<Json | undefined> {
  if (entry.blob === undefined || entry.value !== undefined) return entry.value;
  const text = await blobs.get(session, entry.blob);
  if (text !== undefined && digest(text) === entry.blob) return JSON.parse(text) as Json;
  const flaw = text === undefined ? 'is missing' : 'does not match its digest';
  throw new Fault('STORE_DAMAGED', `Session "${session}", entry ${entry.seq}: its value ${entry.blob} ${flaw}.`, {
    session,
    seq: entry.seq,
    blob: entry.blob,
  });
}
