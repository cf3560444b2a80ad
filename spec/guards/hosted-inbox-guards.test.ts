// Guards of what is sent to hosted loops: signals and handoffs.

import { hostedInboxChecks } from './hosted-inbox-checks.js';
import { hostedParts } from './hosted-library.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(hostedInboxChecks);
const SIGNALS = 'hosted.signals';
const HANDOFF = 'hosted.handoff';

proveGuards(hostedParts, [
  guard(SIGNALS, 'a signal that is not declared is refused', 'undeclared-signal-refused', 'never'),
  guard(
    SIGNALS,
    'a signal is authentic by the declared method only',
    'signal-authentic-by-the-declared-method',
    'never',
  ),
  guard(SIGNALS, 'a payload that is too large is refused', 'large-payload-refused', 'never'),
  guard(SIGNALS, 'a payload that does not fit is refused', 'payload-fits-its-schema', 'always'),
  guard(SIGNALS, 'a delivery is accepted once', 'delivery-accepted-once', { value: 'false' }),
  guard(SIGNALS, 'a known delivery keeps its content', 'known-delivery-keeps-its-content', 'never'),
  guard(SIGNALS, 'a stopped loop accepts nothing', 'stopped-loop-accepts-nothing', 'never'),
  guard(SIGNALS, 'an inbox is bounded', 'inbox-is-bounded', 'never'),
  guard(SIGNALS, 'a signal causes one turn', 'admitted-signal-leaves-the-inbox', 'never'),
  guard(SIGNALS, 'a delivery id is known for its time', 'delivery-remembered-for-its-time', { take: 0 }),
  guard(SIGNALS, 'two signals do not share a secret', 'secret-belongs-to-one-signal', 'always'),
  guard('hosted.projection', 'a signal that is admitted moves the head', 'admitted-signal-moves-the-head', { take: 0 }),
  guard(HANDOFF, 'a handoff of a sender that is not declared is refused', 'handoff-from-declared-sender', 'never'),
  guard(HANDOFF, 'a handoff whose receipt does not verify is refused', 'handoff-has-valid-receipt', 'never'),
  guard(HANDOFF, 'a handoff asks for no more than its sender may', 'handoff-within-its-sender', 'never'),
  guard(HANDOFF, 'a handoff asks for no more than its target may', 'handoff-within-its-target', 'never'),
  guard(SIGNALS, 'a delivery id has no spaces', 'delivery-id-is-plain', 'never'),
  guard(HANDOFF, 'a full inbox delays no stop', 'full-inbox-delays-no-stop', 'never'),
  guard(HANDOFF, 'a handoff is delivered before the next turn', 'handoff-delivered-before-the-next-turn', 'never'),
  guard(HANDOFF, 'a delivered handoff is recorded once', 'handoff-recorded-once', 'always'),
  guard(
    HANDOFF,
    'a handoff that is not delivered is due, also of a stopped loop',
    'undelivered-handoffs-are-due',
    'never',
  ),
  guard(
    HANDOFF,
    'a turn whose end is recorded after the stop of its loop hands nothing off',
    'stopped-loop-hands-nothing-off',
    { take: 0 },
  ),
]);
