// Guards of what keeps a hosted loop from running.

import { hostedParts } from './hosted-library.js';
import { hostedRepairChecks } from './hosted-repair-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(hostedRepairChecks);
const DOCUMENT = 'hosted.document';
const CONTROL = 'hosted.control';

proveGuards(hostedParts, [
  guard(DOCUMENT, 'a loop without its prices does not start', 'hosted-loop-needs-its-prices', { value: '[]' }),
  guard(DOCUMENT, 'a loop whose first turn has no input does not start', 'first-input-has-its-values', { value: '[]' }),
  guard(DOCUMENT, 'a loop whose next makes no input of its loop does not start', 'next-input-fits-the-loop', 'never'),
  guard(
    DOCUMENT,
    'a loop that stops at an output which its loop never has does not start',
    'stopping-output-exists',
    'never',
  ),
  guard(
    'hosted.grant',
    'a loop with the grant id of another one does not start',
    'conflicting-grant-starts-nothing',
    'never',
  ),
  guard(CONTROL, 'a loop whose price is gone is paused', 'missing-price-pauses', { value: 'undefined' }),
  guard(CONTROL, 'a loop whose turn asked a model without a price is paused', 'turn-without-price-pauses', 'always'),
  guard(CONTROL, 'a loop whose grant id means another grant now is paused', 'conflicting-grant-pauses', 'always'),
  guard(CONTROL, 'a loop that does not take the input any more is paused', 'refused-input-pauses', 'always'),
]);
