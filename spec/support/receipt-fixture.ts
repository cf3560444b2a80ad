// Receipts for tests: chains of several sessions, a log with a signed checkpoint, and bundles of them.

import { encodeBase64 } from '../../src/base/base64.js';
import { type PrivateKey, privateKeyOf } from '../../src/base/ed25519.js';
import { localSigner } from '../../src/base/local-signer.js';
import { inclusionProofs, merkleRoot } from '../../src/base/merkle.js';
import { sha256 } from '../../src/base/sha256.js';
import { TrustedKeys } from '../../src/base/trusted-keys.js';
import type { Entry } from '../../src/protocol/entry.js';
import type {
  BundledReceipt,
  CheckpointScope,
  CheckpointSession,
  DisclosedEntry,
  NoteSigner,
  ReceiptBundle,
  ReceiptEnvelope,
  ReceiptPredicate,
  TrustedKey,
} from '../../src/protocol/receipt.js';
import { createCheckpoint } from '../../src/views/receipt/checkpoint.js';
import { createEnvelope, envelopeHash, logLeafOf } from '../../src/views/receipt/envelope.js';
import { leafHashes, leafSalt, leafText } from '../../src/views/receipt/leaf-hashes.js';
import { statementBytes } from '../../src/views/receipt/statement.js';
import { TurnFold } from '../../src/views/receipt/turn-fold.js';

/** A signer with the key whose seed is 32 times this byte. */
export function testSigner(kid: string, seedByte: number): NoteSigner & { readonly key: PrivateKey } {
  const key = privateKeyOf(Buffer.alloc(32, seedByte));
  return { ...localSigner(kid, key), key };
}

/** Returns a signer as a key that is trusted. */
export function trustedKey({ kid, publicKey }: NoteSigner, limits: Partial<TrustedKey> = {}): TrustedKey {
  return { kid, publicKey: encodeBase64(publicKey), ...limits };
}

export const receiptSigner = testSigner('receipt-1', 1);
export const checkpointSigner = testSigner('checkpoint-1', 2);
/** Trusts the receipt signer for receipts and the checkpoint signer for checkpoints. */
export const trustedKeys = new TrustedKeys([
  trustedKey(receiptSigner, { role: 'receipt' }),
  trustedKey(checkpointSigner, { role: 'checkpoint' }),
]);

/** A sealed receipt with everything that it was made from. */
export interface SealedReceipt {
  readonly envelope: ReceiptEnvelope;
  readonly predicate: ReceiptPredicate;
  readonly salt: Buffer;
  /** The entries that it covers. */
  readonly entries: readonly Entry[];
  /** The hashes of the leaves. */
  readonly leaves: readonly string[];
}

const saltOf = (session: string, sequence: number): Buffer => sha256(`${session} ${sequence}`).subarray(0, 16);

/** Returns the entries of a turn that asks for an approval, in two parts: before and after the answer. */
export function turnEntries(
  turn: string,
  firstSeq: number,
  amount = 12,
): readonly [readonly Entry[], readonly Entry[]] {
  let seq = firstSeq;
  const entry = (type: string, key: string, more: Partial<Entry> = {}): Entry => ({
    seq: seq++,
    at: 1e12 + seq,
    type,
    key,
    ...more,
  });
  const pay = { kind: 'tool', name: 'pay', safety: 'once', value: { amount } } as const;
  const id = `${turn}:0123456789abcdef`;
  const before = [
    entry('rondo.turn.opened', `#${turn}`, { value: { principal: 'ada' } }),
    entry('call.started', turn, { name: 'shop', version: '1.0.0', definitionDigest: 'd1', value: { order: 7 } }),
    entry('call.started', `${turn}/0`, { name: 'price', kind: 'tool', safety: 'pure', value: { sku: 'lamp' } }),
    entry('call.completed', `${turn}/0`, { value: 12, endsEffect: true }),
    entry('call.started', `${turn}/1`, { name: 'pay', value: { amount } }),
    entry('effect.opened', `${turn}/1/0`, pay),
    entry('rondo.approval.requested', `${turn}/1/0/0`, { value: { id, tool: 'pay' } }),
    entry('wait.opened', `${turn}/1/0/1`, { name: `approval ${id}` }),
  ];
  const after = [
    entry('signal.received', `approval ${id}`, { name: `approval ${id}`, value: { approved: true, by: 'bob' } }),
    entry('wait.settled', `${turn}/1/0/1`, { signalId: `approval ${id}`, value: { approved: true, by: 'bob' } }),
    entry('effect.requested', `${turn}/1/0/2`, pay),
    entry('effect.returned', `${turn}/1/0/2`, { value: { paid: amount } }),
    entry('effect.settled', `${turn}/1/0`, { attemptKey: `${turn}/1/0/2` }),
    entry('call.completed', `${turn}/1`, { value: { paid: amount } }),
    entry('call.completed', turn, { value: { done: true } }),
  ];
  return [before, after];
}

/** Options of a session of receipts. */
interface SessionOptions {
  readonly turns?: number;
  readonly isClosed?: boolean;
  readonly signers?: readonly NoteSigner[];
  readonly at?: (sequence: number) => string;
  /** Changes what a receipt says before it is signed. */
  readonly change?: (predicate: ReceiptPredicate) => ReceiptPredicate;
}

