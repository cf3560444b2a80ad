/**
 * The verification of the receipts of a store against everything else that the store holds: the entries that they cover,
 * the log of all receipts, and the checkpoints that were signed before. A receipt that the log has and its session does
 * not is missing, unless the removal of the session is recorded.
 */
import { decodeBase64 } from '../../base/base64.js';
import type { TrustedKeys } from '../../base/trusted-keys.js';
import type { Entry } from '../../protocol/entry.js';
import type { ReceiptPredicate, ReceiptStatement, ReceiptVerdict } from '../../protocol/receipt.js';
import { bundleBytes } from './bundle.js';
import { verdictScope } from './checkpoint.js';
import { Findings } from './findings.js';
import { SALT_BYTES } from './leaf-hashes.js';
import type { ReceiptReason } from './reasons.js';
import { type LoggedRemoval, removalsOf } from './removed-sessions.js';
import { receiptsIn, type SealedReceipt } from './sealed-receipts.js';
import { entriesAfterClosed, unsealedTurns } from './unsealed-turns.js';
import { type VerifiedReceipt, verifyBundle } from './verify-bundle.js';
import { type LogContents, type SessionReceipts, verifyCheckpoints, verifyLogLeaves } from './verify-log.js';
import { verifyTurnEntries } from './verify-turn-entries.js';

/** A session of the store; without entries if it cannot be read. */
export interface StoredSession {
  readonly id: string;
  readonly entries: readonly Entry[] | undefined;
}

/** What the sessions of a store are verified with. */
export interface StoreVerification {
  readonly trust: ReceiptVerdict['trust'];
  /** True if they are all sessions of the store. */
  readonly isWhole: boolean;
  /** The newest checkpoint, as it is kept outside of the store; undefined if there is none. */
  readonly witness?: string | undefined;
  /** The recorded damage of the store that has not been accepted. */
  readonly damage?: readonly string[] | undefined;
  /** The turns of which the definitions are not in the store as they were. */
  readonly turnsWithoutDefinitions?: readonly string[] | undefined;
}

/** Verifies sessions of a store. */
export function verifyStore(
  sessions: readonly StoredSession[],
  log: LogContents,
  keys: TrustedKeys,
  options: StoreVerification,
): ReceiptVerdict {
  const { trust, isWhole, witness, damage = [], turnsWithoutDefinitions = [] } = options;
  const findings = new Findings(true);
  const sorted = [...sessions].sort((a, b) => (a.id < b.id ? -1 : 1));
  const receipts = sorted.map(({ id, entries }) => ({ id, receipts: receiptsIn(entries ?? []) }));
  for (const { id, entries } of sorted)
    if (entries === undefined) findings.add('journal', 'journal_unreadable', `session "${id}"`);
  // guard: damaged-store-is-not-valid
  for (const note of damage) findings.add('store', 'store_damaged', note);
  // guard: missing-definition-noticed
  for (const turn of turnsWithoutDefinitions) findings.add('journal', 'definition_missing', `turn ${turn}`);
  const { indexes, asOf } = verifyLogLeaves(receipts, log, isWhole, findings);
  const isCovered = verifyCheckpoints(log, witness, keys, findings) >= asOf;
  for (const { id, entries = [] } of sorted) verifyCover(id, entries, findings);
  verifyRemovals(removalsOf(log.removed, isWhole ? undefined : sorted.map(({ id }) => id)), findings);
  if (isWhole) verifyWholeness(log, isCovered, findings);
  const bundled = receipts.flatMap((session) => session.receipts.map(({ envelope }) => ({ envelope })));
  const bytes = bundleBytes({ format: 'rondo.receipts.v1', receipts: bundled });
  const { receipts: verified, verdict } = verifyBundle(bytes, keys, {
    trust,
    findings,
    logIndexOf: (hash) => indexes.get(hash),
  });
  const scope = verdictScope(sorted, isWhole, asOf);
  const named = { ...verdict, scope, subject: { ...verdict.subject, log: log.leaves.length } };
  if (!verdict.valid) return named;
  verifyJournal(sorted, receipts, verified, findings);
  const { isValid: valid, completeness: complete, reasons } = findings;
  return { ...named, valid, complete, checks: findings.checks(), reasons };
}

/** What is wrong with the receipts of one session; empty if nothing is. */
export interface SessionVerification {
  readonly reasons: readonly ReceiptReason[];
  /** The verified statements, in order; empty unless nothing is wrong. */
  readonly statements: readonly ReceiptStatement[];
}

