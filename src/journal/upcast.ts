/** Upcasts: conversions of older entries, applied when they are read. Stored entries never change. */

import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';

/**
 * Conversions by entry type. `current` is the version that the program writes; `from[n]` converts version n to n + 1. A
 * type without an item has version 1.
 */
export interface Upcasts {
  readonly [type: string]: {
    readonly current: number;
    readonly from: { readonly [version: number]: (entry: Entry) => Entry };
  };
}

/** True if an entry is older than the current version of its type. */
export function needsUpcast({ type, schemaVersion = 1 }: Entry, upcasts: Upcasts): boolean {
  return Object.hasOwn(upcasts, type) && schemaVersion < (upcasts[type]?.current ?? 1);
}

/**
 * Returns an entry in the current version of its type. Throws a Fault if a newer program wrote it, or if a conversion
 * is missing.
 */
export function upcast(entry: Entry, upcasts: Upcasts): Entry {
  const conversions = Object.hasOwn(upcasts, entry.type) ? upcasts[entry.type] : undefined;
  const current = conversions?.current ?? 1;
  let version = entry.schemaVersion ?? 1;
  // guard: newer-entry-refused
  if (version > current) {
    const { seq, type } = entry;
    const message = `Entry ${seq} is ${type} version ${version}; this program reads up to version ${current}.`;
    throw new Fault('ENTRY_TOO_NEW', `${message} Use the newer program.`, { seq, type, version, current });
  }
  let upToDate = entry;
  for (; version < current; version++) {
    const convert = conversions?.from[version];
    if (convert === undefined)
      throw new Fault('STORE_FAILED', `No upcast converts ${entry.type} from version ${version} to ${version + 1}.`);
    upToDate = { ...convert(upToDate), schemaVersion: version + 1 };
  }
  return upToDate;
}
