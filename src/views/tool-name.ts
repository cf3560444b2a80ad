/**
 * The names of tools in model requests. Providers accept `[A-Za-z0-9_-]{1,64}`: a loop id of that form is its own name,
 * any other is escaped. Only requests to providers use the name; the journal, approvals and envelopes use the loop id.
 */
import { digestOfText } from '../journal/record.js';

const MAX_NAME_CHARS = 64;
const VALID_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/**
 * A name that is too long is replaced by this many of its characters, a hyphen, and this many characters of the digest
 * of the id.
 */
const PREFIX_CHARS = 43;
const DIGEST_CHARS = 20;

/**
 * Returns the name of a tool in model requests. The function is deterministic, and different ids that need escaping
 * have different names: `_` is doubled, and any other character outside the alphabet becomes `_`, its code point in
 * hex, `_`. An escaped name can equal the id of another tool, so the caller must check the tools of a request for
 * duplicates.
 *
 * @example toolNameOf('summarize/v1') // 'summarize_2F_v1'
 */
export function toolNameOf(id: string): string {
  if (VALID_NAME.test(id)) return id;
  const name = id.replace(/[^A-Za-z0-9-]/gu, escapeCharacter);
  return name.length <= MAX_NAME_CHARS && name !== ''
    ? name
    : `${name.slice(0, PREFIX_CHARS)}-${digestOfText(id).slice(0, DIGEST_CHARS)}`;
}

function escapeCharacter(character: string): string {
  return character === '_' ? '__' : `_${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}_`;
}
