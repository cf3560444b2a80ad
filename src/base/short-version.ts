/** The short form of versions, for people. A workflow without a version has the digest of its plan, of 64 digits. */

const DIGEST_VERSION = /^(.*\+[0-9a-f]{8})[0-9a-f]{56}$/;

/**
 * Returns a version for tables and messages: of a digest in it, the first 8 digits.
 *
 * @example
 * shortVersion(`0.0.0+${'1a2b3c4d'.repeat(8)}`); // '0.0.0+1a2b3c4d'
 */
export function shortVersion(version: string): string {
  return DIGEST_VERSION.exec(version)?.[1] ?? version;
}
