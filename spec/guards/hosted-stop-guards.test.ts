// Guards of the stops of hosted loops.

import { hostedParts } from './hosted-library.js';
import { hostedStopChecks } from './hosted-stop-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(hostedStopChecks);
const ID = 'hosted.stops';

proveGuards(hostedParts, [
  guard(ID, 'a loop has no more turns than its maximum', 'no-turn-above-the-maximum', 'never'),
  guard(ID, 'no turn starts from the deadline on', 'no-turn-after-the-deadline', 'never'),
  guard(ID, 'a denied approval stops a loop', 'denied-approval-stops', 'always'),
  guard(ID, 'a failed turn stops a loop', 'failed-turn-stops', 'always'),
  guard(ID, 'a terminal output stops a loop', 'terminal-output-stops', 'always'),
  guard(ID, 'a confidence that is not known stops a loop', 'unknown-confidence-stops', 'never'),
  guard(ID, 'a confidence that is reached stops a loop', 'reached-confidence-stops', 'never'),
  guard(ID, 'turns without a new output stop a loop', 'no-progress-stops', 'always'),
  guard(ID, 'a budget that is used up stops a loop', 'used-up-budget-stops', 'never'),
  guard(ID, 'a turn whose grant is refused stops a loop', 'sealed-refusal-stops', 'always'),
  guard(ID, 'an output is compared with the last one, also after a failure', 'output-compared-with-the-last-one', {
    value: "ended.status === 'ok' && ended.output !== ''",
  }),
  guard(ID, 'a retry runs with the input of the turn that failed', 'retry-repeats-its-turn', { take: 1 }),
  guard(ID, 'an approval that is needed stops a loop that says so', 'pending-approval-stops-if-declared', 'never'),
  guard(
    ID,
    'a turn that waits is stopped at the deadline, also while its loop is paused',
    'waiting-turn-stops-at-the-deadline',
    'never',
  ),
  guard(ID, 'a turn that runs at the deadline starts nothing more', 'grant-ends-at-the-deadline', { take: 1 }),
  guard(ID, 'a turn whose grant has expired can be cancelled', 'cancelled-turn-needs-no-grant', { value: 'false' }),
  guard(ID, 'the open turn of a stopped loop is cancelled', 'open-turn-of-stopped-loop-is-cancelled', 'never'),
  guard('hosted.control', 'a stopped loop plans no turn', 'stopped-loop-plans-nothing', 'never'),
  guard('hosted.control', 'a stopped loop does not start again', 'stopped-loop-does-not-start-again', 'never'),
  guard('hosted.control', 'a stop reaches a turn that is about to start', 'stop-noticed-after-the-start', 'never'),
  guard('hosted.projection', 'a turn without its receipt is followed by none', 'predecessor-has-its-receipt', 'never'),
  guard('hosted.projection', 'a turn with a newer receipt is followed by none', 'newer-receipt-is-stale', 'never'),
  guard('hosted.projection', 'a turn with an invalid receipt is followed by none', 'invalid-receipt-stops', 'never'),
  guard('hosted.projection', 'the receipt of another turn is none', 'receipt-is-that-of-the-turn', 'never'),
  guard('hosted.projection', 'a request whose projection moved is not run', 'request-names-the-current-head', 'never'),
  guard(
    'hosted.projection',
    'a turn that waits under the key of another request is not continued',
    'hosted-turn-has-same-origin',
    'always',
  ),
  guard(
    'hosted.projection',
    'a turn that waits under the key of another request is not continued',
    'turn-of-another-request-is-stale',
    'never',
  ),
  guard(
    'hosted.projection',
    'a turn that ended under the key of another request is not taken for its own',
    'ended-turn-of-another-request-is-stale',
    { take: 0 },
  ),
]);
