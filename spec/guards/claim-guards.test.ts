// Guards of what code and stores may not claim.

import { claimChecks, claimParts } from './claim-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(claimChecks);

proveGuards(
  [...claimParts, 'base/trusted-keys.js'],
  [
    guard('grant.tools', 'an effect of code has no kind of the runtime', 'effect-of-code-has-own-kind', 'never'),
    guard('grant.tools', 'an effect of code has no boundary', 'effect-of-code-has-no-boundary', 'never'),
    guard('grant.tools', 'a host refuses the claims of code', 'claims-of-code-refused', 'drop'),
    guard('receipt.store', 'nothing is signed over missing receipts', 'missing-receipts-not-signed-over', 'never'),
    guard('receipt.witness', 'a log that was cut off is not valid', 'cut-off-log-is-not-valid', 'never'),
  ],
);
