// Guards of how hosted loops are driven.

import { hostedChecks } from './hosted-checks.js';
import { hostedParts } from './hosted-library.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(hostedChecks);
const CONTROL = 'hosted.control';
const SCHEDULE = 'hosted.schedule';
const CONTEXT = 'hosted.context';

proveGuards(hostedParts, [
  guard(CONTROL, 'a hosted loop is started once', 'hosted-loop-started-once', 'never'),
  guard(CONTROL, 'a hosted loop has one content', 'hosted-loop-has-one-content', 'never'),
  guard(CONTROL, 'a paused loop decides nothing about its next turn', 'paused-loop-requests-nothing', 'never'),
  guard(CONTROL, 'a paused loop is not due', 'paused-loop-is-not-due', 'always'),
  guard('hosted.durable', 'a turn is not requested if the loop was paused meanwhile', 'turn-requested-once', 'never'),
  guard('hosted.durable', 'the end of a turn is recorded once', 'end-recorded-once', 'always'),
  guard(
    'hosted.durable',
    'a loop whose turn goes on is due until the turn has ended',
    'continued-turn-makes-the-loop-due',
    'never',
  ),
  guard(CONTROL, 'only the open turn of a loop can be continued', 'only-the-open-turn-continues', 'always'),
  guard(
    'hosted.projection',
    'an input that code makes is not guessed without the code',
    'input-in-code-needs-the-code',
    'never',
  ),
  guard('hosted.stops', 'a retry waits for its delay', 'retry-waits-for-its-delay', 'never'),
  guard(SCHEDULE, 'no turn is early', 'no-turn-early', 'always'),
  guard(SCHEDULE, 'due times before a planned one are dealt with', 'planned-turn-deals-with-earlier-times', 'drop'),
  guard('hosted.durable', 'a stream that was cut off is refused', 'hosted-stream-length-kept', 'drop'),
  guard('hosted.durable', 'a stream that was cut off is refused', 'shortened-hosted-stream-refused', 'always'),
  guard('hosted.grant', 'a turn may only get less than its loop', 'turn-grant-narrows', {
    rewrite: [/deriveGrant\(narrowed, (parseGrant\(complete, \{ isOperators: true \}\))\)/, '$1'],
  }),
  guard('hosted.grant', 'each turn has limits of its own', 'turn-has-its-own-limits', 'drop'),
  guard(CONTEXT, 'a session of a hosted loop is closed to others', 'hosted-session-is-closed-to-others', 'always'),
  guard('hosted.stops', 'a turn of a hosted loop is not forked', 'hosted-turn-not-forked', 'never'),
  guard(CONTEXT, 'a turn without history sees none', 'no-history-unless-declared', 'never'),
  guard(CONTEXT, 'what a turn sees of earlier ones is recorded', 'seen-history-recorded', 'never'),
  guard(CONTEXT, 'what a body records is no opening', 'opening-only-under-its-key', {
    rewrite: [/ && entry\.key === key/, ''],
  }),
]);
