// Guards of verdicts, of the log of a host and of the files beside the keys.

import { guardsOf, proveGuards } from './prove.js';
import { verdictChecks, verdictParts } from './verdict-checks.js';

const guard = guardsOf(verdictChecks);

proveGuards(verdictParts, [
  guard(
    'receipt.complete',
    'a bundle without a checkpoint is not complete',
    'bundle-without-checkpoint-is-not-complete',
    'never',
  ),
  guard('receipt.runx', 'a document without a position in the log needs a current key', 'unlogged-needs-current-key', {
    value: 'true',
  }),
  guard('receipt.facts', 'what a body records is no receipt', 'receipt-only-under-its-key', 'never'),
  guard('receipt.facts', 'what a body records does not end its turn', 'facts-only-under-their-keys', { take: 0 }),
  guard('receipt.facts', 'what a body records is not the origin of its session', 'origin-only-under-its-key', {
    rewrite: [/ && key === FORK_KEY/, ''],
  }),
  guard('grant.budget', 'a negative use counts as more than any limit', 'use-is-not-negative', 'always'),
  guard('receipt.key-files', 'a list of keys that others can change is refused', 'writable-key-list-refused', 'never'),
  guard('receipt.key-files', 'a directory of keys that is a link is refused', 'linked-key-directory-refused', 'never'),
  guard('receipt.key-files', 'keys in the place of those in use are refused', 'replaced-keys-refused', 'never'),
  guard('receipt.key-files', 'a list of keys that was removed is not begun again', 'removed-key-list-refused', 'never'),
  guard('receipt.key-files', 'keys that a store lost are not made again', 'lost-keys-not-made-again', 'always'),
  guard(
    'receipt.rotation',
    'a replaced key counts while running processes may sign with it',
    'rotation-waits-for-running-processes',
    'drop',
  ),
  guard(
    'receipt.rotation',
    'a key that signs is replaced before it is revoked',
    'signing-key-replaced-before-revoked',
    'drop',
  ),
  guard(
    'receipt.rotation',
    'a replaced key does not count longer after a later rotation',
    'ended-overlap-not-extended',
    { rewrite: [/\(key\.until \?\? 0\) > last/, 'true'] },
  ),
  guard(
    'receipt.rotation',
    'the time of keys that several stores use is not cut',
    'shared-keys-keep-their-overlap',
    'never',
  ),
  guard(
    'receipt.witness',
    'the kept checkpoint is not replaced by an older one',
    'witness-not-replaced-by-older',
    'never',
  ),
  guard(
    'receipt.witness',
    'nothing is signed about a log that was removed or made anew',
    'rewritten-log-not-signed',
    'never',
  ),
  guard(
    'receipt.key-origin',
    'a directory of keys that was copied has no valid mark',
    'mark-belongs-to-its-directory',
    'never',
  ),
  guard('receipt.key-origin', 'a mark is for the keys that were created there', 'mark-lists-its-keys', {
    value: 'true',
  }),
  guard('receipt.key-origin', 'a new key does not vouch for the others', 'only-new-keys-are-marked', 'always'),
  guard('receipt.witness', 'a log that was removed is not begun again', 'lost-log-not-begun-again', 'never'),
  guard(
    'receipt.witness',
    'a kept length that is less than the checkpoint says is noticed',
    'lowered-length-noticed',
    'always',
  ),
  guard('receipt.witness', 'a checkpoint is kept after the length of its log', 'length-kept-before-checkpoint', 'drop'),
  guard('receipt.witness', 'an emptied length is noticed', 'emptied-length-noticed', 'always'),
  guard(
    'receipt.store',
    'what belongs to a session that is removed while it is verified is no flaw',
    'removed-session-lacks-no-definition',
    { rewrite: [/left\.has\(digest\)/, 'true'] },
  ),
]);
