/**
 * The name under which a model knows a tool. Providers take `[A-Za-z0-9_-]{1,64}`; a loop id that fits is its own name, any
 * other is written in that alphabet. The name is for the provider only: journal, approvals and envelopes have the loop id.
 */
import { digestOfText } from '../journal/record.js';

const MAX_NAME_CHARS = 64;
const VALID_NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** Of a name that is too long: how much of it is kept in front of the digest of the id, and how long that is. */
const PREFIX_CHARS = 43;
const DIGEST_CHARS = 20;

/**
 * The same id always has the same name. Ids that do not fit have different names: `_` is doubled and any other character
 * outside the alphabet is `_`, its code point in hex, `_`. Such a name can be the id of another tool; whoever puts tools
 * together must look for that.
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
