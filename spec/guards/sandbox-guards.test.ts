// Each guard of the sandbox, of data directories and of secrets, and its broken twin: the check fails without the guard.

import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { usable } from '../../src/adapters/toolbox/sandbox.js';
import type { RequirementId } from '../requirements.js';
import { verifies } from '../verifies.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';
import { type Confining, sandboxChecks, shelf } from './sandbox-checks.js';

const hasPerl = existsSync('/usr/bin/perl');
const found = 'bubblewrap' in (await usable());

function guard(
  id: RequirementId,
  disaster: keyof typeof sandboxChecks,
  file: string,
  from: string,
  to: string,
): Guard<Confining> {
  return { id, disaster, file, from, to, check: sandboxChecks[disaster] };
}

const inProcess: readonly Guard<Confining>[] = [
  guard(
    'toolbox.data',
    'a tool reads a key in a data directory that another process has marked',
    'adapters/toolbox/store-files.ts',
    'isMarked(directory, found) ||',
    '',
  ),
  guard(
    'toolbox.data',
    'a tool reads a file of a data directory through a hard link',
    'adapters/toolbox/store-files.ts',
    'stats.nlink > 1n &&',
    'false &&',
  ),
  guard(
    'secret.echo',
    'the token of a header is told without its scheme',
    'base/secret-parts.ts',
    '[whole, credentials, ...passwordsIn(whole)]',
    '[whole, ...passwordsIn(whole)]',
  ),
  guard(
    'secret.echo',
    'a secret is told in the encoding of a URL',
    'base/rounds.ts',
    'if (decoded !== undefined) {',
    'if (decoded !== undefined && step.escaped < 0) {',
  ),
  guard(
    'secret.echo',
    'a secret is told in Base64 that is wrapped in lines',
    'base/redact.ts',
    '...this.foundInLines(round),',
    '',
  ),
  guard(
    'secret.echo',
    'a secret is told in Base64 of what encodes it',
    'base/rounds.ts',
    'if (step.packed === MAX_PACKED) continue;',
    'continue;',
  ),
];

const sandboxed: readonly Guard<Confining>[] = [
  guard(
    'toolbox.data',
    'a command reads a key in a data directory that is called otherwise',
    'adapters/toolbox/mounts.ts',
    "...hidden.map((at) => ({ at, argv: ['--tmpfs', at, '--remount-ro', at] })),",
    '',
  ),
  guard(
    'toolbox.data',
    'a command moves the directory above a data directory',
    'adapters/toolbox/mounts.ts',
    '...[...parents]',
    '...([] as string[])',
  ),
  guard(
    'toolbox.isolation',
    'a command makes a socket to the hypervisor',
    'adapters/toolbox/seccomp.ts',
    'step(RETURN, ERRNO | EAFNOSUPPORT),',
    'step(RETURN, ALLOW),',
  ),
  guard(
    'toolbox.keyring',
    'a command asks the kernel for a keyring',
    'adapters/toolbox/seccomp.ts',
    '...deny(calls.keyring, EPERM),',
    '',
  ),
  guard(
    'toolbox.limits',
    'a command runs more processes than it may',
    'adapters/toolbox/watch.ts',
    "if (processes.length - OWN_PROCESSES > limits.processes) return 'processes';",
    '',
  ),
  guard(
    'toolbox.limits',
    'a command uses more memory than it may',
    'adapters/toolbox/watch.ts',
    "? 'memory' : undefined",
    '? undefined : undefined',
  ),
  guard(
    'toolbox.limits',
    'a command writes a larger file than it may',
    'adapters/toolbox/limits.ts',
    'limit -f "$1"',
    ':',
  ),
];

proveGuards(() => new Workshop<Confining>(shelf), inProcess);
if (found) {
  // Only Perl can make any system call.
  const provable = sandboxed.filter(({ id }) => hasPerl || (id !== 'toolbox.keyring' && id !== 'toolbox.isolation'));
  proveGuards(() => new Workshop<Confining>(shelf), provable);
} else {
  verifies('toolbox.limits', 'the guards of the sandbox are not proved', (context) => {
    context.skip(!found, 'needs bubblewrap');
    expect(found).toBe(true);
  });
}
