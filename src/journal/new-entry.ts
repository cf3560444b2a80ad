/**
 * Creates entries before they are written. The most frequent kinds have one constructor each, because V8 sizes all
 * objects of a constructor for the largest one.
 */
import { LoopError, toLoopError } from '../base/errors.js';
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import { isValidationTimed } from '../base/validation-timing.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Clock } from './clock.js';

/**
 * An entry before it is written. The writer assigns `seq` and `at`. Until then, `at` is 0 or a reading of the wall
 * clock for this entry, from which its timestamp is derived.
 */
export type NewEntry = Mutable<Entry>;

type NewEntryConstructor = new (type: string, key: string, since: number, at: number) => NewEntry;

/**
 * Returns a constructor of entries. Its arguments `since` and `at` are readings of the wall clock before and after a
 * validation; both are 0 if the validation was not timed.
 */
function createEntryConstructor(): NewEntryConstructor {
  return plainConstructor(function (this: NewEntry, type: string, key: string, since: number, at: number) {
    this.seq = 0;
    this.at = at;
    this.type = type;
    this.key = key;
    if (at > since) this.validationMs = at - since;
  });
}

/** Creates `call.started` entries. */
export const CallStartedEntry: NewEntryConstructor = createEntryConstructor();
const CallCompletedEntry: NewEntryConstructor = createEntryConstructor();
const EffectEntry: NewEntryConstructor = createEntryConstructor();
const EffectReturnedEntry: NewEntryConstructor = createEntryConstructor();

/** Sets the value that `make` returns, or the error that it throws, on an entry. Returns what was thrown. */
export function fillEntry(entry: NewEntry, make: () => Json): unknown {
  try {
    entry.value = make();
    return undefined;
  } catch (thrown) {
    entry.error = toLoopError(thrown).toErrorRecord();
    return thrown;
  }
}

interface OutputValidation {
  readonly output?: ((value: unknown) => unknown) | undefined;
  readonly hasFastValidation?: boolean | undefined;
}

/**
 * Validates the output of a loop and creates `call.completed`, or throws the error of an invalid output. `size` is the
 * size of the output if it is known: a validator that may change the output does not allow to copy it before.
 */
export function newCompletedEntry(
  clock: Clock,
  key: string,
  { output: validate, hasFastValidation = false }: OutputValidation,
  output: unknown,
  size: number = Number.POSITIVE_INFINITY,
): NewEntry {
  const isTimed = isValidationTimed(validate, hasFastValidation, size);
  const since = isTimed ? clock.now() : 0;
  const value = validate === undefined ? output : validate(output);
  const entry = new CallCompletedEntry('call.completed', key, since, isTimed ? clock.now() : 0);
  entry.value = value as Json;
  return entry;
}

interface EffectFields {
  readonly kind: string;
  readonly name: string;
  readonly safety: Safety;
  readonly input: unknown;
  readonly boundary?: string | undefined;
}

const SAFETIES: ReadonlySet<string> = new Set(['pure', 'idempotent', 'keyed', 'once']);

/** Throws VALUE_INVALID unless an effect has a kind, a name and a safety. `key` is for the message. */
export function assertEffect({ kind, name, safety }: EffectFields, key: string): void {
  if (typeof kind === 'string' && typeof name === 'string' && SAFETIES.has(safety)) return;
  const message = `The effect at ${key} needs strings as kind and name, and a safety: pure, idempotent, keyed or once.`;
  throw new LoopError('VALUE_INVALID', message, { key });
}

/** Creates an opening entry of an effect: `effect.opened` or `effect.requested`. */
export function newEffectEntry(
  type: string,
  key: string,
  { kind, name, safety, input, boundary }: EffectFields,
): NewEntry {
  const entry = new EffectEntry(type, key, 0, 0);
  entry.kind = kind;
  entry.name = name;
  entry.safety = safety;
  if (boundary !== undefined) entry.boundary = boundary;
  entry.value = input as Json;
  return entry;
}

/** Creates `effect.returned` with the result of an effect, or with the result that a resolution supplies. */
export function newReturnedEntry(key: string, value: unknown): NewEntry {
  const entry = new EffectReturnedEntry('effect.returned', key, 0, 0);
  entry.value = value as Json;
  return entry;
}
