/** Compares requested steps with recorded ones, and describes them in the fault of a replay mismatch. */

import { Fault } from '../base/errors.js';
import { shortVersion } from '../base/short-version.js';
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

const MAX_DESCRIPTION_CHARS = 300;
const MAX_NAME_CHARS = 100;

/** The step that the code requests: the fields that a replay compares with the recorded entry. */
export type RequestedStep = Pick<Entry, 'type' | 'name' | 'kind' | 'version' | 'value'>;

/** True if the requested value equals the recorded one. A requested value that is not JSON equals none. */
export function equalsRecorded(recorded: Json | undefined, requested: unknown): boolean {
  try {
    return jsonEquals(recorded, copyAsJson(requested, 'the requested value'));
  } catch {
    return false;
  }
}

/** Describes a step in one line of bounded length; returns `nothing` for undefined. */
function describeEntry(entry: RequestedStep | undefined): string {
  if (entry === undefined) return 'nothing';
  const version = entry.version === undefined ? '' : `@${shortVersion(entry.version)}`;
  const text = `${entry.type} ${entry.name ?? ''}${version} ${jsonTextOrNote(entry.value)}`.trim();
  return text.length > MAX_DESCRIPTION_CHARS ? `${text.slice(0, MAX_DESCRIPTION_CHARS)}…` : text;
}

/** Returns a value as JSON text; a note for a value that is not JSON. */
function jsonTextOrNote(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return 'with a value that is not JSON';
  }
}

/** What the types of steps are called in messages. */
const STEP_WORDS: ReadonlyMap<string, string> = new Map([
  ['call.started', 'the call'],
  ['effect.opened', 'the effect'],
  ['effect.requested', 'the effect'],
  ['wait.opened', 'the wait for'],
  ['timer.set', 'a timer'],
  ['group.opened', 'the group'],
]);

/** Names a step in words, without its input: `the effect "pay"`; returns `nothing` for undefined. */
function nameOfStep(step: RequestedStep | undefined): string {
  if (step === undefined) return 'nothing';
  const { type, name, version } = step;
  const word = STEP_WORDS.get(type) ?? type;
  if (name === undefined) return word;
  const text = `${name}${version === undefined ? '' : `@${shortVersion(version)}`}`;
  return `${word} "${text.length > MAX_NAME_CHARS ? `${text.slice(0, MAX_NAME_CHARS)}…` : text}"`;
}

const MISMATCH_ADVICE =
  'Raise the version of the changed loop and register the old version too, run the earlier code, or cancel the turn.';

/** Returns the message about a step that differs from the recorded one: which step, what differs, and what to do. */
function describeMismatch(key: string, entry: Entry | undefined, request: RequestedStep | undefined): string {
  const at = entry === undefined || entry.key === key ? key : `${key} (recorded under it: ${entry.key})`;
  const [recorded, asked] = [nameOfStep(entry), nameOfStep(request)];
  const difference =
    recorded === asked
      ? `the code asked for ${asked} with another input than the recorded one`
      : `the journal has ${recorded}, but the code asked for ${asked}`;
  return `Step ${at}: ${difference}. ${MISMATCH_ADVICE}`;
}

/** Returns the fault about a step that differs from the recorded one. */
export function mismatchFault(
  session: string,
  key: string,
  entry: Entry | undefined,
  request: RequestedStep | undefined,
): Fault {
  const data = { session, key, recorded: describeEntry(entry), asked: describeEntry(request) };
  return new Fault('REPLAY_MISMATCH', describeMismatch(key, entry, request), data);
}
