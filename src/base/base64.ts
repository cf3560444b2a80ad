/**
 * Strict base64: each byte string has exactly one text. `Buffer.from` alone ignores characters that it does not know,
 * so signed bytes could be changed without changing what they decode to.
 */

/** Returns the bytes of a padded base64 text (RFC 4648, section 4); undefined unless it is their canonical text. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // guard: base64-is-canonical
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** Returns the bytes of an unpadded base64url text (RFC 4648, section 5); undefined unless it is their canonical text. */
export function decodeBase64Url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/** Returns the padded base64 text of bytes. */
export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
}
