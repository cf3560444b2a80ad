/** Bytes as text, and texts made shorter. */

/** How much of a file is looked at to tell whether it is text. */
const MAX_SNIFFED_BYTES = 8192;

/** Whether a file is something other than text: text has no NUL. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, MAX_SNIFFED_BYTES).includes(0);
}

/** The text, if the bytes are UTF-8 to the last one: only such a file comes back unchanged from an edit. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The first characters of a text, with a mark if there are more; a pair of surrogates is not torn. */
export function truncate(text: string, most: number, mark = '…'): string {
  return text.length <= most ? text : `${firstChars(text, most)}${mark}`;
}

export function firstChars(text: string, most: number): string {
  const torn = /[\ud800-\udbff]/.test(text.charAt(most - 1));
  return text.slice(0, torn ? most - 1 : most);
}

/** Lines without their ends; the end of the last line begins no other. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
