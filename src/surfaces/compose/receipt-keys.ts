/** The keys of receipts: those in the data directory, or the signer that the environment of runx describes. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import type { PinnedDirectory, RunxSigner, SignedStore } from '../../adapters/keys/index.js';
import { encodeBase64 } from '../../base/base64.js';
import { Fault } from '../../base/errors.js';
import { sha256 } from '../../base/sha256.js';
import { TrustedKeys } from '../../base/trusted-keys.js';
import type { HostOptions, ReceiptKeys } from '../../host/host-options.js';
import type { RotatedKeys } from '../../host/receipts/key-rotation.js';
import { parseStrictJson } from '../../json/strict-json.js';
import type { KeysDocument, TrustedKey } from '../../protocol/receipt.js';
import { trustFilePath } from '../authority.js';
import type { Settings } from '../settings.js';
import type { OpenedStore } from './adapters.js';

type Environment = { readonly [name: string]: string | undefined };

/** The settings that determine the keys. */
type KeySettings = Pick<Settings, 'dataDirectory' | 'env'>;

/** The name of the file with the secret of the user that marks depend on, beside trust.toml. */
const ORIGIN_SECRET = 'key-origin';
const MAX_KEYS_BYTES = 1024 * 1024;
/** The store that is used if none is chosen. */
const DEFAULT_STORE = 'journal.db';
const VERIFY_VARIABLES = ['RUNX_RECEIPT_VERIFY_KID', 'RUNX_RECEIPT_VERIFY_ED25519_PUBLIC_KEY_BASE64'] as const;

/** The keys of a data directory, which can be changed. */
export interface StoredKeys extends ReceiptKeys, RotatedKeys {
  /** The signer that the environment describes; undefined if it describes none. */
  readonly environmentSigner: RunxSigner | undefined;
  /** The directory of the keys. */
  readonly directory: PinnedDirectory;
  /** Sets the store that the keys sign for. Without one, keys are created whenever there are none. */
  signFor(store: SignedStore): void;
  /** Returns what to tell the user if keys that sign were not created in this data directory; undefined otherwise. */
  foreignKeysNotice(): Promise<string | undefined>;
  /** Takes the keys as if they had been created here. */
  accept(): Promise<void>;
}

/** Opens the keys of a data directory. Throws a Fault if the environment describes a signer only in part. */
export async function openReceiptKeys({ dataDirectory, env }: KeySettings): Promise<StoredKeys> {
  const { KeyDirectory, KeyOrigin, signerFromEnv } = await import('../../adapters/keys/index.js');
  const environmentSigner = signerFromEnv(env);
  const path = join(dataDirectory, 'keys');
  const trustFile = trustFilePath(env);
  const origin = trustFile === undefined ? undefined : new KeyOrigin(path, join(dirname(trustFile), ORIGIN_SECRET));
  const directory = new KeyDirectory(path, undefined, origin);
  return {
    environmentSigner,
    directory: directory.pinned,
    signFor: (store) => directory.signFor(store),
    // The signer of the environment signs everything, so that its public key is all that a verifier needs.
    signer: (role) => (environmentSigner !== undefined ? Promise.resolve(environmentSigner) : directory.signer(role)),
    list: async () => withEnvironmentKey(await directory.list(), environmentSigner),
    rotate: (role, logIndex) => directory.rotate(role, logIndex),
    endOverlap: (role, logIndex) => directory.endOverlap(role, logIndex),
    revoke: (kid, at) => directory.revoke(kid, at),
    foreignKeysNotice: async () => {
      if (environmentSigner !== undefined || origin === undefined) return undefined;
      const { keys } = await directory.list();
      return keys.length === 0 || (await origin.isMarked(keys)) ? undefined : foreignKeysNotice(path);
    },
    accept: () => directory.accept(),
  };
}

