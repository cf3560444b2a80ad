/** Compares requested steps with recorded ones, and describes them for the message of a replay mismatch. */
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
export function describeEntry(entry: RequestedStep | undefined): string {
  if (entry === undefined) return 'nothing';
  const version = entry.version === undefined ? '' : `@${entry.version}`;
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
export function nameOfStep(step: RequestedStep | undefined): string {
  if (step === undefined) return 'nothing';
  const { type, name, version } = step;
  const word = STEP_WORDS.get(type) ?? type;
  if (name === undefined) return word;
  const text = `${name}${version === undefined ? '' : `@${version}`}`;
  return `${word} "${text.length > MAX_NAME_CHARS ? `${text.slice(0, MAX_NAME_CHARS)}…` : text}"`;
}
