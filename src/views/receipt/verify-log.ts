/**
 * The verification of the log of a store: it has the receipts of the sessions, and it continues the logs of all
 * checkpoints that were signed before, also of the one that is kept outside of the store.
 */
import { isMerkleHash, MerkleFrontier } from '../../base/merkle.js';
import type { TrustedKeys } from '../../base/trusted-keys.js';
import type { Checkpoint } from '../../protocol/receipt.js';
import { readCheckpoint, verifyCheckpoint } from './checkpoint.js';
import { envelopeHash, logLeafOf } from './envelope.js';
import type { Findings } from './findings.js';
import { type LoggedRemoval, RemovedLeaves } from './removed-sessions.js';
import type { SealedReceipt } from './sealed-receipts.js';

/** A leaf of the log. */
export interface LogLeaf {
  readonly session: string;
  readonly sequence: number;
  /** The hash of the leaf, in hexadecimal. */
  readonly leaf: string;
}

/** The whole log of a store. */
export interface LogContents {
  /** Empty if there is no log. */
  readonly storeId: string;
  readonly leaves: readonly LogLeaf[];
  /** The removed sessions, in the order of their removal. */
  readonly removed: readonly LoggedRemoval[];
  /** The signed checkpoints, oldest first. */
  readonly checkpoints: readonly string[];
  /** True if the log had more entries before, as is known from outside of the store. */
  readonly isCutOff: boolean;
  /** True if a checkpoint or a length that was kept outside of the store is not there any more, or not as it was. */
  readonly isWitnessMissing: boolean;
  /**
   * How many of its first receipts the sessions have: those that it had before they were read. A receipt of a turn that
   * ended later may be missing in them.
   */
  readonly expected: number;
}

/** The receipts of a session. */
export interface SessionReceipts {
  readonly id: string;
  readonly receipts: readonly SealedReceipt[];
}

/** Returns the name of a log in its checkpoints. */
export function logOrigin({ storeId }: Pick<LogContents, 'storeId'>): string {
  return `rondo/${storeId}`;
}

/** How receipts fit into the log. */
interface LogPlaces {
  /** The position of each receipt in the log, by the hash of its envelope. */
  readonly indexes: ReadonlyMap<string, number>;
  /** The length of the log as of which the sessions were read: no earlier receipt of theirs can be unknown. */
  readonly asOf: number;
}

/** Compares receipts with the log. */
export function verifyLogLeaves(
  sessions: readonly SessionReceipts[],
  log: LogContents,
  isWhole: boolean,
  findings: Findings,
): LogPlaces {
  const { leaves, expected } = log;
  const byPlace = new Map(
    sessions.flatMap(({ id, receipts }) => receipts.map((receipt) => [`${id}#${receipt.sequence}`, receipt] as const)),
  );
  const known = new Set(sessions.map(({ id }) => id));
  const gone = new RemovedLeaves(log);
  const indexes = new Map<string, number>();
  let asOf = leaves.length;
  for (const [index, { session, sequence, leaf }] of leaves.entries()) {
    const receipt = byPlace.get(`${session}#${sequence}`);
    const name = `session "${session}", receipt ${sequence}`;
    if (receipt === undefined) {
      // guard: removed-receipt-not-expected
      if (gone.has(leaf) || !(isWhole || known.has(session))) continue;
      // guard: logged-receipt-expected
      if (index < expected) findings.add('completeness', 'receipts_missing', name);
      else asOf = Math.min(asOf, index);
      continue;
    }
    const isSame = logLeafOf(envelopeHash(receipt.envelope)) === leaf;
    // guard: id-of-removed-session-reused
    if (!isSame && gone.has(leaf)) continue;
    // guard: logged-receipt-compared
    if (!isSame) findings.add('log', 'log_mismatch', name);
    indexes.set(receipt.hash, index);
  }
  return { indexes, asOf };
}

/**
 * Compares the log with the checkpoints that were signed before. `witness` is the checkpoint that is kept outside of the
 * store, which counts whatever key signed it. Returns the length of the longest log that one of a trusted key covers.
 */
export function verifyCheckpoints(
  log: LogContents,
  witness: string | undefined,
  keys: TrustedKeys,
  findings: Findings,
): number {
  // A checkpoint in the store of a key that this verifier does not trust says nothing.
  const verified = [...log.checkpoints, ...(witness === undefined ? [] : [witness])].flatMap((note, index) => {
    const result = verifyCheckpoint(note, keys);
    return 'checkpoint' in result ? [{ name: `checkpoint ${index}`, checkpoint: result.checkpoint }] : [];
  });
  findings.hasCheckpoint = verified.length > 0;
  for (const { name, checkpoint } of rewrittenSince(log, verified))
    findings.add('log', 'log_rewritten', `${name} of ${checkpoint.size} receipts`);
  // guard: missing-witness-noticed
  if (log.isWitnessMissing)
    findings.add(
      'store',
      'witness_missing',
      'a file beside the keys was removed, emptied or lowered; rondo export makes those of the log again',
    );
  // guard: cut-off-log-is-not-valid
  if (log.isCutOff) findings.add('log', 'log_rewritten', 'the log had more entries, as is kept beside the keys');
  // guard: log-compared-with-witness
  if (witness !== undefined && !continuesWitness(log, witness))
    findings.add('log', 'log_rewritten', 'the checkpoint that is kept beside the keys');
  return verified.reduce((longest, { checkpoint: { size } }) => Math.max(longest, size), -1);
}

/** True if a log continues that of the checkpoint which is kept outside of the store. */
export function continuesWitness(log: LogContents, witness: string): boolean {
  const checkpoint = readCheckpoint(witness);
  return checkpoint !== undefined && rewrittenSince(log, [{ checkpoint }]).length === 0;
}

/** Stands for a leaf that is none. */
const NO_HASH = '0'.repeat(64);

/** Returns those checkpoints which the log does not continue. */
function rewrittenSince<T extends { readonly checkpoint: Checkpoint }>(
  log: LogContents,
  checkpoints: readonly T[],
): readonly T[] {
  const sorted = [...checkpoints].sort((a, b) => a.checkpoint.size - b.checkpoint.size);
  const tree = new MerkleFrontier();
  return sorted.filter(({ checkpoint: { origin, size, root } }) => {
    for (const { leaf } of log.leaves.slice(tree.size, size)) tree.append(isMerkleHash(leaf) ? leaf : NO_HASH);
    // guard: log-compared-with-checkpoints
    const isContinued = tree.size === size && tree.root() === root;
    // guard: log-origin-compared
    return !isContinued || origin !== logOrigin(log);
  });
}
