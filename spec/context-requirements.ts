// The requirements of context and of forks; see requirements.ts.

/** The text of each requirement of context and of forks, by id. */
export const contextRequirements = {
  'context.references':
    'A reference to context is a path below its directory, a skill or a receipt; everything else, and every repetition, is refused when the definition is registered.',
  'context.files':
    'A context file is a regular UTF-8 file inside its directory, checked by what was opened, of at most 64 KiB, and 256 KiB together.',
  'context.message':
    'A model gets context as user messages before the prompt, never as system text, delimited by what the content cannot forge.',
  'context.record':
    'The name, the digest and the size of every text of context are recorded with the call that uses it.',
  'context.changed':
    'A turn whose context files have changed does not continue and performs nothing; restoring them lets it continue.',
  'context.receipts':
    'A summary of the receipts of a turn is a bounded pure function of them, and is compared like a file when a turn continues.',
  'fork.copy':
    'A fork is a new session with the entries of a turn up to an entry, and continues from there under keys of its own.',
  'fork.effects': 'A fork repeats no effect that is recorded before its entry, and none whose end is not recorded.',
  'fork.approvals':
    'An answer to an approval counts in its own session only: no fork, and no retry of a fork, uses an answer of the original.',
  'fork.grant':
    'A fork has the grant of its turn unchanged and spends from the same budget; receipts and refusals stay in the original.',
  'fork.reads': 'Forking, replaying and comparing turns read journals only: they perform no effect and use no network.',
} as const satisfies Record<string, string>;
