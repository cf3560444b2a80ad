// Guards of hosted loops whose file was not trusted when they were started.

import { hostedParts } from './hosted-library.js';
import { hostedTrustChecks } from './hosted-trust-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(hostedTrustChecks);
const ID = 'authority.calls';

proveGuards(hostedParts, [
  guard(
    ID,
    'a hosted loop that is not trusted does not start with a loop in code',
    'untrusted-hosted-loop-runs-no-trusted-code',
    { value: 'undefined' },
  ),
  guard(
    ID,
    'a hosted loop that is not trusted stops before a turn of a loop in code',
    'untrusted-hosted-loop-stops-before-trusted-code',
    'never',
  ),
  guard(
    ID,
    'a hosted loop whose file is no longer trusted runs no loop in code',
    'hosted-loop-waits-for-revoked-trust',
    'always',
  ),
  guard(
    ID,
    'a hosted loop that is not trusted hands off to no loop in code',
    'untrusted-sender-hands-off-to-no-trusted-code',
    'never',
  ),
]);
