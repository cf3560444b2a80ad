/**
 * The context that calls of a turn have loaded: one fact for each call of a prompt or an agent with references, with the
 * name, the SHA-256 digest and the size of each text. The texts are stored as blobs.
 */
import { asNonNegativeInteger, ownProperty, ownText } from '../base/own-property.js';
import type { Entry } from '../protocol/entry.js';
import { parentKeyOf } from './conversation/open-calls.js';

/** The entry type of the fact that a call has loaded its context. Its value is `{ items }`. */
export const CONTEXT_LOADED = 'rondo.context.loaded';

/** One loaded text. A type, because an interface is not JSON. */
export type ContextItem = {
  /** The reference, as the definition writes it. */
  readonly name: string;
  /** The SHA-256 digest of the text as UTF-8, in hexadecimal. */
  readonly sha256: string;
  /** The size of the text as UTF-8. */
  readonly bytes: number;
};

/** The context of one call that has not ended. */
export interface OpenContext {
  /** The `call.started` entry of the call. */
  readonly call: Entry;
  readonly items: readonly ContextItem[];
}

/** Returns the items of the value of a `rondo.context.loaded` entry. */
export function contextItemsOf(value: Entry['value']): readonly ContextItem[] {
  const items = ownProperty(value, 'items');
  if (!Array.isArray(items)) return [];
  return items.map((item) => ({
    name: ownText(item, 'name'),
    sha256: ownText(item, 'sha256'),
    bytes: asNonNegativeInteger(ownProperty(item, 'bytes')) ?? 0,
  }));
}

/** Returns the contexts of the calls of a turn that have not ended, so that their models may be called again. */
export function openContextsOf(turnId: string, entries: readonly Entry[]): readonly OpenContext[] {
  const open = new Map<string, Entry>();
  const contexts = new Map<string, OpenContext>();
  for (const entry of entries) {
    const { key, type, error } = entry;
    if (key !== turnId && !key.startsWith(`${turnId}/`)) continue;
    if (type === 'call.started') open.set(key, entry);
    else if (type === 'call.completed' || type === 'call.errored') {
      open.delete(key);
      contexts.delete(key);
    } else if (type === CONTEXT_LOADED && error === undefined) {
      const call = open.get(parentKeyOf(key));
      if (call !== undefined) contexts.set(call.key, { call, items: contextItemsOf(entry.value) });
    }
  }
  return [...contexts.values()];
}
