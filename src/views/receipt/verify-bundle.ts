/**
 * The verification of a bundle. It needs the bytes and the trusted keys, and nothing else: no store, no clock and no
 * network. It returns the payloads that it checked only if the bundle is valid.
 */
import { LoopError } from '../../base/errors.js';
import { isIncluded, NodeCache } from '../../base/merkle.js';
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import type { TrustedKeys } from '../../base/trusted-keys.js';
import type {
  Checkpoint,
  CheckpointScope,
  DisclosedEntry,
  ReceiptBundle,
  ReceiptJournal,
  ReceiptStatement,
  ReceiptVerdict,
} from '../../protocol/receipt.js';
import { BundleReader } from './bundle.js';
import { scopeOf, verifyCheckpoint } from './checkpoint.js';
import { Findings } from './findings.js';
import { leafHash } from './leaf-hashes.js';
import { effectProblem } from './verify-effects.js';
import { type ReadReceipt, verifyEnvelope } from './verify-envelope.js';
import { SessionChains } from './verify-sessions.js';

/** Options of a verification. */
export interface VerifyOptions {
  /** How many receipts the bundle must have. */
  readonly expectedLength?: number | undefined;
  /** The hash of the last envelope of the bundle, in hexadecimal. */
  readonly expectedHead?: string | undefined;
  /** True if every session must end with its terminal receipt. */
  readonly requireTerminal?: boolean | undefined;
  /** Where the keys come from. @default 'file' */
  readonly trust?: ReceiptVerdict['trust'] | undefined;
  /**
   * Returns the position in the log of a receipt without a proof, by the hash of its envelope. Only for the receipts of
   * a store whose log is verified as a whole.
   */
  readonly logIndexOf?: ((hash: string) => number | undefined) | undefined;
  /** Collects what was found before. @default nothing was */
  readonly findings?: Findings | undefined;
}

const OPTION_KEYS = optionKeys<VerifyOptions>({
  expectedLength: true,
  expectedHead: true,
  requireTerminal: true,
  trust: true,
  logIndexOf: true,
  findings: true,
});

/** A verified receipt. */
export interface VerifiedReceipt {
  readonly statement: ReceiptStatement;
  /** The very bytes whose signatures were verified. */
  readonly payload: Uint8Array;
  /** The hash of the envelope, in hexadecimal. */
  readonly hash: string;
  /** The position in the log, if it is proved. */
  readonly logIndex: number | undefined;
}

/** The result of a verification. */
export interface BundleVerification {
  readonly verdict: ReceiptVerdict;
  /** The receipts in the order of the bundle; empty unless the bundle is valid. */
  readonly receipts: readonly VerifiedReceipt[];
  /** The verified checkpoint of a valid bundle. */
  readonly checkpoint: Checkpoint | undefined;
}

/** A bundle has one wrong receipt after another, and no more of them are read. */
const MAX_FINDINGS = 100;

/** Verifies the bytes of a bundle under trusted keys. */
export function verifyBundle(bytes: Uint8Array, keys: TrustedKeys, options: VerifyOptions = {}): BundleVerification {
  const receipts: ReadReceipt[] = [];
  const { verdict, checkpoint } = verifyBundleParts([bytes], keys, options, (receipt) => receipts.push(receipt));
  return verdict.valid ? { verdict, receipts, checkpoint } : { verdict, receipts: [], checkpoint: undefined };
}

/**
 * Verifies a bundle that is read part by part, and gives each receipt that it reads to `onReceipt`. It keeps little of
 * the receipts, and reads no further once the bundle cannot be valid.
 */
export function verifyBundleParts(
  parts: Iterable<Uint8Array>,
  keys: TrustedKeys,
  options: VerifyOptions = {},
  onReceipt: (receipt: ReadReceipt) => void = () => undefined,
): Omit<BundleVerification, 'receipts'> {
  assertKnownKeys(options, OPTION_KEYS, 'A verification has no option');
  const { findings = new Findings() } = options;
  const progress: BundleProgress = { chains: new SessionChains(findings), receiptCount: 0, head: undefined };
  try {
    const checkpoint = readBundle(new BundleReader(parts), keys, { ...options, findings }, progress, onReceipt);
    return { verdict: verdictOf(findings, checkpoint, progress, options), checkpoint };
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    findings.add('form', 'bundle_malformed', thrown.message);
    return { verdict: verdictOf(findings, undefined, progress, options), checkpoint: undefined };
  }
}

/** What is known of the receipts that were read. */
interface BundleProgress {
  readonly chains: SessionChains;
  receiptCount: number;
  /** The hash of the last one. */
  head: string | undefined;
}

