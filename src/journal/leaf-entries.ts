/**
 * Leaf calls: calls that are their own effect. The start of such a call is also the intent of its effect, and its end is
 * also the end of the effect, so a call has two entries in place of four. Everything that folds entries folds the four:
 * the effect is the step 0 of its call.
 */
import type { Mutable } from '../base/plain-constructor.js';
import { cloneJson, copyAsJson, jsonEquals } from '../json/value.js';
import type { Loop } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { MAX_INLINE_BYTES } from './blob-parts.js';
import type { Clock } from './clock.js';
import { type NewEntry, newCompletedEntry, newEffectEntry, newReturnedEntry } from './new-entry.js';

/** The member of the effect's result that is the output of the call; true if the result itself is the output. */
export type EndsEffect = true | string;

/** Returns the key of the effect of a leaf call. */
export function leafEffectKey(key: string): string {
  return `${key}/0`;
}

/**
 * Returns the two entries that an entry of a leaf call stands for, in order: the start of the call and the intent of its
 * effect, or the end of the effect and the end of the call. Both have the position of the entry. Returns undefined for
 * any other entry, which stands for itself.
 */
export function expandLeaf(entry: Entry): readonly [Entry, Entry] | undefined {
  if (!isLeafEntry(entry)) return undefined;
  return entry.type === 'call.started' ? expandStart(entry) : expandEnd(entry, entry.endsEffect ?? true);
}

/** Adds the intent of its effect to the start of a leaf call. */
export function addLeafIntent(started: NewEntry, { kind, name, safety, boundary }: EffectIntent): void {
  started.kind = kind;
  started.safety = safety;
  if (boundary !== undefined) started.boundary = boundary;
  if (name !== started.name) started.effectName = name;
}

type EffectIntent = Required<Pick<Entry, 'kind' | 'name' | 'safety'>> & Pick<Entry, 'boundary'>;

/** Returns the output in the result of an effect. `member` is the member that holds it, if it is not the result itself. */
export function outputIn(result: Json | undefined, member: string | undefined): Json | undefined {
  return member === undefined ? result : (result as { readonly [name: string]: Json })[member];
}

/** Returns the result of the effect of a leaf call with this output. */
export function leafResultOf(output: Json | undefined, endsEffect: EndsEffect): Json | undefined {
  return endsEffect === true ? output : { [endsEffect]: output as Json };
}

/**
 * Returns the end of a leaf call if that of its effect follows from it. Returns undefined if the result of the effect has
 * members besides the output, or is a blob of which the output is only a part, and if the output is invalid or changed by
 * its validation. `result` is a JSON copy, and `size` its size.
 */
export function newLeafEnd(
  clock: Clock,
  key: string,
  loop: Pick<Loop, 'leaf' | 'output' | 'hasFastValidation'>,
  result: Json | undefined,
  size: number,
): NewEntry | undefined {
  const member = loop.leaf?.outputMember;
  // guard: leaf-records-whole-result
  if (member !== undefined && (size > MAX_INLINE_BYTES || !hasOnly(result, member))) return undefined;
  const isUnchanged = loop.output === undefined || loop.hasFastValidation === true;
  const output = outputIn(result, member);
  try {
    const candidate = isUnchanged ? output : cloneJson(output);
    const ended = newCompletedEntry(clock, key, loop, candidate, isUnchanged ? size : undefined);
    // guard: changed-output-of-leaf-recorded
    if (!isUnchanged && !jsonEquals(output, copyAsJson(ended.value, ended.type, key))) return undefined;
    ended.value = output;
    ended.endsEffect = member ?? true;
    return ended;
  } catch {
    // The call ends with this error after the result of its effect is recorded.
    return undefined;
  }
}

function hasOnly(result: Json | undefined, member: string): boolean {
  const keys = typeof result === 'object' && result !== null ? Object.keys(result) : [];
  return keys.length === 1 && keys[0] === member;
}

/** Returns entries with those of leaf calls expanded; the same array if there are none. */
export function expandLeaves(entries: readonly Entry[]): readonly Entry[] {
  return entries.some(isLeafEntry) ? entries.flatMap((entry) => expandLeaf(entry) ?? entry) : entries;
}

/** True for an entry of a leaf call. */
export function isLeafEntry({ type, safety, endsEffect }: Entry): boolean {
  return endsEffect !== undefined || (type === 'call.started' && safety !== undefined);
}

function expandStart(entry: Entry): readonly [Entry, Entry] {
  const { kind = '', safety = 'once', effectName, boundary, ...started } = entry;
  const { key, name = '', value } = entry;
  const effect = { kind, name: effectName ?? name, safety, boundary, input: value };
  return [started, placed(newEffectEntry('effect.requested', leafEffectKey(key), effect), entry, entry.at)];
}

function expandEnd(entry: Entry, endsEffect: EndsEffect): readonly [Entry, Entry] {
  const { endsEffect: _, ...ended } = entry;
  const { key, type, error, value, validationMs = 0 } = entry;
  const effectKey = leafEffectKey(key);
  const end: Mutable<Entry> =
    type === 'call.errored'
      ? { seq: 0, at: 0, type: 'effect.failed', key: effectKey, error }
      : newReturnedEntry(effectKey, leafResultOf(value, endsEffect));
  // The output was validated after the effect had ended.
  return [placed(end, entry, entry.at - validationMs), ended];
}

/** Sets the position, the time and the blob of an entry that is part of another one. */
function placed(part: NewEntry, { seq, blob }: Entry, at: number): Entry {
  part.seq = seq;
  part.at = at;
  if (blob !== undefined) part.blob = blob;
  return part;
}
