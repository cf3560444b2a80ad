// The requirements of receipts; see requirements.ts.

/** The text of each requirement of receipts, by id. */
export const receiptRequirements = {
  'receipt.tampering': 'Every change of a bundle, of one bit, one member, one type or white space, is refused.',
  'receipt.bounded':
    'A bundle is verified receipt by receipt, in little memory, and no further than to what makes it invalid.',
  'receipt.strict-forms':
    'A document that two readers could understand differently is refused before it is signed and before it is verified.',
  'receipt.keys':
    'Only a key that the verifier trusts counts, for what and as long as it is trusted; keys of small order and keys in another than their canonical form are refused.',
  'receipt.trust':
    'No algorithm, key, type or signature that a receipt brings along is accepted, and the verifier returns the very bytes that it checked.',
  'receipt.log': 'Proofs of the log hold exactly if they are right, and two views of one log are reported.',
  'receipt.time': 'Order and validity never depend on a time.',
  'receipt.second-verifier': 'A verifier that shares no code with this one reaches the same verdicts.',
  'receipt.journal': 'A receipt that names another definition, result, effect or argument than the journal is refused.',
  'receipt.fold': 'The receipts of a turn list each of its effects and answered approvals, however often it pauses.',
  'receipt.complete':
    'A bundle is complete only if nothing can be missing; where that is not known, the verdict says so.',
  'receipt.commitments': 'Approved and executed arguments have equal commitments exactly if they are equal.',
  'receipt.disclosure': 'One entry can be disclosed and proved without revealing anything about the others.',
  'receipt.key-files':
    'A private key is created once, readable only by its owner, and refused if others can read it; the public list follows.',
  'receipt.key-origin':
    'Keys that were not created in their directory by this user are reported until the user accepts them.',
  'receipt.runx': 'A receipt of runx is verified by its own rules, and ours can be exported in that form.',
} as const satisfies Record<string, string>;
