/**
 * The keys that a verifier trusts, from a keys file or from the verifier document of runx. A key can be limited to a role
 * and to a range of the log, and it can be revoked. The limits are positions in the log and never times, because the
 * time of a receipt is what its signer says it is.
 */
import type { KeyRole, KeysDocument, TrustedKey } from '../protocol/receipt.js';
import { decodeBase64 } from './base64.js';
import { anyOf, index, listOf, matching, members, oneOf, optional, type Shape, text } from './document-shape.js';
import { type PublicKey, publicKeyOf } from './ed25519.js';
import { Fault } from './errors.js';
import { ownProperty } from './own-property.js';

const MAX_KEYS = 1000;

const kid = matching(/^[^\s+]{1,200}$/u, 'a text of 1 to 200 characters without spaces and plus signs');

const keysShape: Shape = members({
  keys: listOf(
    members({
      kid,
      publicKey: text(44),
      role: optional(oneOf('receipt', 'checkpoint')),
      from: optional(index),
      until: optional(index),
      revoked: optional(anyOf(index, oneOf(true))),
    }),
    MAX_KEYS,
  ),
});

const runxVerifierShape: Shape = members({ kid, public_key_base64: text(44) });

/** Why a key does not count for a signature. */
export type KeyProblem =
  | 'key_unknown'
  | 'key_role'
  | 'key_revoked'
  | 'key_not_yet_valid'
  | 'key_expired'
  | 'key_needs_log_proof';

interface LoadedKey extends TrustedKey {
  readonly loaded: PublicKey;
}

/** A set of trusted keys. */
export class TrustedKeys {
  private readonly keys = new Map<string, LoadedKey>();

  /** Loads keys. Throws a Fault with the code KEYS_UNUSABLE if one is malformed, must not be trusted, or occurs twice. */
  constructor(keys: readonly TrustedKey[]) {
    const seen = new Set<string>();
    for (const key of keys) {
      if (this.keys.has(key.kid) || seen.has(key.publicKey)) throw unusable(`the key "${key.kid}" occurs twice`);
      seen.add(key.publicKey);
      this.keys.set(key.kid, { ...key, loaded: loadKey(key) });
    }
  }

  /** Reads the content of a keys file, or a verifier document of runx. Throws a Fault with the code KEYS_UNUSABLE. */
  static parse(document: unknown): TrustedKeys {
    return new TrustedKeys(parseKeys(document).keys);
  }

  /** Returns the key with this id, whatever it may be used for; undefined if there is none. */
  get(kid: string): PublicKey | undefined {
    return this.keys.get(kid)?.loaded;
  }

  /**
   * Returns the key for a receipt, or why it does not count. `logIndex` is the position of the receipt in the log, if
   * that is proved.
   */
  forReceipt(kid: string, logIndex: number | undefined): PublicKey | KeyProblem {
    return this.find(kid, 'receipt', logIndex, 0);
  }

  /**
   * Returns the key for a document that has no position in the log, or why it does not count. A key that signs now
   * counts; whether one that was replaced or revoked signed before that cannot be known.
   */
  forUnlogged(kid: string): PublicKey | KeyProblem {
    const { until, revoked } = this.keys.get(kid) ?? {};
    // guard: unlogged-needs-current-key
    const isCurrent = until === undefined && revoked === undefined;
    return this.find(kid, 'receipt', isCurrent ? Number.MAX_SAFE_INTEGER : undefined, 0);
  }

  /** Returns the key for a checkpoint over `size` receipts, or why it does not count. */
  forCheckpoint(kid: string, size: number): PublicKey | KeyProblem {
    // A checkpoint of n receipts can be signed before and after a rotation at n.
    return this.find(kid, 'checkpoint', size, 1);
  }

  private find(kid: string, role: KeyRole, at: number | undefined, tolerance: number): PublicKey | KeyProblem {
    const key = this.keys.get(kid);
    if (key === undefined) return 'key_unknown';
    // guard: key-role-checked
    if (key.role !== undefined && key.role !== role) return 'key_role';
    return problemAt(key, at, tolerance) ?? key.loaded;
  }
}

/** Returns why a key does not count at a position of the log; undefined if it does. */
function problemAt(
  { from, until, revoked }: TrustedKey,
  at: number | undefined,
  tolerance: number,
): KeyProblem | undefined {
  // guard: revoked-key-refused
  if (revoked === true) return 'key_revoked';
  if (from === undefined && until === undefined && revoked === undefined) return undefined;
  // guard: limited-key-needs-proof
  if (at === undefined) return 'key_needs_log_proof';
  if (revoked !== undefined && at >= revoked + tolerance) return 'key_revoked';
  // guard: key-not-used-early
  if (from !== undefined && at < from) return 'key_not_yet_valid';
  // guard: expired-key-refused
  if (until !== undefined && at >= until + tolerance) return 'key_expired';
  return undefined;
}

/** Checks the content of a keys file, or converts a verifier document of runx. Throws a Fault with the code KEYS_UNUSABLE. */
export function parseKeys(document: unknown): KeysDocument {
  if (ownProperty(document, 'public_key_base64') !== undefined) {
    const problem = runxVerifierShape(document);
    if (problem !== undefined) throw unusable(`the verifier document is invalid: document${problem}`);
    const { kid, public_key_base64: publicKey } = document as { kid: string; public_key_base64: string };
    return { keys: [{ kid, publicKey }] };
  }
  const problem = keysShape(document);
  if (problem !== undefined) throw unusable(`the keys file is invalid: document${problem}`);
  return document as KeysDocument;
}

function loadKey({ kid, publicKey }: TrustedKey): PublicKey {
  const bytes = decodeBase64(publicKey);
  if (bytes === undefined) throw unusable(`the public key of "${kid}" is not canonical base64`);
  try {
    return publicKeyOf(bytes);
  } catch (cause) {
    throw unusable(`the key "${kid}" must not be trusted. ${cause instanceof Error ? cause.message : ''}`.trim());
  }
}

function unusable(reason: string): Fault {
  return new Fault('KEYS_UNUSABLE', `The keys cannot be used: ${reason.replace(/\.$/, '')}.`);
}
