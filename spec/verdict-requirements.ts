// The requirements of verdicts about stores; see requirements.ts.

/** The text of each requirement of verdicts, by id. */
export const verdictRequirements = {
  'receipt.whole':
    'A store is complete only if every session is closed, every turn is sealed, nothing was removed and a checkpoint covers the log; otherwise the verdict says why that is unknown.',
  'receipt.removed':
    'The removal of a session that had receipts or unsealed turns is part of every later verdict, also of an exported file, and its id can be used again.',
  'receipt.witness':
    'A log that was removed, shortened or made again after a checkpoint is reported, and nothing is signed about it.',
  'receipt.rotation':
    'A replaced key counts only while running processes may still sign with it, and an interrupted rotation can be ended.',
  'receipt.facts': 'What a body records never passes for a fact about its turn, its session or its receipts.',
  'receipt.scope':
    'A verdict about a part of a store names the part and the length of the log as of which it is complete; the checkpoint of a file signs both.',
  'receipt.subject': 'A verdict names what it is about, and a reference that could mean two things is refused.',
  'store.key':
    'Who can change the database of a store and does not have its key cannot change or add anything in it unnoticed.',
  'grant.ledger-kept': 'A ledger that was removed or cut off is refused, so that nothing is spent twice.',
} as const satisfies Record<string, string>;
