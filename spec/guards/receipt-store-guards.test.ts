// Guards of the verification of a store.

import { guardsOf, proveGuards } from './prove.js';
import { receiptStoreChecks, receiptStoreParts } from './receipt-store-checks.js';

const guard = guardsOf(receiptStoreChecks);

proveGuards(receiptStoreParts, [
  guard('receipt.store', 'a changed journal is noticed', 'journal-compared-with-receipts', 'never'),
  guard('receipt.store', 'a receipt that differs from the log is noticed', 'logged-receipt-compared', 'never'),
  guard('receipt.store', 'a receipt that only the log has is missing', 'logged-receipt-expected', 'never'),
  guard('receipt.scope', 'a verdict names the part that it is about', 'scope-of-a-part-named', 'always'),
  guard('receipt.scope', 'what is logged later is not expected', 'logged-receipt-expected', 'always'),
  guard('receipt.store', 'a log that was rewritten is noticed', 'log-compared-with-checkpoints', { value: 'true' }),
  guard('receipt.whole', 'the log of another store is noticed', 'log-origin-compared', { take: 0 }),
  guard('receipt.witness', 'a log that does not continue the witness is noticed', 'log-compared-with-witness', 'never'),
  guard('receipt.witness', 'a witness that was removed is noticed', 'missing-witness-noticed', 'never'),
  guard('receipt.whole', 'definitions that were removed are noticed', 'missing-definition-noticed', 'drop'),
  guard('receipt.whole', 'a damaged store is not valid', 'damaged-store-is-not-valid', 'drop'),
  guard('receipt.whole', 'a receipt that is stored as another is noticed', 'receipt-index-compared', 'never'),
  guard('receipt.store', 'a salt that is no salt is noticed', 'malformed-salt-noticed', 'always'),
  guard('receipt.whole', 'an open session is not complete', 'open-session-is-no-end', 'never'),
  guard('receipt.whole', 'only a whole store is complete', 'unsealed-turn-noticed', 'never'),
  guard('receipt.whole', 'only a whole store is complete', 'entries-after-closed-noticed', 'never'),
  guard('receipt.whole', 'only a whole store is complete', 'removed-session-noticed', 'drop'),
  guard('receipt.whole', 'only a whole store is complete', 'removed-unsealed-turn-noticed', 'never'),
  guard('receipt.removed', 'a session may have the id of a removed one', 'id-of-removed-session-reused', 'never'),
  guard('receipt.removed', 'a session may have the id of a removed one', 'removed-receipt-not-expected', { take: 1 }),
  guard('receipt.removed', 'a session may have the id of a removed one', 'removal-concerns-its-id', { value: '[]' }),
  guard('receipt.whole', 'only a whole store is complete', 'uncovered-log-noticed', 'never'),
  guard('receipt.whole', 'only a whole store is complete', 'doubt-is-not-completeness', 'always'),
]);
