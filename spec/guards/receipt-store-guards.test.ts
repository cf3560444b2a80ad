// Guards of the verification of a store.

import { guardsOf, proveGuards } from './prove.js';
import { receiptStoreChecks, receiptStoreParts } from './receipt-store-checks.js';

const guard = guardsOf(receiptStoreChecks);

proveGuards(receiptStoreParts, [
  guard('receipt.store', 'a changed journal is noticed', 'journal-compared-with-receipts', 'never'),
  guard('receipt.store', 'a receipt that differs from the log is noticed', 'logged-receipt-compared', 'never'),
  guard('receipt.store', 'a receipt that only the log has is missing', 'logged-receipt-expected', 'never'),
  guard('receipt.store', 'a log that was rewritten is noticed', 'log-compared-with-checkpoints', 'never'),
]);