/** Makes the receipts of a session: two for each turn, and the terminal one. */
export async function sealSession(session: string, options: SessionOptions = {}): Promise<readonly SealedReceipt[]> {
  const { turns = 2, isClosed = true, signers = [receiptSigner] } = options;
  const { at = () => '2026-01-02T03:04:05.000Z', change = (predicate) => predicate } = options;
  const sealed: SealedReceipt[] = [];
  const seal = async (
    part: Omit<ReceiptPredicate, 'session' | 'sequence' | 'previous' | 'at'>,
    made: Omit<SealedReceipt, 'envelope' | 'predicate'>,
  ): Promise<void> => {
    const last = sealed.at(-1);
    const sequence = sealed.length;
    const predicate = change({
      ...{ session, sequence, at: at(sequence), ...part },
      ...(last !== undefined && { previous: envelopeHash(last.envelope) }),
    });
    sealed.push({ envelope: await createEnvelope(statementBytes(predicate), signers), predicate, ...made });
  };
  let seq = 0;
  for (let i = 0; i < turns; i++) {
    const turn = `${session}.${i}`;
    const fold = new TurnFold(turn);
    for (const entries of turnEntries(turn, seq, 12 + i)) {
      fold.beginPart();
      for (const entry of entries) fold.apply(entry);
      const salt = saltOf(session, sealed.length);
      await seal({ turn, ...fold.summarize(salt) }, { salt, entries, leaves: leafHashes(entries, salt) });
      seq += entries.length;
    }
  }
  if (isClosed) await seal(closing(seq), { salt: saltOf(session, sealed.length), entries: [], leaves: [] });
  return sealed;
}

/** Makes the receipts of the first turns of a hosted loop, each in a session of its own. */
export async function sealHostedTurns(count: number): Promise<readonly (readonly SealedReceipt[])[]> {
  const sessions: (readonly SealedReceipt[])[] = [];
  for (let turn = 1; turn <= count; turn++) {
    const last = sessions.at(-1)?.at(-1);
    const before = last === undefined ? {} : { previous: `sha256:${envelopeHash(last.envelope)}` };
    const hosted = { head: 'a'.repeat(64), loop: 'l', turn, ...before };
    const change = (predicate: ReceiptPredicate): ReceiptPredicate => ({ ...predicate, hosted });
    sessions.push(await sealSession(`hosted:l:${turn}`, { turns: 1, isClosed: false, change }));
  }
  return sessions;
}

function closing(seq: number): Omit<ReceiptPredicate, 'session' | 'sequence' | 'previous' | 'at'> {
  const journal = { from: seq, to: seq, count: 0, root: merkleRoot([]) };
  const loop = { id: '', version: '', definition: '' };
  return { turn: '', state: 'closed', final: true, loop, approvals: [], effects: [], journal };
}

/** A checkpoint of a store in which nothing is unsealed and nothing was removed. */
export const NO_GAPS: NonNullable<CheckpointScope['gaps']> = { unsealed: 0, removed: 0 };

/** Options of a bundle. */
export interface BundleOptions {
  /** The receipts of the log that are in the bundle. @default all */
  readonly isIncluded?: (receipt: SealedReceipt) => boolean;
  readonly hasCheckpoint?: boolean;
  /** @default the whole store, as of its whole log */
  readonly scope?: CheckpointScope | 'none' | undefined;
  /** How many entries of each receipt are disclosed. */
  readonly disclosed?: number;
  readonly signer?: NoteSigner;
}

/** Makes a bundle of sessions, which are sorted by id. */
export async function bundleOf(
  sessions: readonly (readonly SealedReceipt[])[],
  {
    isIncluded = () => true,
    hasCheckpoint = true,
    scope,
    disclosed = 0,
    signer = checkpointSigner,
  }: BundleOptions = {},
): Promise<ReceiptBundle> {
  const all = sessions.flat();
  const leaves = all.map(({ envelope }) => logLeafOf(envelopeHash(envelope)));
  const proofs = inclusionProofs(leaves, [...leaves.keys()]);
  const kept = [...all.entries()].filter(([, receipt]) => isIncluded(receipt));
  const receipts = kept.map(([index, { envelope }]): BundledReceipt => {
    const hashes = proofs[index] ?? [];
    return { envelope, ...(hasCheckpoint && { proof: { index, size: leaves.length, hashes } }) };
  });
  const listed = sessions.map(listedSession);
  const stated = scope === 'none' ? {} : { scope: scope ?? { isWhole: true, asOf: leaves.length, gaps: NO_GAPS } };
  const state = { origin: 'rondo/test', size: leaves.length, root: merkleRoot(leaves), ...stated, sessions: listed };
  const entries = kept.flatMap(([, receipt], i) => disclosedEntries(receipt, i, disclosed));
  return {
    ...{ format: 'rondo.receipts.v1', receipts },
    ...(hasCheckpoint && { checkpoint: await createCheckpoint(state, [signer]) }),
    ...(entries.length > 0 && { entries }),
  };
}

function listedSession(receipts: readonly SealedReceipt[]): CheckpointSession {
  const last = receipts.at(-1) as SealedReceipt;
  const { session, state } = last.predicate;
  return { id: session, count: receipts.length, head: envelopeHash(last.envelope), isClosed: state === 'closed' };
}

function disclosedEntries(receipt: SealedReceipt, index: number, count: number): DisclosedEntry[] {
  const { entries, leaves, salt } = receipt;
  const chosen = [...entries.keys()].slice(0, count);
  return inclusionProofs(leaves, chosen).map((proof, i) => ({
    receipt: index,
    leaf: chosen[i] ?? 0,
    salt: leafSalt(salt, chosen[i] ?? 0),
    entry: leafText(entries[chosen[i] ?? 0] as Entry),
    proof,
  }));
}
