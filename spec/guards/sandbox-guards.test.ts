// Each guard of the sandbox, of data directories and of secrets, and its broken twin: the check fails without the guard.

import { spawnSync } from 'node:child_process';
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
const canMount = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0;
/** The guards whose checks are written in Perl. */
const NEEDS_PERL = /calls\.keyring|EAFNOSUPPORT/;

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
    'adapters/toolbox/other-names.ts',
    'const isLinked = status.nlink > 1n &&',
    'const isLinked = false &&',
  ),
  guard(
    'toolbox.data',
    'a tool reads a file of a data directory of another process through a hard link',
    'adapters/toolbox/other-names.ts',
    '...used, ...data]',
    '...used]',
  ),
  guard(
    'toolbox.confined',
    'a root is not reached through a link that a command could have made',
    'adapters/toolbox/real-root.ts',
    'if (real !== sep && isWritable(real)) throw replaceable(root, path);',
    '',
  ),
  guard(
    'toolbox.isolation',
    'a sandbox shows what a symbolic link on the way to a root leads to',
    'adapters/toolbox/sources.ts',
    ' || readlinkSync(at) !== path',
    '',
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
    'a command reads a key in a data directory in node_modules',
    'adapters/toolbox/stores-in.ts',
    'for (const name of listing.directories) queue',
    "for (const name of listing.directories) if (name !== 'node_modules') queue",
  ),
  guard(
    'toolbox.data',
    'a command reads a file of a data directory through a hard link',
    'adapters/toolbox/other-names.ts',
    'if (!hasLinks) return found;',
    'return found;',
  ),
  guard(
    'toolbox.isolation',
    'a command reads through a descriptor that our process was started with',
    'adapters/toolbox/inherited.ts',
    'if (inherited.length === 0) return',
    'return',
  ),
  guard(
    'toolbox.data',
    'a command reads a key in a data directory that is called otherwise',
    'adapters/toolbox/mounts.ts',
    "...hidden.map((at) => ({ at, argv: ['--tmpfs', at, '--remount-ro', at], shows: [] })),",
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

const mounted: readonly Guard<Confining>[] = [
  guard(
    'toolbox.data',
    'a command reads a file of a data directory through a mount',
    'adapters/toolbox/other-names.ts',
    'for (const path of mountPointsIn(places)) {',
    'for (const path of [] as string[]) {',
  ),
  guard(
    'toolbox.data',
    'a directory that was changed just now is read again, whatever its ctime says',
    'adapters/toolbox/stores-in.ts',
    'if (isSettled && listing !== undefined)',
    'if (listing !== undefined)',
  ),
];

proveGuards(() => new Workshop<Confining>(shelf), inProcess);
if (found) {
  // Only Perl can make any system call, and only root can mount something.
  const provable = [...sandboxed.filter(({ from }) => hasPerl || !NEEDS_PERL.test(from)), ...(canMount ? mounted : [])];
  proveGuards(() => new Workshop<Confining>(shelf), provable);
} else {
  verifies('toolbox.limits', 'the guards of the sandbox are not proved', (context) => {
    context.skip(!found, 'needs bubblewrap');
    expect(found).toBe(true);
  });
}
