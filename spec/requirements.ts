// Every MUST we answer for, by id. Tests cite ids with verifies(); spec/house/requirements.test.ts fails on an
// id that no test cites, and the compiler on a citation of an id that is not here.

export const requirements = {
  'house.imports': 'A folder imports only what the import table allows it.',
  'house.sizes':
    'Files, functions, headers and the kernel stay within their line limits; file names say what they own.',
  'house.exports': 'The exported names of each subpath are a literal list, and nothing is exported by star.',
  'house.requirements': 'Every requirement is cited by a test, and every citation names a requirement.',
  'house.hygiene': 'No postponed work, no switched-off checks, no evaluated code, no inexact versions.',
  'house.assertions': 'Every test can fail and always runs.',
  'house.snippets': 'The code in the documents runs.',
  'kernel.once': "A keyed entry is written to the session's journal once; asking again returns what was written.",
  'kernel.ack': 'Nothing is reported before all that led to it is durable.',
  'kernel.intent':
    'The intent of a non-pure effect is durable before the effect starts; its result is recorded when it ends.',
  'kernel.doubt':
    'An intent without a result is treated by its declared safety: repeated, repeated under the same key, or held for a decision.',
  'kernel.replay': 'A replay that does not match the journal stops the run and names both sides.',
  'kernel.fault': 'A failed append ends the attempt; no body sees it, nothing is written after it.',
  'kernel.cancel':
    'After a cancel no effect starts, in this process or a later one; one in flight is recorded when it ends.',
  'kernel.parallel': 'Keys and results of parallel steps do not depend on their speed.',
  'kernel.race': 'The winner of a race is recorded, a replay takes it, and the others stop.',
  'kernel.scope':
    'A scope does one step at a time and none after its body has ended; a body that breaks this ends the run.',
  'kernel.close': 'Closing waits for effects in flight; nothing is performed or written after it.',
  'kernel.timer': 'A timer never fires early and survives a restart.',
  'kernel.signal': 'A signal is taken once for each delivery id, whenever it comes.',
  'kernel.pause': 'A run that nothing in the process can move ends as a pause that names what it waits for.',
  'kernel.layer': 'Layers stand around every effect; a recorded result does not pass them again.',
  'kernel.value':
    'Only JSON of bounded depth and size is journaled, as a private copy; anything else is refused with its place.',
  'kernel.blob': 'A large value is stored once, by digest, and believed only if it fits the digest.',
  'kernel.view': 'A view folds live and on replay alike.',
  'kernel.snapshot': 'A snapshot is a cache: it can be deleted, and one of another past is ignored.',
  'kernel.invariant': 'A proposed entry that breaks an invariant is refused before it is written.',
  'kernel.version': 'Old entries are brought up to date when read; entries of a newer program are refused.',
  'kernel.fence': 'Only the newest claim of a session can write it.',
  'kernel.depth': 'Calls nest to a bounded depth.',
  'kernel.pressure': 'A slow store holds the run back; memory does not grow with the length of a run.',
  'kernel.options': 'An unknown option is refused: a renamed one must never switch a guard off.',
  'kernel.crash': 'A crash at any append, before or after it became durable, ends in the same entries as no crash.',
  'kernel.kill': 'Killed at any time, a process that is started again loses nothing and does nothing twice.',
  'journal.cases': 'Every store passes the journal cases, and a store that breaks its promise fails them.',
  'sqlite.owner': 'One process owns a store; a second is refused at once with its pid, and a dead owner is replaced.',
  'sqlite.commit': 'Concurrent sessions share a commit, and one that is refused does not harm the others.',
  'sqlite.failure': 'A full, read-only or failing disk acknowledges nothing and loses nothing that was acknowledged.',
  'sqlite.damage': 'No damaged record is read as if it were whole, and none is missing without being named.',
  'sqlite.anchor': 'A cut tail is noticed as far back as the last anchored head, and says which and since when.',
  'sqlite.schema': 'The schema only moves forward; a database of a newer program is refused.',
  'sqlite.retention': 'A removed session leaves nothing that a later one of its name could read.',
  'demo.resume': 'The demo kills a run in the middle, finishes it in a second process, and does nothing twice.',
} as const satisfies Record<string, string>;

export type RequirementId = keyof typeof requirements;
