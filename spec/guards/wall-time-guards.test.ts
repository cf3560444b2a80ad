// Guards of the running time under a grant, of timeouts, and of the end of a turn that failed.

import { guardsOf, proveGuards } from './prove.js';
import { wallTimeChecks, wallTimeParts } from './wall-time-checks.js';

const guard = guardsOf(wallTimeChecks);

proveGuards(wallTimeParts, [
  guard('grant.budget', 'time that has passed stays charged', 'passed-time-stays-charged', { value: '0' }),
  guard('grant.shared', 'time that another process took first is not used', 'refused-slice-not-used', {
    rewrite: [/isReserved \|\| /, 'isReserved || true || '],
  }),
  guard('grant.budget', 'nothing starts when no running time is left', 'nothing-starts-without-time', {
    value: 'undefined',
  }),
  guard(
    'grant.budget',
    'a turn that failed leaves no reservation that others wait for',
    'calls-of-failed-turn-released',
    'drop',
  ),
  guard('grant.confined', 'an effect under a timeout stays confined', 'signal-replaced-alone', {
    rewrite: [/, confinement, outputMeter/, ''],
  }),
]);
