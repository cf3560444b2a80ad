/** Reads the one JSON document that a tool answers with; it is untrusted, so its depth is bounded before it is parsed. */
import { type Cut, NO_SECRETS, type Redactor } from '../../base/redact.js';
import type { Json } from '../../protocol/json.js';
import { firstOf, plain } from './plain.js';

/** As deep as a journaled value may be; a parser that goes deeper could be made to eat all memory. */
const DEPTH = 256;
const SHOWN = 200;
const LOOKED_AT = 64 * 1024;

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The value, or why the bytes are not one JSON document; both without secrets. */
export function documentOf(
  bytes: Uint8Array,
  inValue: Redactor = NO_SECRETS,
  inFlaw: Redactor = inValue,
): { readonly value: Json } | { readonly flaw: string } {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { flaw: 'not UTF-8 text' };
  }
  if (text.trim() === '') return { flaw: 'nothing' };
  if (tooDeep(text)) return { flaw: `nested deeper than ${DEPTH}` };
  try {
    return { value: inValue.value(JSON.parse(text) as Json) };
  } catch {
    return { flaw: `not one JSON document; it begins with: ${beginning(text, inFlaw)}` };
  }
}

/** The first characters of a text that came from outside, and that may have been cut at its end. */
export function beginning(text: string, secrets: Redactor = NO_SECRETS, isCut = false): string {
  // Cut twice: what is left after the secrets are taken out is shown, but not all of a large document is looked through.
  const cut: Cut | undefined = isCut || text.length > LOOKED_AT ? 'end' : undefined;
  return firstOf(plain(text.slice(0, LOOKED_AT), secrets, cut), SHOWN);
}

function tooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const mark = text[i];
    if (mark === '"') i = endOfString(text, i);
    else if (mark === '[' || mark === '{') depth += 1;
    else if (mark === ']' || mark === '}') depth -= 1;
    if (depth > DEPTH) return true;
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
