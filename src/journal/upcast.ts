/** Entries are versioned one by one. An old entry is brought up to date when it is read; the stored one never changes. */

import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';

/** For each entry type that ever changed: its present version, and one step up from each older one. */
export interface Upcasts {
  readonly [type: string]: {
    readonly current: number;
    readonly from: { readonly [version: number]: (entry: Entry) => Entry };
  };
}

export function needsUpcast({ type, schemaVersion = 1 }: Entry, upcasts: Upcasts): boolean {
  return Object.hasOwn(upcasts, type) && schemaVersion < (upcasts[type]?.current ?? 1);
}

export function upcast(entry: Entry, upcasts: Upcasts): Entry {
  const known = Object.hasOwn(upcasts, entry.type) ? upcasts[entry.type] : undefined;
  const current = known?.current ?? 1;
  let version = entry.schemaVersion ?? 1;
  // guard: newer-entry-refused
  if (version > current) {
    throw new Fault(
      'ENTRY_TOO_NEW',
      `Entry ${entry.seq} is ${entry.type} version ${version}; this program reads up to version ${current}. Use the newer program.`,
      { seq: entry.seq, type: entry.type, version, current },
    );
  }
  let present = entry;
  for (; version < current; version++) {
    const step = known?.from[version];
    if (step === undefined)
      throw new Fault('STORE_FAILED', `No step brings ${entry.type} from version ${version} to ${version + 1}.`);
    present = { ...step(present), schemaVersion: version + 1 };
  }
  return present;
}
