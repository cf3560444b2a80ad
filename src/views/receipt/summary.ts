/**
 * A summary of the receipts of a turn, for `receipt:TURN` in the context of a prompt or an agent. It is a pure function
 * of the receipts, so that a changed summary means changed receipts, and of bounded size. It does not verify signatures.
 */
import { contextError } from '../../base/context-error.js';
import { LoopError } from '../../base/errors.js';
import { escapeForDisplay } from '../../base/escape-text.js';
import { canonicalJson } from '../../json/canonical.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptEffect, ReceiptPredicate } from '../../protocol/receipt.js';
import { payloadOf } from './envelope.js';
import { receiptsIn, type SealedReceipt } from './sealed-receipts.js';
import { parseStatement } from './statement.js';

/** The maximum size of a summary, in bytes of UTF-8. */
export const MAX_SUMMARY_BYTES = 4096;

/** Bounds of texts that come from loops and models, in characters. Several receipts fit into a summary. */
const [MAX_REASON_CHARS, MAX_NAME_CHARS] = [200, 100];

/**
 * Returns the summary of the receipts of a turn, one line for each, the newest last; undefined if it has none. `entries`
 * are those of its session, with their values. The oldest receipts are left out if they do not fit. Throws
 * CONTEXT_REFUSED if a receipt cannot be read.
 */
export function summarizeReceipts(turnId: string, entries: readonly Entry[]): string | undefined {
  const receipts = receiptsIn(entries).filter(({ turn }) => turn === turnId);
  if (receipts.length === 0) return undefined;
  const lines = receipts.map((receipt) => summaryLine(turnId, receipt));
  for (let omitted = 0; omitted < lines.length; omitted++) {
    const note = omitted === 0 ? '' : `, the first ${omitted} of them left out`;
    const text = [`Receipts of turn ${turnId}: ${lines.length}${note}.`, ...lines.slice(omitted)].join('\n');
    if (Buffer.byteLength(text) <= MAX_SUMMARY_BYTES) return text;
  }
  throw contextError(`receipt:${turnId}`, 'its last receipt does not fit into a summary');
}

function summaryLine(turnId: string, receipt: SealedReceipt): string {
  const { state, final, reason, code, loop, effects } = predicateOf(turnId, receipt);
  const { id, version } = loop;
  const summary = {
    id: `sha256:${receipt.hash}`,
    state,
    final,
    ...(reason !== undefined && { reason: escapeForDisplay(reason, MAX_REASON_CHARS) }),
    ...(code !== undefined && { code: escapeForDisplay(code, MAX_NAME_CHARS) }),
    loop: escapeForDisplay(version === '' ? id : `${id} ${version}`, MAX_NAME_CHARS),
    effects: countByState(effects),
  };
  return canonicalJson(summary as unknown as Json);
}

function predicateOf(turnId: string, { envelope }: SealedReceipt): ReceiptPredicate {
  const payload = payloadOf(envelope);
  try {
    if (payload !== undefined) return parseStatement(payload).predicate;
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
  }
  throw contextError(`receipt:${turnId}`, 'a receipt of the turn cannot be read');
}

function countByState(effects: readonly ReceiptEffect[]): { readonly [state: string]: number } {
  const counts: { [state: string]: number } = {};
  for (const { state } of effects) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}
