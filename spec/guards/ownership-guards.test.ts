// The guards of a store that several processes share, each broken in turn.

import type { RequirementId } from '../requirements.js';
import { type Library, Workshop } from './library.js';
import { ownershipChecks } from './ownership-checks.js';
import { type Guard, proveGuards } from './prove.js';

type Disaster = keyof typeof ownershipChecks;

function guard(id: RequirementId, disaster: Disaster, file: string, from: string, to: string): Guard<Library> {
  return { id, disaster, check: ownershipChecks[disaster], file: `adapters/sqlite/${file}`, from, to };
}

const guards = [
  guard(
    'sqlite.owner',
    'a process that lost ownership writes once more',
    'writes.ts',
    'const owned = `(SELECT epoch FROM ownership WHERE id = 1) = ${epoch}`;',
    "const owned = 'TRUE';",
  ),
  guard(
    'sqlite.owner',
    'a process that lost ownership writes a group',
    'writes.ts',
    'if (epoch === this.#epoch) return;',
    'return;',
  ),
  guard(
    'sqlite.files',
    'something is acknowledged into a file that was removed',
    'commits.ts',
    'this.#presence.assert();',
    '',
  ),
  guard(
    'sqlite.repeat',
    'an append is refused because its acknowledgement was lost, or another passes for it',
    'writes.ts',
    'if (head !== undefined && this.#isWritten(draft, head)) return;',
    '',
  ),
  guard(
    'sqlite.repeat',
    'an append is refused because its acknowledgement was lost, or another passes for it',
    'writes.ts',
    'record.count === count && record.body === body;',
    'record.count === count;',
  ),
  guard(
    'sqlite.owner',
    'a free lock makes a second owner while the first one lives',
    'owner/process.ts',
    "if (started.join(' ') !== status.started) return 'gone';",
    "return 'gone';",
  ),
  guard(
    'sqlite.socket',
    'a stranger at the socket is answered',
    'wire/handshake.ts',
    "if (!isProof(answer.proof, proofOf(secret, 'client', nonces))) throw new HandshakeError('proof', 'Wrong proof.');",
    '',
  ),
  guard(
    'sqlite.socket',
    'a client believes whoever listens at the address',
    'wire/handshake.ts',
    "if (!isProof(proof, proofOf(secret, 'owner', nonces))) throw new HandshakeError('proof', 'It has another secret.');",
    '',
  ),
  guard(
    'sqlite.files',
    'a file of the store can be read by others, or is a link to somewhere else',
    'files.ts',
    'fchmodSync(descriptor, FILE_MODE);',
    '',
  ),
  guard(
    'sqlite.files',
    'a file of the store can be read by others, or is a link to somewhere else',
    'files.ts',
    "if (!found.isFile()) throw refused(path, 'it is not a regular file; remove it if it is not yours');",
    '',
  ),
];

proveGuards(() => new Workshop<Library>(), guards);
