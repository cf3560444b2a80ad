/**
 * A directory of keys: a file for each private key, and `keys.json`, the list of the public keys, which is what a
 * verifier gets. Receipts and checkpoints have keys of their own. A key is created when it is first needed. All changes
 * are made under a lock, and a private key is written before it is listed.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeBase64 } from '../../base/base64.js';
import { newKeySeed, privateKeyOf } from '../../base/ed25519.js';
import { Fault } from '../../base/errors.js';
import { localSigner } from '../../base/local-signer.js';
import { sha256 } from '../../base/sha256.js';
import { parseKeys, TrustedKeys } from '../../base/trusted-keys.js';
import { parseStrictJson } from '../../json/strict-json.js';
import type { KeyRole, KeysDocument, NoteSigner, TrustedKey } from '../../protocol/receipt.js';
import { withKeyLock } from './key-lock.js';
import type { KeyOrigin } from './key-origin.js';
import { readOwnFile } from './own-file.js';
import { PinnedDirectory } from './pinned-directory.js';
import { readPrivateKey, writePrivateKey, writeWholeFile } from './private-key-file.js';

const MAX_LIST_BYTES = 1024 * 1024;
const ROLES: readonly KeyRole[] = ['receipt', 'checkpoint'];
/** For how many further receipts a replaced key is valid while running processes may still sign with it. */
const OPEN_OVERLAP = 10_000;
/**
 * For how many further receipts it is valid once none of them does. Not zero: a process that was suspended right after it
 * signed may add one receipt for each of its turns later than others.
 */
const ENDED_OVERLAP = 64;
/** The end of the names of the files that hold the keys of stores. */
const STORE_KEY_SUFFIX = '.store-key';

/** The store that keys sign for. */
export interface SignedStore {
  /** Throws a Fault with the code KEYS_UNUSABLE if the key of the store is not where it was. */
  assertKey(): void;
  /** True if the store has receipts, which keys have signed. */
  hasReceipts(): Promise<boolean>;
}

/** The keys in a directory. */
export class KeyDirectory {
  /** The directory, which stays the same while this process runs. */
  readonly pinned: PinnedDirectory;
  private readonly directory: string;
  private readonly newSeed: () => Uint8Array;
  private readonly origin: KeyOrigin | undefined;
  /** True if this process has read or written a list: it is not begun again. */
  private wasListed = false;
  private store: SignedStore | undefined;

  /**
   * `newSeed` makes the seeds of new keys. @default random
   * `origin` is marked with the keys that are created, unless it lacks others. @default no mark is made
   */
  constructor(directory: string, newSeed: () => Uint8Array = newKeySeed, origin?: KeyOrigin) {
    this.pinned = new PinnedDirectory(directory);
    this.directory = directory;
    this.newSeed = newSeed;
    this.origin = origin;
  }

  /** Sets the store that the keys sign for. Without one, keys are created whenever there are none. */
  signFor(store: SignedStore): void {
    this.store = store;
    this.pinned.assertCreatable = () => store.assertKey();
  }

  /** Returns the public keys: the content of `keys.json`. */
  async list(): Promise<KeysDocument> {
    await this.pinned.check();
    const bytes = await readOwnFile(this.listPath, MAX_LIST_BYTES);
    // guard: removed-key-list-refused
    if (bytes === undefined && this.wasListed) throw unusable(`${this.listPath} was removed. Restore it`);
    this.wasListed = bytes !== undefined;
    return bytes === undefined ? { keys: [] } : parseList(bytes, this.listPath);
  }

  /**
   * Returns the signer of the current key of a role. Creates the key if there is none. Throws a Fault with the code
   * KEYS_UNUSABLE if the keys are not those of the store: it has receipts and there are no keys, or its own key is gone.
   */
  async signer(role: KeyRole): Promise<NoteSigner> {
    const listed = await this.list();
    this.store?.assertKey();
    if (listed.keys.length === 0) await this.assertNeverSigned();
    const current = currentKey(listed, role) ?? (await this.change((keys) => this.withCurrentKey(keys, role)));
    return this.load(current);
  }

  /** Throws if the store has receipts and there are no keys: they were moved away or removed. */
  private async assertNeverSigned(): Promise<void> {
    if ((await this.store?.hasReceipts()) !== true) return;
    // Another process may have made the first keys meanwhile. Keys are there before the receipts that they sign.
    const { keys } = await this.list();
    // guard: lost-keys-not-made-again
    if (keys.length > 0) return;
    throw unusable(
      `${this.directory} has no keys, and the store has receipts that others signed. Restore the directory from where ` +
        'it was moved or from a backup, or begin with new keys: rondo keys create',
    );
  }

  /**
   * Replaces the current key of a role. The new one is valid from `logIndex` on, and the old one until `endOverlap` ends
   * that. Returns the new one.
   */
  rotate(role: KeyRole, logIndex: number): Promise<TrustedKey> {
    return this.change(async (keys) => {
      const replaced = currentKey({ keys }, role);
      if (logIndex < (replaced?.from ?? 0))
        throw unusable(`a key of the role ${role} is already valid from a later index`);
      const key = await this.create(role, logIndex);
      const kept = keys.map((each) => (each === replaced ? { ...each, until: logIndex + OPEN_OVERLAP } : each));
      return { keys: [...kept, key], result: key };
    });
  }

