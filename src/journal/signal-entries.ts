/** The entries of signals: their reception, and the payloads that waits accept or discard. */
import { LoopError, toLoopError } from '../base/errors.js';
import { ownProperty } from '../base/own-property.js';
import { cloneJson } from '../json/value.js';
import type { Validate } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Signal } from '../protocol/session.js';
import type { NewEntry } from './new-entry.js';
import { assertRootKey } from './root-key.js';

/** Returns the entry of a signal. Throws a TypeError if its id, its name or the root that it is addressed to is invalid. */
export function newSignalEntry({ id, name, value, turn }: Signal): NewEntry {
  if (typeof id !== 'string' || id === '' || typeof name !== 'string')
    throw new TypeError('A signal needs an id and a name; both are strings, and the id is not empty.');
  const entry: NewEntry = { seq: 0, at: 0, type: 'signal.received', key: id, name, value: value as Json };
  if (turn === undefined) return entry;
  assertRootKey(turn);
  entry.turnId = turn;
  return entry;
}

/** A payload after its validation: the parsed value, or the error of the validation. */
interface ParsedPayload {
  readonly value?: unknown;
  readonly error?: LoopError;
}

/** Validates a copy of a payload. Without a validation, the copy itself is the parsed value. */
export function parsePayload(value: Json | undefined, validate?: Validate<unknown>): ParsedPayload {
  const copy = cloneJson(value);
  if (validate === undefined) return { value: copy };
  try {
    return { value: validate(copy) };
  } catch (thrown) {
    return { error: validationErrorOf(thrown) ?? toLoopError(thrown) };
  }
}

/**
 * Returns the error of a validation; undefined if another error was thrown. It is recognised by its code, because code
 * that loads another copy of this package throws errors of another class.
 */
function validationErrorOf(thrown: unknown): LoopError | undefined {
  if (!(thrown instanceof Error) || ownProperty(thrown, 'code') !== 'INPUT_VALIDATION_FAILED') return undefined;
  return thrown instanceof LoopError ? thrown : new LoopError('INPUT_VALIDATION_FAILED', String(thrown.message));
}

/**
 * Returns the entry that discards a signal, if the error of its payload is one of validation; undefined for any other
 * error, which is an error of the code that waits.
 */
export function newDiscardedEntry(
  { key, name }: Entry,
  waitKey: string,
  error: LoopError | undefined,
): NewEntry | undefined {
  if (error?.code !== 'INPUT_VALIDATION_FAILED') return undefined;
  const reason = `Signal "${name}" (delivery "${key}") was discarded: ${error.message}`;
  return { seq: 0, at: 0, type: 'signal.discarded', key, waitKey, reason };
}
