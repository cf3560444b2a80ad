/**
 * Entries that are about to be written. The kinds that most calls have are made by constructors, one for each kind: V8 gives all
 * objects of a constructor the size of the largest.
 */
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

/** An entry that has no place yet: `seq` is filled in by the push, and `at` unless the wall clock was read for it. */
export type NewEntry = Mutable<Entry>;

type NewEntryConstructor = new (type: string, key: string, since: number, at: number) => NewEntry;

/** `since` and `at` are readings of the wall clock around the work that an entry tells of, or 0. */
function createEntryConstructor(): NewEntryConstructor {
  return plainConstructor(function (this: NewEntry, type: string, key: string, since: number, at: number) {
    this.seq = 0;
    this.at = at;
    this.type = type;
    this.key = key;
    if (at > since) this.validationMs = at - since;
  });
}

export const CallStartedEntry: NewEntryConstructor = createEntryConstructor();
export const CallCompletedEntry: NewEntryConstructor = createEntryConstructor();
const EffectEntry: NewEntryConstructor = createEntryConstructor();
const EffectReturnedEntry: NewEntryConstructor = createEntryConstructor();

interface EffectFields {
  readonly kind: string;
  readonly name: string;
  readonly safety: Safety;
  readonly input: unknown;
}

/** An entry of an effect, opened with what identifies it. */
export function newEffectEntry(type: string, key: string, { kind, name, safety, input }: EffectFields): NewEntry {
  const entry = new EffectEntry(type, key, 0, 0);
  entry.kind = kind;
  entry.name = name;
  entry.safety = safety;
  entry.value = input as Json;
  return entry;
}

/** What an effect returned, or what somebody supplied in its place. */
export function newReturnedEntry(key: string, value: unknown): NewEntry {
  const entry = new EffectReturnedEntry('effect.returned', key, 0, 0);
  entry.value = value as Json;
  return entry;
}
