// Guards of a store that several processes share.

import { kernelParts } from './library.js';
import { ownershipChecks } from './ownership-checks.js';
import { guardsOf, proveGuards } from './prove.js';

const guard = guardsOf(ownershipChecks);

proveGuards(kernelParts, [
  guard('sqlite.owner', 'a process that lost ownership cannot write', 'lone-write-checks-owner', { value: "'TRUE'" }),
  guard('sqlite.owner', 'a process that lost ownership cannot write a group', 'group-write-checks-owner', 'always'),
  guard('sqlite.files', 'a write to a removed file is not acknowledged', 'store-file-present', 'drop'),
  guard('sqlite.files', 'a write to a shortened file is not acknowledged', 'shortened-file-refused', 'never'),
  guard(
    'sqlite.files',
    'a process that waits for due turns notices that its store was removed',
    'waiting-process-notices-removal',
    'always',
  ),
  guard(
    'sqlite.files',
    'a client does not write to a store in the place of its own',
    'replaced-store-not-joined',
    'always',
  ),
  guard(
    'sqlite.repeat',
    'a repeated append is accepted after a lost acknowledgement, and only with the same content',
    'repeated-append-accepted',
    'drop',
  ),
  guard(
    'sqlite.repeat',
    'a repeated append is accepted after a lost acknowledgement, and only with the same content',
    'repeated-append-has-same-body',
    'drop',
  ),
  guard(
    'sqlite.owner',
    'a free lock admits no second owner while the first is alive',
    'owner-process-identified',
    'always',
  ),
  guard('sqlite.owner', 'the check of an owner that was killed long ago is repeated', 'old-check-repeated', 'never'),
  guard('sqlite.socket', 'a client without the secret gets no answer', 'client-proves-secret', 'drop'),
  guard('sqlite.socket', 'a client rejects an owner without the secret', 'owner-proves-secret', 'drop'),
  guard('sqlite.files', 'a store file is private to its user and is never a link', 'store-file-mode-set', 'drop'),
  guard('sqlite.files', 'a store file is private to its user and is never a link', 'store-file-is-regular', 'drop'),
]);