  /**
   * Ends the time in which replaced keys of a role count, also those of interrupted rotations. Call it when no process
   * signs with them any more, with the number of receipts in the log. Returns false, and changes nothing, if several
   * stores use these keys: the position in one log says nothing about the others.
   */
  async endOverlap(role: KeyRole, logIndex: number): Promise<boolean> {
    // guard: shared-keys-keep-their-overlap
    if ((await this.storeCount()) > 1) return false;
    const last = logIndex + ENDED_OVERLAP;
    return this.change(async (keys) => ({
      // guard: ended-overlap-not-extended
      keys: keys.map((key) => (key.role === role && (key.until ?? 0) > last ? { ...key, until: last } : key)),
      result: true,
    }));
  }

  /** Returns the number of stores whose key is in this directory. */
  private async storeCount(): Promise<number> {
    const names = await readdir(this.directory);
    return names.filter((name) => name.endsWith(STORE_KEY_SUFFIX)).length;
  }

  /**
   * Revokes a key: for all receipts, or for those from a log index on. The next signer of its role gets a new key.
   * Returns the revoked key.
   */
  revoke(kid: string, at: number | true): Promise<TrustedKey> {
    return this.change(async (keys) => {
      const known = keys.find((each) => each.kid === kid);
      if (known === undefined) throw unusable(`there is no key "${kid}"`);
      // A revocation is never taken back, not even in part.
      const isEarlier = known.revoked === undefined || (known.revoked !== true && (at === true || at < known.revoked));
      const revoked: TrustedKey = isEarlier ? { ...known, revoked: at } : known;
      return { keys: keys.map((each) => (each === known ? revoked : each)), result: revoked };
    });
  }

  /** Marks all keys of the directory as if this process had created them. */
  accept(): Promise<void> {
    return this.change(async (keys) => ({ keys, result: await this.origin?.mark(keys) }));
  }

  private get listPath(): string {
    return join(this.directory, 'keys.json');
  }

  private keyPath(kid: string): string {
    return join(this.directory, `${kid}.key`);
  }

  /** Changes the list under the lock, and writes it if it has changed. */
  private async change<T>(
    edit: (keys: readonly TrustedKey[]) => Promise<{ readonly keys: readonly TrustedKey[]; readonly result: T }>,
  ): Promise<T> {
    await this.pinned.create();
    return withKeyLock(join(this.directory, 'keys.lock'), async () => {
      const before = await this.list();
      const { keys, result } = await edit(before.keys);
      if (keys !== before.keys) {
        const document = JSON.stringify({ keys }, undefined, 2);
        // What cannot be read back is not written.
        TrustedKeys.parse(JSON.parse(document));
        await this.markNewKeys(before.keys, keys);
        await writeWholeFile(this.listPath, `${document}\n`, 0o644);
        this.wasListed = true;
      }
      return result;
    });
  }

  /** Marks keys before they are listed, so that a crash between the two reports none of them. */
  private async markNewKeys(before: readonly TrustedKey[], keys: readonly TrustedKey[]): Promise<void> {
    const { origin } = this;
    // guard: only-new-keys-are-marked
    if (before.length === 0 || (await origin?.isMarked(before)) === true) await origin?.mark(keys);
  }

  private async withCurrentKey(
    keys: readonly TrustedKey[],
    role: KeyRole,
  ): Promise<{ readonly keys: readonly TrustedKey[]; readonly result: TrustedKey }> {
    const existing = currentKey({ keys }, role);
    if (existing !== undefined) return { keys, result: existing };
    const created = await this.create(role, undefined);
    // With the first key come those of the other roles, so that the list is whatever a verifier needs from the start.
    const others = keys.length > 0 ? [] : ROLES.filter((other) => other !== role);
    const further = await Promise.all(others.map((other) => this.create(other, undefined)));
    return { keys: [...keys, created, ...further], result: created };
  }

  private async create(role: KeyRole, from: number | undefined): Promise<TrustedKey> {
    const seed = this.newSeed();
    const { bytes } = privateKeyOf(seed).publicKey;
    const kid = `${role}-${sha256(bytes).toString('hex').slice(0, 16)}`;
    await writePrivateKey(this.keyPath(kid), seed);
    return { kid, publicKey: encodeBase64(bytes), role, ...(from !== undefined && { from }) };
  }

  private async load({ kid, publicKey }: TrustedKey): Promise<NoteSigner> {
    const key = await readPrivateKey(this.keyPath(kid));
    if (encodeBase64(key.publicKey.bytes) !== publicKey)
      throw unusable(`the file of the key "${kid}" contains another key than the list`);
    return localSigner(kid, key);
  }
}

/** Returns the key that signs for a role now: the last one that is neither replaced nor revoked. */
function currentKey({ keys }: KeysDocument, role: KeyRole): TrustedKey | undefined {
  return keys.findLast((key) => key.role === role && key.until === undefined && key.revoked === undefined);
}

function parseList(bytes: Uint8Array, path: string): KeysDocument {
  try {
    return parseKeys(parseStrictJson(bytes, { maxBytes: MAX_LIST_BYTES, maxDepth: 4 }));
  } catch (thrown) {
    throw unusable(`${path} is damaged (${thrown instanceof Error ? thrown.message : 'unreadable'})`, thrown);
  }
}

function unusable(reason: string, cause?: unknown): Fault {
  return new Fault('KEYS_UNUSABLE', `The keys cannot be used: ${reason}.`, undefined, cause);
}
