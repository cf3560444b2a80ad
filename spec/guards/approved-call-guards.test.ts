// Guards of what an approved call performs.

import { approvedCallChecks, approvedCallParts } from './approved-call-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(approvedCallChecks);

proveGuards(approvedCallParts, [
  guard('approval.bound', 'a layer cannot change what was admitted', 'admitted-input-performed', 'drop'),
  guard('approval.bound', 'an approval shows the filtered arguments', 'filtered-input-shown', 'drop'),
  guard('approval.bound', 'an approval covers only the fallback models that it names', 'approval-bound-to-fallback', {
    value: 'digestOfText(definition)',
  }),
  guard('approval.once', 'a retry of a turn asks for another approval', 'retried-effect-admitted-by-layers', 'drop'),
  guard(
    'approval.once',
    'a retry asks again for a body that was approved as a whole',
    'gate-of-retried-call-reopened',
    'drop',
  ),
]);
