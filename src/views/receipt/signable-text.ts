/** Texts of entries as they are written into receipts: always valid Unicode and bounded, so that every turn can be sealed. */
import { hasLoneSurrogate } from '../../json/i-json.js';

const MAX_CHARS = 4096;

/** Returns a text that can be signed. Half surrogate pairs become U+FFFD, and a long text is cut. */
export function signableText(text: string, maxChars: number = MAX_CHARS): string {
  const cut = text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text;
  return hasLoneSurrogate(cut) ? Buffer.from(cut).toString() : cut;
}
