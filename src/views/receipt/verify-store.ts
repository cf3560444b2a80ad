/**
 * The verification of the receipts of a store against everything else that the store holds: the entries that they cover,
 * the log of all receipts, and the checkpoints that were signed before. A receipt that the log has and its session does
 * not is missing, unless the removal of the session is recorded.
 */
import { decodeBase64 } from '../../base/base64.js';
import { isMerkleHash, MerkleFrontier } from '../../base/merkle.js';
import type { TrustedKeys } from '../../base/trusted-keys.js';
import type { Entry } from '../../protocol/entry.js';
import type { ReceiptVerdict } from '../../protocol/receipt.js';
import { bundleBytes } from './bundle.js';
import { verifyCheckpoint } from './checkpoint.js';
import { envelopeHash, logLeafOf } from './envelope.js';
import { Findings } from './findings.js';
import { receiptsIn, type SealedReceipt } from './sealed-receipts.js';
import { type VerifiedReceipt, verifyBundle } from './verify-bundle.js';
import { verifyTurnEntries } from './verify-turn-entries.js';

/** A session of the store; without entries if it cannot be read. */
export interface StoredSession {
  readonly id: string;
  readonly entries: readonly Entry[] | undefined;
}

/** A leaf of the log. */
export interface LogLeaf {
  readonly session: string;
  readonly sequence: number;
  /** The hash of the leaf, in hexadecimal. */
  readonly leaf: string;
}

/** A session with receipts that was removed. */
export interface RemovedSession {
  readonly session: string;
  readonly count: number;
  readonly head: string;
  readonly by: string;
}

/** The whole log of a store. */
export interface LogContents {
  readonly storeId: string;
  readonly leaves: readonly LogLeaf[];
  readonly removed: readonly RemovedSession[];
  /** The signed checkpoints, oldest first. */
  readonly checkpoints: readonly string[];
}

/** Verifies sessions of a store. `isWhole` is true if they are all sessions with receipts. */
export function verifyStore(
  sessions: readonly StoredSession[],
  log: LogContents,
  keys: TrustedKeys,
  options: { readonly trust: ReceiptVerdict['trust']; readonly isWhole: boolean },
): ReceiptVerdict {
  const findings = new Findings(true);
  const sorted = [...sessions].sort((a, b) => (a.id < b.id ? -1 : 1));
  const receipts = sorted.map(({ id, entries }) => ({ id, receipts: receiptsIn(entries ?? []) }));
  for (const { id, entries } of sorted)
    if (entries === undefined) findings.add('journal', 'journal_unreadable', `session "${id}"`);
  const indexes = verifyLog(receipts, log, options.isWhole, findings);
  verifyCheckpoints(log, keys, findings);
  const bundled = receipts.flatMap((session) => session.receipts.map(({ envelope }) => ({ envelope })));
  const bytes = bundleBytes({ format: 'rondo.receipts.v1', receipts: bundled });
  const { receipts: verified, verdict } = verifyBundle(bytes, keys, {
    trust: options.trust,
    findings,
    logIndexOf: (hash) => indexes.get(hash),
  });
  if (!verdict.valid) return verdict;
  return verifyJournal(sorted, receipts, verified, findings, verdict);
}

type SessionReceipts = { readonly id: string; readonly receipts: readonly SealedReceipt[] };

/** Compares receipts with the log. Returns the position of each in the log, by the hash of its envelope. */
function verifyLog(
  sessions: readonly SessionReceipts[],
  { leaves, removed }: LogContents,
  isWhole: boolean,
  findings: Findings,
): ReadonlyMap<string, number> {
  const byPlace = new Map(
    sessions.flatMap(({ id, receipts }) => receipts.map((receipt) => [`${id}#${receipt.sequence}`, receipt] as const)),
  );
  const known = new Set(sessions.map(({ id }) => id));
  const gone = new Set(removed.map(({ session }) => session));
  const indexes = new Map<string, number>();
  for (const [index, { session, sequence, leaf }] of leaves.entries()) {
    const receipt = byPlace.get(`${session}#${sequence}`);
    const name = `session "${session}", receipt ${sequence}`;
    if (receipt === undefined) {
      // guard: logged-receipt-expected
      if (!gone.has(session) && (isWhole || known.has(session))) findings.add('completeness', 'receipts_missing', name);
      continue;
    }
    // guard: logged-receipt-compared
    if (logLeafOf(envelopeHash(receipt.envelope)) !== leaf) findings.add('log', 'log_mismatch', name);
    indexes.set(receipt.hash, index);
  }
  return indexes;
}

/** Stands for a leaf that is none. */
const NO_HASH = '0'.repeat(64);

/** Compares the log with the checkpoints that were signed before: it must begin with what each of them covers. */
function verifyCheckpoints({ leaves, checkpoints }: LogContents, keys: TrustedKeys, findings: Findings): void {
  // A checkpoint of a key that this verifier does not trust says nothing.
  const verified = checkpoints
    .map((note, index) => ({ index, ...verifyCheckpoint(note, keys) }))
    .filter((result) => 'checkpoint' in result)
    .map(({ index, checkpoint: { size, root } }) => ({ index, size, root }))
    .sort((a, b) => a.size - b.size);
  const tree = new MerkleFrontier();
  for (const { index, size, root } of verified) {
    for (const { leaf } of leaves.slice(tree.size, size)) tree.append(isMerkleHash(leaf) ? leaf : NO_HASH);
    // guard: log-compared-with-checkpoints
    if (tree.size !== size || tree.root() !== root)
      findings.add('log', 'log_rewritten', `checkpoint ${index} of ${size} receipts`);
  }
}

/** Compares each verified receipt with the entries that it covers. */
function verifyJournal(
  sessions: readonly StoredSession[],
  receipts: readonly SessionReceipts[],
  verified: readonly VerifiedReceipt[],
  findings: Findings,
  verdict: ReceiptVerdict,
): ReceiptVerdict {
  let next = 0;
  for (const [index, { id, entries = [] }] of sessions.entries())
    for (const { salt, sequence } of receipts[index]?.receipts ?? []) {
      const predicate = verified[next++]?.statement.predicate;
      if (predicate === undefined || predicate.turn === '') continue;
      const mismatches = verifyTurnEntries(predicate, entries, decodeBase64(salt ?? '') ?? Buffer.alloc(0));
      // guard: journal-compared-with-receipts
      if (mismatches.length > 0)
        findings.add('journal', 'journal_mismatch', `session "${id}", receipt ${sequence}: ${mismatches.join(', ')}`);
    }
  const { isValid: valid, reasons } = findings;
  return { ...verdict, valid, complete: valid ? verdict.complete : 'unknown', checks: findings.checks(), reasons };
}
