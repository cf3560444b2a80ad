// Guards of the boundary of trust.

import { guardsOf, proveGuards } from './prove.js';
import { trustedParts, trustedPartsChecks } from './trusted-parts-checks.js';

const guard = guardsOf(trustedPartsChecks);
const ID = 'authority.calls';

proveGuards(trustedParts, [
  guard(ID, 'an untrusted config starts no loop in code', 'untrusted-config-is-a-part', { take: 0 }),
  guard(ID, 'an untrusted config starts no loop in code', 'config-that-decides-is-known', 'never'),
  guard(ID, 'an untrusted config starts no loop in code', 'mixed-trust-not-started', 'never'),
  guard(ID, 'code runs no plan with a part that is not trusted', 'mixed-trust-not-called', 'never'),
  guard(
    'tool.trust',
    'a recorded definition without a file drives no loop in code',
    'unknown-definition-equals-a-trusted-one',
    { value: 'false' },
  ),
  guard(
    'tool.trust',
    'a recorded definition without a file drives no loop in code',
    'mixed-trust-not-continued',
    'always',
  ),
]);
