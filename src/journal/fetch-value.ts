/** Fetches values that are stored as blobs. */

import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { joinBlobParts } from './blob-parts.js';
import { digestOfText } from './record.js';
import type { Blobs } from './store.js';

/**
 * Returns the value of an entry; undefined if it has none. A blob and each of its parts are verified against their
 * digests. Throws STORE_DAMAGED if one is missing or does not match.
 */
export async function fetchValue(blobs: Blobs, session: string, entry: Entry): Promise<Json | undefined> {
  if (entry.blob === undefined || entry.value !== undefined) return entry.value;
  const fetch = (digest: string): Promise<string> => fetchBlob(blobs, session, entry.seq, digest);
  return joinBlobParts(await fetch(entry.blob), fetch);
}

async function fetchBlob(blobs: Blobs, session: string, seq: number, blob: string): Promise<string> {
  const text = await blobs.get(session, blob);
  if (text !== undefined && /* guard: blob-matches-digest */ digestOfText(text) === blob) return text;
  const problem = text === undefined ? 'is missing' : 'does not match its digest';
  const message = `Session "${session}", entry ${seq}: its value ${blob} ${problem}.`;
  throw new Fault('STORE_DAMAGED', message, { session, seq, blob });
}
