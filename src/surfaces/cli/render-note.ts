/** Renders the notes of a call in the tree: log lines, waits, approvals and other events. */
import type { CallNote } from '../../views/call-notes.js';
import { formatCount, formatDuration, sanitizeText, type TextSpan } from './terminal-text.js';

const NAME_OPTIONS = { max: 64 };

/** Returns the spans of a note in one row. Its texts are shortened unless `full` is true. */
export function noteSpans(note: CallNote, full: boolean): TextSpan[] {
  const sanitizeName = (text: string): string => sanitizeText(text, full ? UNLIMITED : NAME_OPTIONS);
  const sanitize = (text: string): string => sanitizeText(text, full ? UNLIMITED : {});
  switch (note.kind) {
    case 'log':
      return [
        [sanitizeName(note.level).padEnd(5), levelStyle(note.level)],
        [`  ${sanitize(note.message)}`, 'dim'],
      ];
    case 'retry': {
      const reason = note.code === '' ? '' : ` (${sanitizeName(note.code)})`;
      return [[`retry ${formatCount(note.attempt)} after ${formatDuration(note.delayMs)}${reason}`, 'yellow']];
    }
    case 'fallback':
      return [[`fell back to ${sanitizeName(note.to)}`, 'yellow']];
    case 'cached':
      return [['from cache', 'yellow']];
    case 'held':
      return [[`waited ${formatDuration(note.delayMs)} for the rate limit`, 'yellow']];
    case 'waiting': {
      const until =
        note.signal === '' ? `until ${sanitizeName(note.until)}` : `for signal ${sanitizeName(note.signal)}`;
      return [[`waits ${until}`, 'yellow']];
    }
    case 'slept':
      return [[`slept ${formatDuration(note.durationMs)}`, 'dim']];
    case 'signal':
      return [[`received signal ${sanitizeName(note.name)} ${sanitize(note.payload)}`.trimEnd(), 'dim']];
    case 'approval':
      return [[sanitize(approvalText(note)), note.answer?.verdict === 'denied' ? 'yellow' : 'dim']];
    case 'event':
      return [[`${sanitizeName(note.type)} ${sanitize(note.facts)}`.trimEnd(), 'dim']];
  }
}

const UNLIMITED = { max: Number.POSITIVE_INFINITY };

function approvalText({ id, answer }: CallNote & { readonly kind: 'approval' }): string {
  if (answer === undefined) return `approval requested: ${id}`;
  const { verdict, by, at, reason } = answer;
  if (verdict === 'granted') return `approved by the standing grant of ${id}`;
  return `${verdict} by ${by} at ${at}${reason === '' ? '' : `: ${reason}`}`;
}

function levelStyle(level: string): 'red' | 'yellow' | 'dim' {
  if (level === 'error' || level === 'fatal') return 'red';
  return level === 'warn' || level === 'warning' ? 'yellow' : 'dim';
}
