/** Parses the JSON document that a tool returns. The text is untrusted, so its depth is checked before it is parsed. */
import { type CutEdge, NO_REDACTION, type Redactor } from '../../base/redact.js';
import type { Json } from '../../protocol/json.js';
import { sanitizeText, truncateEnd } from './sanitize-text.js';

/** The maximum depth of a journaled value. It also bounds the memory that parsing takes. */
const MAX_DEPTH = 256;
const MAX_EXCERPT_CHARS = 200;
const MAX_SCANNED_CHARS = 64 * 1024;

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Returns the redacted value, or a redacted description of the bytes if they are not one JSON document. The description
 * completes a sentence such as "it printed …".
 */
export function parseJsonDocument(
  bytes: Uint8Array,
  valueRedactor: Redactor = NO_REDACTION,
  problemRedactor: Redactor = valueRedactor,
): { readonly value: Json } | { readonly problem: string } {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { problem: 'bytes that are not UTF-8 text' };
  }
  if (text.trim() === '') return { problem: 'nothing' };
  if (isTooDeep(text)) return { problem: `a document nested deeper than ${MAX_DEPTH} levels` };
  try {
    return { value: valueRedactor.redactValue(JSON.parse(text) as Json) };
  } catch {
    return { problem: `something else, which begins with: ${openingExcerpt(text, problemRedactor)}` };
  }
}

/**
 * Returns a sanitized and redacted excerpt of the beginning of an untrusted text, which may be truncated at its end.
 */
export function openingExcerpt(text: string, redactor: Redactor = NO_REDACTION, isTruncated = false): string {
  // The text is cut before redaction, which bounds the work, and again after it, which bounds the message.
  const cut: CutEdge | undefined = isTruncated || text.length > MAX_SCANNED_CHARS ? 'end' : undefined;
  return truncateEnd(sanitizeText(text.slice(0, MAX_SCANNED_CHARS), redactor, cut), MAX_EXCERPT_CHARS);
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '"') i = endOfString(text, i);
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
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
