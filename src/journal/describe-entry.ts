/** How entries are shown to people when what was recorded and what is asked for differ. */
import type { Entry } from '../protocol/entry.js';

/** What the code asks for at a step, to be held against what is recorded there. */
export type RequestedStep = Pick<Entry, 'type' | 'name' | 'kind' | 'version' | 'value'>;

/** One line for an entry, bounded. */
export function describeEntry(entry: RequestedStep | undefined): string {
  if (entry === undefined) return 'nothing';
  const version = entry.version === undefined ? '' : `@${entry.version}`;
  const text = `${entry.type} ${entry.name ?? ''}${version} ${jsonTextOrNote(entry.value)}`.trim();
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function jsonTextOrNote(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return 'with a value that is not JSON';
  }
}
