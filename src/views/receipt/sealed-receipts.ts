/**
 * The receipts in the entries of a session. Each is one entry, with the envelope and its secret salt. A view keeps the
 * end of the chain, so that the next receipt can be made without reading the session.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
import type { View } from '../../journal/view.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptEnvelope } from '../../protocol/receipt.js';
import { RECEIPT_SEALED } from '../turns.js';

/** A receipt as its session holds it. */
export interface SealedReceipt {
  /** The id of its turn; empty for the receipt that closes the session. */
  readonly turn: string;
  readonly sequence: number;
  readonly final: boolean;
  readonly state: string;
  /** The hash of the envelope, in hexadecimal. */
  readonly hash: string;
  /** The sequence number of the last entry of the turn that its receipts cover. */
  readonly to: number;
  /** How many entries the ledger of its grant had, if the turn continues under it. */
  readonly ledgerLength?: number;
  /** The secret salt of its leaves, in base64; absent for the receipt that closes the session. */
  readonly salt?: string;
  readonly envelope: ReceiptEnvelope;
}

/** The end of the chain of a session. */
export interface ReceiptHead {
  /** How many receipts the session has. */
  readonly count: number;
  /** The hash of the last one; empty if there is none. */
  readonly hash: string;
  readonly isClosed: boolean;
}

/** Keeps the end of the chain of receipts. */
export const receiptHeadView: View<ReceiptHead> = {
  name: 'receipt-head',
  version: 1,
  initial: { count: 0, hash: '', isClosed: false },
  types: [RECEIPT_SEALED],
  apply: (head, entry) => {
    const receipt = receiptIn(entry);
    return receipt === undefined
      ? head
      : { count: receipt.sequence + 1, hash: receipt.hash, isClosed: receipt.state === 'closed' };
  },
};

const RECEIPT_ID_PREFIX = 'receipt/';

/** Returns the id of the fact that holds a receipt. */
export function receiptFactId(sequence: number): string {
  return `${RECEIPT_ID_PREFIX}${sequence}`;
}

/** Returns the receipt in an entry; undefined for other entries, also for those of this type that a body recorded. */
export function receiptIn({ type, key, value }: Entry): SealedReceipt | undefined {
  if (type !== RECEIPT_SEALED) return undefined;
  // guard: receipt-only-under-its-key
  if (!key.startsWith(`#${RECEIPT_ID_PREFIX}`)) return undefined;
  if (!isObject(value) || !isObject(ownProperty(value, 'envelope'))) return undefined;
  return value as unknown as SealedReceipt;
}

/** Returns the receipts of a session, in order. The entries have their values. */
export function receiptsIn(entries: readonly Entry[]): readonly SealedReceipt[] {
  return entries.flatMap((entry) => receiptIn(entry) ?? []);
}

/** Returns how many entries the ledger of the grant of a turn had when the turn last paused; 0 if that is not known. */
export function ledgerLengthOf(turnId: string, entries: readonly Entry[]): number {
  return receiptsIn(entries).findLast(({ turn }) => turn === turnId)?.ledgerLength ?? 0;
}

/** Returns the first sequence number that no receipt of a turn covers. */
export function uncoveredFrom(turnId: string, entries: readonly Entry[]): number {
  let from = 0;
  for (const entry of entries) {
    const receipt = receiptIn(entry);
    if (receipt?.turn === turnId) from = receipt.to + 1;
  }
  return from;
}

/** Returns a receipt as JSON. */
export function receiptValue(receipt: SealedReceipt): Json {
  return receipt as unknown as Json;
}
