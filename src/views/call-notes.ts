/** The notes of a call in the trace tree: its log lines, waits, approvals and other events of vendors, for display. */
import { ownProperty } from '../base/own-property.js';

/**
 * An event of a call besides its start, end, requests and children. `before` is the number of children that had started
 * when it occurred.
 */
export type CallNote = { readonly before: number } & (
  | { readonly kind: 'log'; readonly level: string; readonly message: string }
  | { readonly kind: 'retry'; readonly attempt: number; readonly delayMs: number; readonly code: string }
  | { readonly kind: 'fallback'; readonly to: string }
  | { readonly kind: 'cached' }
  | { readonly kind: 'held'; readonly delayMs: number }
  | { readonly kind: 'waiting'; readonly key: string; readonly signal: string; readonly until: string }
  | { readonly kind: 'slept'; readonly durationMs: number }
  | { readonly kind: 'signal'; readonly name: string; readonly payload: string }
  | { readonly kind: 'approval'; readonly id: string; readonly answer?: ApprovalNoteAnswer }
  | { readonly kind: 'event'; readonly type: string; readonly facts: string }
);

/** How an approval was answered: by a person, or by the standing grant that the answer to the approval gave. */
interface ApprovalNoteAnswer {
  readonly verdict: 'approved' | 'denied' | 'granted';
  readonly by: string;
  readonly at: string;
  readonly reason: string;
}

/** A note without its position. */
export type NoteContent = CallNote extends infer N ? (N extends CallNote ? Omit<N, 'before'> : never) : never;

/** The lengths that texts are shortened to. */
const MAX_TEXT_CHARS = 2000;
const MAX_NAME_CHARS = 40;
const MAX_FACT_CHARS = 60;
const MAX_FACTS = 6;
const MAX_AMOUNT = 1e15;

/** Events that say nothing to a person: how an agent keeps its place in the journal, and waits that nothing needs. */
const INTERNAL_TYPES: ReadonlySet<string> = new Set(['rondo.round.begun', 'rondo.inbox.read', 'rondo.wait.cancelled']);

/** Returns the note of an event; undefined if it has none. Texts are shortened unless `full` is true. */
export function noteOf(type: string, payload: unknown, full: boolean): NoteContent | undefined {
  const delayMs = amountOf(ownProperty(payload, 'delayMs')) ?? 0;
  const text = (name: string): string => shorten(textOrEmpty(ownProperty(payload, name)), MAX_TEXT_CHARS, full);
  switch (type) {
    case 'log':
      return { kind: 'log', level: text('level'), message: text('message') };
    case 'rondo.retry':
      return { kind: 'retry', attempt: amountOf(ownProperty(payload, 'attempt')) ?? 0, delayMs, code: text('code') };
    case 'rondo.backend.fallback':
      return { kind: 'fallback', to: text('to') };
    case 'rondo.cache.read':
      return ownProperty(payload, 'hit') === true ? { kind: 'cached' } : undefined;
    case 'rondo.rate.waited':
      return delayMs > 0 ? { kind: 'held', delayMs } : undefined;
    case 'rondo.wait.opened':
      return { kind: 'waiting', key: text('key'), signal: text('signal'), until: text('until') };
    case 'rondo.timer.fired':
      return { kind: 'slept', durationMs: amountOf(ownProperty(payload, 'durationMs')) ?? 0 };
    case 'rondo.signal.received':
      return { kind: 'signal', name: text('name'), payload: payloadText(ownProperty(payload, 'payload'), full) };
    case 'rondo.approval.requested':
      return { kind: 'approval', id: text('id') };
    case 'rondo.approval.answered': {
      const verdict = ownProperty(payload, 'approved') === true ? 'approved' : 'denied';
      const answer = { verdict, by: text('by'), at: text('at'), reason: text('reason') } as const;
      return { kind: 'approval', id: text('id'), answer };
    }
    case 'rondo.approval.granted':
      return { kind: 'approval', id: text('id'), answer: { verdict: 'granted', by: '', at: '', reason: '' } };
  }
  if (INTERNAL_TYPES.has(type)) return undefined;
  return { kind: 'event', type: shorten(type, MAX_TEXT_CHARS, full), facts: factsOf(payload, full) };
}

function payloadText(payload: unknown, full: boolean): string {
  if (payload === undefined) return '';
  return shorten(JSON.stringify(payload) ?? '', MAX_TEXT_CHARS, full);
}

/** Returns the primitive members of a vendor's payload; all members if `full` is true. */
function factsOf(payload: unknown, full: boolean): string {
  if (isPrimitive(payload)) return shorten(String(payload), MAX_TEXT_CHARS, full);
  if (typeof payload !== 'object' || payload === null) return '';
  const facts: string[] = [];
  for (const name of Object.keys(payload)) {
    const value = ownProperty(payload, name);
    const text = isPrimitive(value) ? String(value) : full ? (JSON.stringify(value) ?? '') : undefined;
    if (text !== undefined) facts.push(`${shorten(name, MAX_NAME_CHARS, full)}=${shorten(text, MAX_FACT_CHARS, full)}`);
    if (!full && facts.length === MAX_FACTS) break;
  }
  return facts.join(' ');
}

function shorten(text: string, maxChars: number, full: boolean): string {
  return full || text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`;
}

function isPrimitive(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** Returns a non-negative number, bounded so that sums stay finite; undefined for anything else. */
export function amountOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? Math.min(value, MAX_AMOUNT) : undefined;
}

/** Returns a text; an empty one for anything else. */
export function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