/** Reads and verifies a bundle. Returns its checkpoint, if that is valid. Throws VALUE_INVALID if it is malformed. */
function readBundle(
  reader: BundleReader,
  keys: TrustedKeys,
  options: VerifyOptions & { readonly findings: Findings },
  progress: BundleProgress,
  onReceipt: (receipt: ReadReceipt) => void,
): Checkpoint | undefined {
  const { findings, logIndexOf } = options;
  const bundle = reader.head();
  const { entries = [] } = bundle;
  const hasCheckpoint = bundle.checkpoint !== undefined;
  findings.hasCheckpoint ||= hasCheckpoint;
  const checkpoint = checkpointOf(bundle, keys, findings);
  const context = { keys, checkpoint, hasCheckpoint, logNodes: new NodeCache(), findings, logIndexOf };
  const disclosing = new Set(entries.map(({ receipt }) => receipt));
  const journals = new Map<number, ReceiptJournal>();
  const before = findings.count;
  let i = 0;
  for (const bundled of reader.receipts()) {
    const receipt = verifyEnvelope(bundled, `receipt ${i}`, context);
    if (receipt !== undefined) {
      progress.receiptCount += 1;
      progress.head = receipt.hash;
      if (!progress.chains.add(receipt)) return checkpoint;
      const problem = effectProblem(receipt.statement.predicate);
      if (problem !== undefined) findings.add('effects', problem, `receipt ${i}`);
      if (disclosing.has(i)) journals.set(i, receipt.statement.predicate.journal);
      onReceipt(receipt);
    }
    // guard: hopeless-bundle-not-read-on
    if (findings.count - before >= MAX_FINDINGS) return checkpoint;
    i += 1;
  }
  if (i === 0) findings.add('form', 'bundle_empty', 'it has no receipts');
  progress.chains.finish(checkpoint, logIndexOf === undefined);
  verifyGaps(checkpoint?.scope?.gaps, findings);
  verifyEntries(entries, journals, findings);
  checkExpectations(progress, options, findings);
  // guard: bundle-without-checkpoint-is-not-complete
  if (!hasCheckpoint && logIndexOf === undefined) findings.doubt('checkpoint_missing', 'there is no checkpoint');
  return checkpoint;
}

function checkpointOf(bundle: ReceiptBundle, keys: TrustedKeys, findings: Findings): Checkpoint | undefined {
  if (bundle.checkpoint === undefined) return undefined;
  const result = verifyCheckpoint(bundle.checkpoint, keys);
  if ('checkpoint' in result) return result.checkpoint;
  findings.add('checkpoint', result.problem, 'the checkpoint of the bundle');
  return undefined;
}

/** Notices what the store lacked when the bundle was made: a file says no more than the verdict of its store. */
function verifyGaps(gaps: CheckpointScope['gaps'], findings: Findings): void {
  const { unsealed = 0, removed = 0 } = gaps ?? {};
  // guard: unsealed-turns-of-file-noticed
  if (unsealed > 0) findings.doubt('turn_unsealed', `the store had ${unsealed} turns with what no receipt covers`);
  // guard: removed-sessions-of-file-noticed
  if (removed > 0) findings.doubt('session_removed', `${removed} sessions were removed before`);
}

/** Verifies that each disclosed entry is a leaf of its receipt. */
function verifyEntries(
  entries: readonly DisclosedEntry[],
  journals: ReadonlyMap<number, ReceiptJournal>,
  findings: Findings,
): void {
  let last: DisclosedEntry | undefined;
  for (const [i, entry] of entries.entries()) {
    const journal = journals.get(entry.receipt);
    const leaf = leafHash(entry.salt, entry.entry);
    // guard: disclosed-entry-verified
    if (journal === undefined || !isIncluded(leaf, entry.leaf, journal.count, entry.proof, journal.root))
      findings.add('entries', 'entry_not_in_receipt', `entry ${i}`);
    const isSorted =
      last === undefined || last.receipt < entry.receipt || (last.receipt === entry.receipt && last.leaf < entry.leaf);
    if (!isSorted) findings.add('entries', 'entries_out_of_order', `entry ${i}`);
    last = entry;
  }
}

function checkExpectations(
  { receiptCount, head }: BundleProgress,
  { expectedLength, expectedHead, requireTerminal }: VerifyOptions,
  findings: Findings,
): void {
  if (expectedLength !== undefined && receiptCount !== expectedLength)
    findings.add('completeness', 'length_mismatch', `${receiptCount} receipts; ${expectedLength} were expected`);
  if (expectedHead !== undefined && head !== expectedHead)
    findings.add('completeness', 'head_mismatch', `the last receipt is ${head ?? 'missing'}`);
  if (requireTerminal === true && findings.hasDoubt('session_open'))
    findings.add('completeness', 'terminal_missing', 'a session is not closed');
}

function verdictOf(
  findings: Findings,
  checkpoint: Checkpoint | undefined,
  { chains, receiptCount }: BundleProgress,
  { trust = 'file' }: VerifyOptions,
): ReceiptVerdict {
  const { isValid: valid, completeness: complete, reasons } = findings;
  const logged = checkpoint === undefined ? {} : { log: checkpoint.size };
  const subject = { sessions: chains.size, receipts: receiptCount, ...logged };
  const scope = checkpoint === undefined ? {} : { scope: scopeOf(checkpoint) };
  const checks = findings.checks();
  return { valid, complete, ...scope, kind: 'rondo', trust, subject, checks, reasons };
}
