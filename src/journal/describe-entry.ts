/** Compares requested steps with recorded ones, and describes them for the message of a replay mismatch. */
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

const MAX_DESCRIPTION_CHARS = 300;

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
