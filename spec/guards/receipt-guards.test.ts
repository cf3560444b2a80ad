// Guards of receipts: their strict forms, keys, chains and proofs.

import { guardsOf, proveGuards } from './prove.js';
import { receiptChecks, receiptParts } from './receipt-checks.js';

const guard = guardsOf(receiptChecks);

proveGuards(receiptParts, [
  guard('receipt.strict-forms', 'base64 with unused bits or white space is refused', 'base64-is-canonical', 'always'),
  guard('receipt.strict-forms', 'an unknown member of a document is refused', 'unknown-member-refused', 'drop'),
  guard('receipt.strict-forms', 'a member that occurs twice is refused', 'duplicate-member-refused', 'never'),
  guard('receipt.strict-forms', 'a member __proto__ is refused', 'proto-member-refused', 'never'),
  guard('receipt.strict-forms', 'a text with half of a surrogate pair is refused', 'lone-surrogate-refused', 'never'),
  guard('receipt.strict-forms', 'a number that does not survive a double is refused', 'number-round-trips', 'never'),
  guard('receipt.strict-forms', 'a text with half of a surrogate pair is not signed', 'signed-text-is-well-formed', {
    take: 0,
  }),
  guard('receipt.strict-forms', 'a key __proto__ is not signed', 'signed-keys-are-safe', 'never'),
  guard('receipt.keys', 'a key that is not canonical is refused', 'non-canonical-key-refused', 'never'),
  guard('receipt.keys', 'a key of small order is refused', 'small-order-key-refused', 'never'),
  guard('receipt.log', 'a proof that is longer than its tree is refused', 'proof-not-longer-than-tree', 'never'),
  guard('receipt.trust', 'a key for checkpoints signs no receipt', 'key-role-checked', 'never'),
  guard('receipt.trust', 'a revoked key signs nothing', 'revoked-key-refused', 'never'),
  guard(
    'receipt.trust',
    'a key that is limited to a part of the log needs a proof of the position',
    'limited-key-needs-proof',
    'never',
  ),
  guard('receipt.trust', 'a key signs nothing before its start', 'key-not-used-early', 'never'),
  guard('receipt.trust', 'a key signs nothing after its end', 'expired-key-refused', 'never'),
  guard('receipt.strict-forms', 'a bundle in another form is refused', 'bundle-is-canonical', 'never'),
  guard('receipt.tampering', 'an envelope without signatures is refused', 'unsigned-envelope-refused', { take: 0 }),
  guard('receipt.tampering', 'a signature of another key is refused', 'receipt-signature-verified', 'never'),
  guard('receipt.log', 'a receipt that is not in the log is refused', 'log-proof-verified', 'always'),
  guard(
    'receipt.log',
    'a checkpoint with a signature of another key is refused',
    'checkpoint-signature-verified',
    'never',
  ),
  guard('receipt.log', 'a session that is listed twice is refused', 'session-listed-once', 'never'),
  guard('receipt.log', 'a log that does not continue an earlier one is reported', 'split-view-reported', 'always'),
  guard('receipt.complete', 'receipts in another order are refused', 'receipts-in-order', 'never'),
  guard('receipt.complete', 'a gap is noticed', 'gap-noticed', 'never'),
  guard('receipt.complete', 'a receipt that does not continue the chain is refused', 'chain-verified', 'never'),
  guard('receipt.complete', 'nothing follows the terminal receipt', 'nothing-after-closed', 'never'),
  guard('receipt.complete', 'nothing follows the final receipt of a turn', 'nothing-after-final', 'never'),
  guard(
    'receipt.complete',
    'a session that the checkpoint does not list is refused',
    'unlisted-session-refused',
    'drop',
  ),
  guard('receipt.complete', 'a cut tail is noticed with the checkpoint', 'listed-receipts-expected', 'never'),
  guard('receipt.journal', 'an effect outside of the entries is refused', 'effect-leaf-in-range', 'never'),
  guard('receipt.journal', 'a denied effect that was executed is refused', 'denied-effect-not-executed', 'never'),
  guard(
    'receipt.journal',
    'an effect with other arguments than approved is refused',
    'executed-arguments-are-approved',
    'always',
  ),
  guard(
    'receipt.disclosure',
    'a disclosed entry that is not in its receipt is refused',
    'disclosed-entry-verified',
    'never',
  ),
  guard('receipt.journal', 'a receipt about other entries is noticed', 'receipt-root-compared', 'never'),
  guard('receipt.journal', 'a receipt about another loop is noticed', 'receipt-loop-compared', 'never'),
  guard(
    'receipt.journal',
    'a receipt without an effect of the journal is noticed',
    'receipt-effects-compared',
    'never',
  ),
  guard('receipt.runx', 'a signer that is configured in part is refused', 'partial-signer-refused', 'never'),
  guard('receipt.key-files', 'a key file that others can read is refused', 'readable-key-refused', 'never'),
]);
