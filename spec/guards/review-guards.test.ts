// Guards of the reviews of grants: bodies that are no effects, waivers, standing approvals and approvers.

import { guardsOf, proveGuards } from './prove.js';
import { reviewChecks, reviewParts } from './review-checks.js';

const guard = guardsOf(reviewChecks);

proveGuards(reviewParts, [
  guard(
    'grant.document',
    'a misspelt keyword in a schema of arguments is refused',
    'unknown-keyword-of-arguments-refused',
    'never',
  ),
  guard('grant.document', 'a tool is named without a version', 'versioned-tool-name-refused', { value: 'true' }),
  guard('grant.document', 'a grant expires on a day that exists', 'iso-time-on-an-existing-day', 'never'),
  guard('grant.review', 'a composite whose review is blocked is not admitted', 'blocked-body-refused', 'never'),
  guard('grant.tools', 'a composite with other arguments does not run', 'arguments-of-body-satisfy-grant', 'drop'),
  guard(
    'grant.review',
    'a composite whose review is ask waits for a person, and is counted',
    'body-asked-and-counted',
    {
      value: 'false',
    },
  ),
  guard(
    'grant.review',
    'a tool that requires no approval is asked for if the grant demands it',
    'reviewed-call-always-asked',
    'always',
  ),
  guard(
    'grant.review',
    'a call that its tool waived is asked for under a grant that demands it',
    'waiver-without-review-only',
    { value: 'undefined' },
  ),
  guard(
    'grant.review',
    'an approval does not hold under a grant with other approvers',
    'answerer-is-approver-of-regranted-turn',
    { value: 'true' },
  ),
  guard(
    'grant.review',
    'a standing approval does not hold under a grant with other approvers',
    'standing-grant-applies-to-regranted-turn',
    { value: 'undefined' },
  ),
  guard(
    'grant.review',
    'a standing approval does not satisfy the review of another grant',
    'standing-bound-to-reviewing-grant',
    'drop',
  ),
  guard('grant.review', 'a turn whose approvals nobody could answer does not open', 'someone-can-answer', 'always'),
]);
