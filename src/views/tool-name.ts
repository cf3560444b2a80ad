/**
 * The name under which a model knows a tool. Providers take `[A-Za-z0-9_-]{1,64}`; a loop id that fits is its own name, any
 * other is written in that alphabet. The name is for the provider only: journal, approvals and envelopes have the loop id.
 */
import { digest } from '../journal/record.js';

const LONGEST = 64;
const FITS = /^[A-Za-z0-9_-]{1,64}$/;
/** Of a name that is too long: how much of it is kept in front of the digest of the id, and how long that is. */
const KEPT = 43;
const DIGEST = 20;

/**
 * The same id always has the same name. Ids that do not fit have different names: `_` is doubled and any other character
 * outside the alphabet is `_`, its code point in hex, `_`. Such a name can be the id of another tool; whoever puts tools
 * together must look for that.
 *
 * @example toolNameOf('summarize/v1') // 'summarize_2F_v1'
 */
export function toolNameOf(id: string): string {
  if (FITS.test(id)) return id;
  const name = id.replace(/[^A-Za-z0-9-]/gu, escaped);
  return name.length <= LONGEST && name !== '' ? name : `${name.slice(0, KEPT)}-${digest(id).slice(0, DIGEST)}`;
}

function escaped(character: string): string {
  return character === '_' ? '__' : `_${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}_`;
}
