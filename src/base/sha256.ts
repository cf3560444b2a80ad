/** SHA-256 as bytes. `hash` of Node.js takes twice as long to return a buffer as to return a text of the same bytes. */
import { type BinaryToTextEncoding, hash } from 'node:crypto';

/** An encoding of one character per byte. The types of Node.js omit it. */
const BYTES = 'latin1' as BinaryToTextEncoding;

/** Returns the SHA-256 digest of bytes, or of the UTF-8 form of a text. */
export function sha256(content: Uint8Array | string): Buffer {
  return Buffer.from(hash('sha256', content, BYTES), 'latin1');
}
