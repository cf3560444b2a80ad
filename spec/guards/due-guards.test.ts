// Guards of the index of due turns.

import { dueChecks } from './due-checks.js';
import { kernelParts } from './library.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(dueChecks);

proveGuards(kernelParts, [
  guard('kernel.due', 'a turn that a crash interrupts is due from its first append on', 'started-turn-is-due', 'drop'),
  guard('kernel.due', 'a paused turn is due at its timer', 'paused-turn-has-due-time', 'drop'),
  guard('kernel.due', 'a root that has ended leaves the index with its receipt', 'ended-turn-due-until-sealed', 'drop'),
  guard('kernel.due', 'a root that has just ended is sealed although its session closes', 'ended-run-not-interrupted', {
    value: 'true',
  }),
  guard('kernel.due', 'a signal makes a waiting turn due', 'signal-makes-turns-due', 'drop'),
  guard('journal.due', 'an entry is not committed without its due turns', 'due-turns-share-the-commit', {
    value: 'true',
  }),
  guard('journal.due', 'a writer whose claim was removed changes no due turn', 'due-change-needs-a-live-claim', 'drop'),
  guard('journal.due', 'an index that was lost is reported as incomplete', 'missing-index-reported', { value: 'true' }),
  guard('journal.due', 'the store in memory passes the journal cases', 'stale-fence-refused', 'drop'),
  guard('journal.due', 'the store in memory passes the journal cases', 'due-turns-written-with-entries', 'drop'),
]);