/**
 * Verifies the receipts of one session against its entries, without the log of the store. `logIndexOf` returns the
 * position of a receipt in the log, by the hash of its envelope, for keys that are limited to a part of the log.
 */
export function verifySession(
  id: string,
  entries: readonly Entry[],
  keys: TrustedKeys,
  logIndexOf: (hash: string) => number | undefined = () => undefined,
): SessionVerification {
  const findings = new Findings(true);
  const receipts = receiptsIn(entries);
  const bytes = bundleBytes({
    format: 'rondo.receipts.v1',
    receipts: receipts.map(({ envelope }) => ({ envelope })),
  });
  const { receipts: verified } = verifyBundle(bytes, keys, { trust: 'store', findings, logIndexOf });
  if (findings.isValid) verifyJournal([{ id, entries }], [{ id, receipts }], verified, findings);
  if (findings.isValid && unsealedTurns(entries).length > 0) return { reasons: ['turn_unsealed'], statements: [] };
  return findings.isValid && !findings.reasons.includes('receipts_missing')
    ? { reasons: [], statements: verified.map(({ statement }) => statement) }
    : { reasons: findings.reasons, statements: [] };
}

/** Notices entries that no receipt covers. */
function verifyCover(id: string, entries: readonly Entry[], findings: Findings): void {
  for (const turn of unsealedTurns(entries)) findings.doubt('turn_unsealed', `turn ${turn} did what no receipt covers`);
  const after = entriesAfterClosed(entries);
  // guard: entries-after-closed-noticed
  if (after > 0) findings.doubt('entries_after_closed', `session "${id}" has ${after} entries after its end`);
}

/** Notices what was removed, and that a removed session did what no receipt covers. */
function verifyRemovals(removed: readonly LoggedRemoval[], findings: Findings): void {
  // guard: removed-session-noticed
  for (const { session, by, unsealed = 0 } of removed) {
    findings.doubt('session_removed', `session "${session}" was removed by ${by || 'someone'}`);
    // guard: removed-unsealed-turn-noticed
    if (unsealed > 0)
      findings.doubt('turn_unsealed', `session "${session}", which was removed, had ${unsealed} unsealed turns`);
  }
}

/** Notices why it cannot be known that the sessions of a store are all that it had. */
function verifyWholeness({ storeId, leaves }: LogContents, isCovered: boolean, findings: Findings): void {
  if (storeId === '') findings.doubt('log_missing', 'there is no log of the receipts');
  // guard: uncovered-log-noticed
  else if (!isCovered)
    findings.doubt('log_uncovered', `no checkpoint covers the ${leaves.length} receipts of the log; export or close`);
}

/** Compares each verified receipt with the entries that it covers. */
function verifyJournal(
  sessions: readonly StoredSession[],
  receipts: readonly SessionReceipts[],
  verified: readonly VerifiedReceipt[],
  findings: Findings,
): void {
  let next = 0;
  for (const [index, { id, entries = [] }] of sessions.entries())
    for (const receipt of receipts[index]?.receipts ?? []) {
      const { salt, sequence } = receipt;
      const predicate = verified[next++]?.statement.predicate;
      if (predicate === undefined) continue;
      // guard: receipt-index-compared
      if (!isIndexOf(receipt, predicate))
        findings.add('journal', 'journal_mismatch', `session "${id}", receipt ${sequence}: it is stored as another`);
      if (predicate.turn === '') continue;
      const saltBytes = typeof salt === 'string' ? decodeBase64(salt) : undefined;
      const mismatches =
        // guard: malformed-salt-noticed
        saltBytes?.length === SALT_BYTES ? verifyTurnEntries(predicate, entries, saltBytes) : ['salt_malformed'];
      // guard: journal-compared-with-receipts
      if (mismatches.length > 0)
        findings.add('journal', 'journal_mismatch', `session "${id}", receipt ${sequence}: ${mismatches.join(', ')}`);
    }
}

/** True if the members that are stored beside an envelope, to find the receipt, are those that it signs. */
function isIndexOf({ turn, sequence, final, state, to }: SealedReceipt, predicate: ReceiptPredicate): boolean {
  const { journal } = predicate;
  return (
    turn === predicate.turn &&
    sequence === predicate.sequence &&
    final === predicate.final &&
    state === predicate.state &&
    to === journal.to
  );
}
