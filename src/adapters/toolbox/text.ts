/** Decodes, splits and truncates texts. */

/** The number of bytes at the beginning of a file that are searched for a NUL byte. */
const MAX_SNIFFED_BYTES = 8192;

/** Returns true if the beginning of the content has a NUL byte, which text does not contain. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, MAX_SNIFFED_BYTES).includes(0);
}

/**
 * Decodes UTF-8; undefined if the bytes are not valid. Only a valid file can be edited without changing other bytes.
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Returns a text of at most `maxChars` UTF-16 code units unchanged. Truncates a longer one and appends the marker. */
export function truncate(text: string, maxChars: number, marker = '…'): string {
  return text.length <= maxChars ? text : `${firstChars(text, maxChars)}${marker}`;
}

/** Returns the first `maxChars` UTF-16 code units, or one less if that would split a surrogate pair. */
export function firstChars(text: string, maxChars: number): string {
  const splitsPair = /[\ud800-\udbff]/.test(text.charAt(maxChars - 1));
  return text.slice(0, splitsPair ? maxChars - 1 : maxChars);
}

/** Splits a text into lines without their newlines. A newline at the end starts no further line. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
