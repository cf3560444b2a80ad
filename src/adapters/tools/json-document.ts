/** Reads the one JSON document that a tool answers with; it is untrusted, so its depth is bounded before it is parsed. */
import { type CutEdge, NO_REDACTION, type Redactor } from '../../base/redact.js';
import type { Json } from '../../protocol/json.js';
import { sanitizeText, truncateEnd } from './sanitize-text.js';

/** As deep as a journaled value may be; a parser that goes deeper could be made to eat all memory. */
const MAX_DEPTH = 256;
const MAX_EXCERPT_CHARS = 200;
const MAX_SCANNED_CHARS = 64 * 1024;

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The value, or why the bytes are not one JSON document; both without secrets. */
export function parseJsonDocument(
  bytes: Uint8Array,
  inValue: Redactor = NO_REDACTION,
  inFlaw: Redactor = inValue,
): { readonly value: Json } | { readonly flaw: string } {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { flaw: 'not UTF-8 text' };
  }
  if (text.trim() === '') return { flaw: 'nothing' };
  if (isTooDeep(text)) return { flaw: `nested deeper than ${MAX_DEPTH}` };
  try {
    return { value: inValue.redactValue(JSON.parse(text) as Json) };
  } catch {
    return { flaw: `not one JSON document; it begins with: ${openingExcerpt(text, inFlaw)}` };
  }
}

/** The first characters of a text that came from outside, and that may have been cut at its end. */
export function openingExcerpt(text: string, secrets: Redactor = NO_REDACTION, isCut = false): string {
  // Cut twice: what is left after the secrets are taken out is shown, but not all of a large document is looked through.
  const cut: CutEdge | undefined = isCut || text.length > MAX_SCANNED_CHARS ? 'end' : undefined;
  return truncateEnd(sanitizeText(text.slice(0, MAX_SCANNED_CHARS), secrets, cut), MAX_EXCERPT_CHARS);
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const mark = text[i];
    if (mark === '"') i = endOfString(text, i);
    else if (mark === '[' || mark === '{') depth += 1;
    else if (mark === ']' || mark === '}') depth -= 1;
    if (depth > MAX_DEPTH) return true;
  }
  return false;
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '"') return i;
  }
  return text.length;
}
