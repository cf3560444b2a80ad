// Guards of the key of a store and of the kept lengths of ledgers.

import { guardsOf, proveGuards } from './prove.js';
import { storeKeyChecks, storeKeyParts } from './store-key-checks.js';

const guard = guardsOf(storeKeyChecks);

proveGuards(storeKeyParts, [
  guard('store.key', 'a snapshot that was changed without the key is not used', 'snapshot-made-with-the-key', 'never'),
  guard('store.key', 'a store that had a key is not used as one without', 'removed-protection-refused', 'never'),
  guard('store.key', 'the key of another store is refused', 'key-of-another-store-refused', 'never'),
  guard('store.key', 'the key of another store is not used by a client', 'keys-of-another-store-not-used', 'never'),
  guard('store.key', 'a key that this user may not read is not missing', 'unreadable-key-is-not-missing', 'always'),
  guard('receipt.key-files', 'a full disk is no problem of the keys', 'full-disk-is-no-key-problem', 'always'),
  guard('store.key', 'a key that others can read is refused', 'readable-store-key-refused', 'never'),
  guard('store.key', 'a store with a trigger can only be read', 'trigger-refused', { value: '[]' }),
  guard('store.key', 'a removal that was added without the key is noticed', 'forged-removal-noticed', { value: '[]' }),
  guard('store.key', 'a removal that was deleted without the key is noticed', 'deleted-removal-noticed', 'never'),
  guard('grant.ledger-kept', 'a kept length is not lowered', 'kept-length-not-lowered', 'never'),
  guard('grant.ledger-kept', 'a ledger that is shorter than it was is refused', 'shortened-ledger-refused', 'never'),
  guard(
    'grant.ledger-kept',
    'a turn does not continue under a grant that is not registered',
    'lost-ledger-not-begun-again',
    'never',
  ),
]);
