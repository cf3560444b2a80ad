/** The reasons of a verdict: the one table of their codes. Codes are stable; programs may depend on them. */

/**
 * What each code says. Those of the first group make the receipts invalid, those of the second say that something is
 * missing, and those of the third why it is unknown whether something is.
 */
export const receiptReasons = {
  bundle_malformed: 'The file is not canonical JSON and a newline, or not a bundle of receipts.',
  bundle_empty: 'The bundle contains no receipt.',
  checkpoint_malformed: 'The checkpoint is not a signed note in its only form.',
  checkpoint_signature: 'A signature of the checkpoint is invalid.',
  payload_malformed: 'The payload of a receipt is not canonical base64.',
  statement_malformed: 'The statement of a receipt is not canonical JSON, has an unknown member or contradicts itself.',
  signature_invalid: 'A signature of a receipt is malformed or invalid.',
  signature_duplicate: 'Two signatures of a receipt are of the same key.',
  key_unknown: 'A signature is of a key that is not trusted.',
  key_role: 'A key signed what its role does not allow.',
  key_revoked: 'A key is revoked.',
  key_not_yet_valid: 'A key signed before the position in the log from which it is valid.',
  key_expired: 'A key signed after the position in the log up to which it is valid.',
  key_needs_log_proof: 'A key is limited to a range of the log, and the position of its receipt is not proved.',
  proof_missing: 'The bundle has a checkpoint, and a receipt without a proof.',
  proof_without_checkpoint: 'A receipt has a proof, and the bundle no checkpoint.',
  proof_invalid: 'A proof does not lead to the root of the checkpoint.',
  receipts_out_of_order: 'The receipts of the bundle are not sorted by session and sequence, or one occurs twice.',
  chain_broken: 'A receipt does not refer to the one before it, in its session or in its hosted loop.',
  receipt_after_closed: 'A receipt follows the last one of its session.',
  reopened_open_turn: 'A receipt says that a turn was retried which had not ended.',
  receipt_after_final: 'A receipt follows the final one of its turn.',
  journal_overlap: 'Two receipts of a turn cover the same entries.',
  effect_duplicate: 'A receipt lists an effect twice.',
  effect_inconsistent: 'The state of an effect contradicts the entries that it refers to.',
  effect_leaf: 'An effect refers to an entry that the receipt does not cover.',
  arguments_mismatch: 'The executed arguments are not the approved ones.',
  arguments_missing:
    'The receipt of an approved effect does not commit to its arguments, or commits without an approval.',
  denied_effect_executed: 'An effect was started although its approval was denied.',
  entry_not_in_receipt: 'A disclosed entry is not one of those that its receipt covers.',
  entries_out_of_order: 'The disclosed entries are not sorted, or one occurs twice.',
  journal_mismatch: 'The journal of the store differs from what a receipt says about it.',
  journal_unreadable: 'The journal of a session cannot be read.',
  log_mismatch: 'The log of the store has another receipt at a position than the session.',
  log_rewritten: 'The log of the store is not the continuation of the log of an earlier checkpoint.',
  witness_missing:
    'The checkpoint of the log, or a length, that is kept beside the keys was removed, emptied or lowered.',
  definition_missing: 'The definitions with which a turn began are not in the store any more, or not as they were.',
  store_damaged: 'The store has recorded damage that was not accepted; see rondo doctor.',
  session_not_listed: 'The checkpoint does not list a session of the bundle.',
  checkpoint_mismatch: 'A session has other receipts than the checkpoint says.',
  receipts_missing:
    'Receipts are missing: there is a gap, the first one is absent, or the checkpoint or a later turn names more.',
  length_mismatch: 'The bundle does not have the expected number of receipts.',
  head_mismatch: 'The last receipt of the bundle is not the expected one.',
  terminal_missing: 'A session does not end with its terminal receipt, which was required.',
  checkpoint_missing: 'The bundle has no checkpoint, so whole sessions could be missing.',
  session_open: 'A session is not closed, so its last receipts could be missing.',
  turn_unsealed: 'A turn did something that no receipt covers: it runs, waits for a signal, or was interrupted.',
  entries_after_closed: 'A closed session has entries after its terminal receipt, which no receipt covers.',
  session_removed: 'A session with receipts, or with unsealed turns, was removed, and the removal was recorded.',
  log_missing: 'The store has receipts, and no log of them.',
  log_uncovered: 'No checkpoint of a trusted key covers the whole log of the store.',
} as const;

/** A code of `receiptReasons`. */
export type ReceiptReason = keyof typeof receiptReasons;
