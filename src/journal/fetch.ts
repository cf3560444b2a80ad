/** The way back to a value that was put aside by digest. */

import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { joined } from './parts.js';
import { digest } from './record.js';
import type { Blobs } from './store.js';

/** The value of an entry; one that lies in the blobs is fetched and checked against its digest, and so is every part of it. */
export async function fetchValue(blobs: Blobs, session: string, entry: Entry): Promise<Json | undefined> {
  if (entry.blob === undefined || entry.value !== undefined) return entry.value;
  const fetch = (name: string): Promise<string> => fetchText(blobs, session, entry.seq, name);
  return joined(await fetch(entry.blob), fetch);
}

async function fetchText(blobs: Blobs, session: string, seq: number, blob: string): Promise<string> {
  const text = await blobs.get(session, blob);
  if (text !== undefined && /* guard: blob-matches-digest */ digest(text) === blob) return text;
  const flaw = text === undefined ? 'is missing' : 'does not match its digest';
  const message = `Session "${session}", entry ${seq}: its value ${blob} ${flaw}.`;
  throw new Fault('STORE_DAMAGED', message, { session, seq, blob });
}
