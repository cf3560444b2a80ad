// Guards of receipts.

import { guardsOf, proveGuards } from './prove.js';
import { receiptChecks, receiptParts } from './receipt-checks.js';

const guard = guardsOf(receiptChecks);

proveGuards(receiptParts, [
  guard('receipt.strict-forms', 'base64 has one form', 'base64-is-canonical', { value: 'bytes' }),
  guard('receipt.keys', 'a key of small order is not trusted', 'small-order-key-refused', 'never'),
  guard(
    'receipt.keys',
    'a key in another than its canonical form is not trusted',
    'non-canonical-key-refused',
    'never',
  ),
  guard('receipt.log', 'a proof is not longer than its tree is high', 'proof-not-longer-than-tree', 'never'),
  guard('receipt.strict-forms', 'a text with half a surrogate pair is not signed', 'signed-text-is-well-formed', {
    take: 0,
  }),
  guard('receipt.strict-forms', 'a member __proto__ is not signed', 'signed-keys-are-safe', 'never'),
  guard('receipt.strict-forms', 'a number that a double does not hold is refused', 'number-round-trips', 'never'),
  guard('receipt.strict-forms', 'half of a surrogate pair is refused', 'lone-surrogate-refused', 'never'),
  guard('receipt.strict-forms', 'a member that occurs twice is refused', 'duplicate-member-refused', 'never'),
  guard('receipt.strict-forms', 'a member __proto__ is refused', 'proto-member-refused', 'never'),
  guard('receipt.trust', 'a key of another role does not count', 'key-role-checked', 'never'),
  guard('receipt.trust', 'a revoked key does not count', 'revoked-key-refused', 'never'),
  guard('receipt.trust', 'a key does not count before its range', 'key-not-used-early', 'never'),
  guard('receipt.trust', 'a key does not count after its range', 'expired-key-refused', 'never'),
  guard('receipt.trust', 'a key with a range counts only at a proved position', 'limited-key-needs-proof', 'never'),
  guard('receipt.key-files', 'a private key that others can read is refused', 'readable-key-refused', 'never'),
  guard('receipt.key-files', 'a signer that is described in part is refused', 'partial-signer-refused', 'never'),
  guard('receipt.tampering', 'an unknown member is refused', 'unknown-member-refused', 'never'),
  guard('receipt.tampering', 'a missing member is refused', 'missing-member-refused', 'never'),
  guard('receipt.tampering', 'a canonical document has no white space', 'canonical-document-has-no-space', { take: 0 }),
  guard('receipt.tampering', 'a canonical document has its members in order', 'canonical-order', 'never'),
  guard('receipt.tampering', 'a canonical document has canonical numbers', 'canonical-number', 'never'),
  guard('receipt.tampering', 'a canonical document has canonical texts', 'canonical-text', 'never'),
  guard('receipt.tampering', 'an empty list of entries is refused', 'empty-list-refused', {
    value: 'optional(entriesShape)',
  }),
  guard('receipt.bounded', 'a bundle of wrong receipts is not read to its end', 'hopeless-bundle-not-read-on', 'never'),
  guard('receipt.trust', 'an envelope without a signature is refused', 'unsigned-envelope-refused', { value: 'found' }),
  guard('receipt.log', 'the signature of a checkpoint is verified', 'checkpoint-signature-verified', 'never'),
  guard('receipt.trust', 'the signature of a receipt is verified', 'receipt-signature-verified', 'never'),
  guard('receipt.log', 'the position of a receipt in the log is proved', 'log-proof-verified', 'always'),
  guard('receipt.log', 'a checkpoint lists a session once', 'session-listed-once', 'never'),
  guard('receipt.log', 'two views of a log are reported', 'split-view-reported', { value: "'consistent'" }),
  guard('receipt.disclosure', 'a disclosed entry is one of its receipt', 'disclosed-entry-verified', 'never'),
  guard(
    'receipt.complete',
    'a session that the checkpoint does not list is refused',
    'unlisted-session-refused',
    'never',
  ),
  guard('receipt.complete', 'a cut tail is noticed', 'listed-receipts-expected', 'never'),
  guard('receipt.complete', 'receipts are in order', 'receipts-in-order', 'never'),
  guard('receipt.complete', 'a gap is noticed', 'gap-noticed', 'never'),
  guard('receipt.complete', 'receipts are chained', 'chain-verified', 'drop'),
  guard('receipt.complete', 'turns of a hosted loop are chained', 'hosted-chain-verified', 'never'),
  guard('receipt.complete', 'a missing turn of a hosted loop is noticed', 'hosted-gap-noticed', 'never'),
  guard('receipt.complete', 'a turn of a hosted loop has one session', 'hosted-turn-has-one-session', 'never'),
  guard('receipt.complete', 'nothing follows the end of a session', 'nothing-after-closed', 'never'),
  guard('receipt.complete', 'nothing follows the end of a turn', 'nothing-after-final', 'never'),
  guard('receipt.journal', 'an effect refers to entries of its receipt', 'effect-leaf-in-range', 'never'),
  guard('receipt.journal', 'a denied effect was not started', 'denied-effect-not-executed', 'never'),
  guard('receipt.journal', 'the executed arguments are the approved ones', 'executed-arguments-are-approved', {
    value: 'undefined',
  }),
  guard('receipt.journal', 'the root of a receipt is that of the entries', 'receipt-root-compared', 'never'),
  guard('receipt.journal', 'the definition of a receipt is that of the entries', 'receipt-loop-compared', 'never'),
  guard('receipt.journal', 'the effects of a receipt are those of the entries', 'receipt-effects-compared', 'never'),
  guard('receipt.runx', 'a signature of local development needs its option', 'development-signature-needs-option', {
    rewrite: [/isLocalAllowed && /, ''],
  }),
  guard('receipt.runx', 'only a hosted or ci issuer signs receipts of runx', 'runx-issuer-checked', 'never'),
  guard('receipt.runx', 'the signature of a receipt of runx is verified', 'runx-signature-verified', {
    value: 'undefined',
  }),
]);
