// Guards of the removal of sessions.

import { guardsOf, proveGuards } from './prove.js';
import { removalChecks, removalParts } from './removal-checks.js';

const guard = guardsOf(removalChecks);

proveGuards(removalParts, [
  guard(
    'receipt.removed',
    'the removal of a session without receipts is recorded if it had an unsealed turn',
    'unsealed-removal-recorded',
    { take: 0 },
  ),
  guard(
    'receipt.removed',
    'a receipt under the id of a removed session gets into the log after a crash',
    'receipt-logged-under-reused-id',
    { value: 'known.leaves' },
  ),
  guard('receipt.removed', 'a file is as complete as its store was', 'export-states-gaps', {
    value: '{ unsealed: 0, removed: 0 }',
  }),
  guard(
    'receipt.scope',
    'a file is complete only for what its checkpoint states',
    'unsealed-turns-of-file-noticed',
    'never',
  ),
  guard(
    'receipt.scope',
    'a file is complete only for what its checkpoint states',
    'removed-sessions-of-file-noticed',
    'never',
  ),
  guard('receipt.scope', 'a file is complete only for what its checkpoint states', 'whole-store-states-its-gaps', {
    take: 0,
  }),
]);
