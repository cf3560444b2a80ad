/**
 * The verification of a bundle. It needs the bytes and the trusted keys, and nothing else: no store, no clock and no
 * network. It returns the payloads that it checked only if the bundle is valid.
 */
import { isIncluded, NodeCache } from '../../base/merkle.js';
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import type { TrustedKeys } from '../../base/trusted-keys.js';
import type {
  Checkpoint,
  DisclosedEntry,
  ReceiptBundle,
  ReceiptStatement,
  ReceiptVerdict,
} from '../../protocol/receipt.js';
import { parseBundle } from './bundle.js';
import { scopeOf, verifyCheckpoint } from './checkpoint.js';
import { Findings } from './findings.js';
import { leafHash } from './leaf-hashes.js';
import { effectProblem } from './verify-effects.js';
import { type ReadReceipt, verifyEnvelope } from './verify-envelope.js';
import { verifySessions } from './verify-sessions.js';

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

/** Verifies the bytes of a bundle under trusted keys. */
export function verifyBundle(bytes: Uint8Array, keys: TrustedKeys, options: VerifyOptions = {}): BundleVerification {
  assertKnownKeys(options, OPTION_KEYS, 'A verification has no option');
  const { findings = new Findings(), logIndexOf } = options;
  const parsed = parseBundle(bytes);
  if ('reason' in parsed) {
    findings.add('form', parsed.reason, parsed.note);
    return conclude(findings, [], undefined, 0, options);
  }
  const { bundle } = parsed;
  findings.hasCheckpoint ||= bundle.checkpoint !== undefined;
  const checkpoint = checkpointOf(bundle, keys, findings);
  const hasCheckpoint = bundle.checkpoint !== undefined;
  const context = { keys, checkpoint, hasCheckpoint, logNodes: new NodeCache(), findings, logIndexOf };
  const read = bundle.receipts.map((receipt, i) => verifyEnvelope(receipt, `receipt ${i}`, context));
  const receipts = read.filter((each) => each !== undefined);
  if (bundle.receipts.length === 0) findings.add('form', 'bundle_empty', 'it has no receipts');
  const sessionCount = verifySessions(receipts, checkpoint, logIndexOf === undefined, findings);
  for (const [i, { statement }] of receipts.entries()) {
    const problem = effectProblem(statement.predicate);
    if (problem !== undefined) findings.add('effects', problem, `receipt ${i}`);
  }
  verifyEntries(bundle.entries ?? [], read, findings);
  checkExpectations(receipts, options, findings);
  // guard: bundle-without-checkpoint-is-not-complete
  if (!context.hasCheckpoint && logIndexOf === undefined)
    findings.doubt('checkpoint_missing', 'there is no checkpoint');
  return conclude(findings, receipts, checkpoint, sessionCount, options);
}

function checkpointOf(bundle: ReceiptBundle, keys: TrustedKeys, findings: Findings): Checkpoint | undefined {
  if (bundle.checkpoint === undefined) return undefined;
  const result = verifyCheckpoint(bundle.checkpoint, keys);
  if ('checkpoint' in result) return result.checkpoint;
  findings.add('checkpoint', result.problem, 'the checkpoint of the bundle');
  return undefined;
}

/** Verifies that each disclosed entry is a leaf of its receipt. */
function verifyEntries(
  entries: readonly DisclosedEntry[],
  receipts: readonly (ReadReceipt | undefined)[],
  findings: Findings,
): void {
  let last: DisclosedEntry | undefined;
  for (const [i, entry] of entries.entries()) {
    const journal = receipts[entry.receipt]?.statement.predicate.journal;
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
  receipts: readonly ReadReceipt[],
  { expectedLength, expectedHead, requireTerminal }: VerifyOptions,
  findings: Findings,
): void {
  if (expectedLength !== undefined && receipts.length !== expectedLength)
    findings.add('completeness', 'length_mismatch', `${receipts.length} receipts; ${expectedLength} were expected`);
  if (expectedHead !== undefined && receipts.at(-1)?.hash !== expectedHead)
    findings.add('completeness', 'head_mismatch', `the last receipt is ${receipts.at(-1)?.hash ?? 'missing'}`);
  if (requireTerminal === true && findings.hasDoubt('session_open'))
    findings.add('completeness', 'terminal_missing', 'a session is not closed');
}

function conclude(
  findings: Findings,
  receipts: readonly ReadReceipt[],
  checkpoint: Checkpoint | undefined,
  sessionCount: number,
  { trust = 'file' }: VerifyOptions,
): BundleVerification {
  const { isValid: valid, completeness: complete, reasons } = findings;
  const logged = checkpoint === undefined ? {} : { log: checkpoint.size };
  const subject = { sessions: sessionCount, receipts: receipts.length, ...logged };
  const verdict: ReceiptVerdict = {
    ...{
      valid,
      complete,
      ...(checkpoint !== undefined && { scope: scopeOf(checkpoint) }),
      kind: 'rondo',
      trust,
      subject,
    },
    ...{ checks: findings.checks(), reasons },
  };
  return valid ? { verdict, receipts, checkpoint } : { verdict, receipts: [], checkpoint: undefined };
}