function foreignKeysNotice(path: string): string {
  return (
    `The signing keys in ${path} were not created there by you, so others may have them and can sign receipts. ` +
    'Use another data directory (--data), or, if you moved or restored this one yourself: rondo keys accept'
  );
}

/** What is kept of a store outside of it. */
type Witnesses = Pick<HostOptions, 'logWitness' | 'lengthWitness'>;

/**
 * Connects keys with the open store that they sign for, and returns where the newest checkpoint of the log of the store and the lengths of its log and its ledgers are kept: beside the keys,
 * which several stores may share. They are named after the place of the store in the data directory, so that both can be
 * moved together. Call it when the store is open: from then on the directory of the keys must stay the same.
 */
export async function openWitnesses(
  { dataDirectory, store }: Settings,
  { directory, signFor }: Pick<StoredKeys, 'directory' | 'signFor'>,
  opened: Pick<OpenedStore, 'store' | 'assertKey'>,
): Promise<Witnesses> {
  if (store.kind === 'memory') return {};
  await directory.check();
  const hasReceipts = async (): Promise<boolean> =>
    (await import('../../host/receipts/receipt-log.js')).hasReceipts(opened.store);
  signFor({ assertKey: opened.assertKey, hasReceipts });
  const { CheckpointFile, StreamLengths } = await import('../../adapters/keys/index.js');
  const place = relative(dataDirectory, store.path).split(sep).join('/');
  const name = place === DEFAULT_STORE ? DEFAULT_STORE : sha256(place).toString('hex').slice(0, 16);
  const path = join(directory.path, name);
  return {
    logWitness: new CheckpointFile(`${path}.checkpoint`, directory),
    lengthWitness: new StreamLengths(`${path}.lengths`, directory),
  };
}

function withEnvironmentKey(document: KeysDocument, signer: RunxSigner | undefined): KeysDocument {
  if (signer === undefined) return document;
  const publicKey = encodeBase64(signer.publicKey);
  const others = document.keys.filter((key) => key.kid !== signer.kid && key.publicKey !== publicKey);
  return { keys: [...others, { kid: signer.kid, publicKey }] };
}

/** The keys that a file is verified with, and where they come from. */
export interface VerifierKeys {
  readonly keys: TrustedKeys;
  readonly trust: 'file' | 'store';
}

/**
 * Returns the keys to verify a file with: those of the keys file, or else the verifier that the environment of runx
 * describes, or else the list in the data directory; undefined if there are none. No store is opened.
 */
export async function loadVerifierKeys(
  file: string | undefined,
  settings: KeySettings,
): Promise<VerifierKeys | undefined> {
  if (file !== undefined) return { keys: TrustedKeys.parse(await readKeysFile(file)), trust: 'file' };
  const verifier = verifierFromEnv(settings.env);
  if (verifier !== undefined) return { keys: new TrustedKeys([verifier]), trust: 'file' };
  const { keys } = await (await openReceiptKeys(settings)).list();
  return keys.length === 0 ? undefined : { keys: new TrustedKeys(keys), trust: 'store' };
}

function verifierFromEnv(env: Environment): TrustedKey | undefined {
  const [kid = '', publicKey = ''] = VERIFY_VARIABLES.map((name) => env[name]);
  if (kid === '' && publicKey === '') return undefined;
  if (kid !== '' && publicKey !== '') return { kid, publicKey };
  throw new Fault('KEYS_UNUSABLE', `Set both ${VERIFY_VARIABLES.join(' and ')}, or neither.`);
}

async function readKeysFile(file: string): Promise<unknown> {
  try {
    const { size } = await stat(file);
    if (size > MAX_KEYS_BYTES) throw new Error(`it has more than ${MAX_KEYS_BYTES} bytes`);
    return parseStrictJson(await readFile(file), { maxBytes: MAX_KEYS_BYTES, maxDepth: 4 });
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new Fault('KEYS_UNUSABLE', `The keys file ${file} cannot be used: ${reason}.`, undefined, thrown);
  }
}
