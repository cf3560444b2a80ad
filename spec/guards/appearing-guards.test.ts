// Each guard of stores that are created while a command runs, and of what commands plant, and its broken twin.

import { expect } from 'vitest';
import { usable } from '../../src/adapters/toolbox/sandbox.js';
import type { RequirementId } from '../requirements.js';
import { verifies } from '../verifies.js';
import { type Appearing, appearingChecks, shelf } from './appearing-checks.js';
import { Workshop } from './library.js';
import { type Guard, proveGuards } from './prove.js';

const isSandboxed = 'bubblewrap' in (await usable());
const isLinux = process.platform === 'linux';
const isRoot = process.getuid?.() === 0;

function guard(
  id: RequirementId,
  disaster: keyof typeof appearingChecks,
  file: string,
  from: string,
  to: string,
): Guard<Appearing> {
  return { id, disaster, file: `adapters/${file}`, from, to, check: appearingChecks[disaster] };
}

const inProcess: readonly Guard<Appearing>[] = [
  guard(
    'toolbox.data.new',
    'a store is created that a command sees',
    'sqlite/admission.ts',
    'if (place !== undefined && !isHiddenFrom(command)',
    'if (false && place !== undefined && !isHiddenFrom(command)',
  ),
  guard(
    'toolbox.data.new',
    'a store waits for a command that hides it',
    'sqlite/admission.ts',
    ' && !isHiddenFrom(command)',
    '',
  ),
  guard(
    'toolbox.data.new',
    'a command begins while a store is created',
    'sqlite/admission.ts',
    "if (!isComplete(path)) await announcement.add('store', directories);",
    '',
  ),
  guard(
    'toolbox.data.new',
    'a command begins while a store is created',
    'sqlite/admission.ts',
    'dirname(database) === places[0]?.path',
    'true',
  ),
  guard(
    'toolbox.data.planted',
    'a command hides a file with a false anchor',
    'toolbox/store-files.ts',
    'own !== undefined && isDatabase(own)',
    'own !== undefined && isFile(own)',
  ),
  guard(
    'toolbox.data.planted',
    'a false anchor makes a directory read-only for commands',
    'toolbox/stores-in.ts',
    'listing.recorded.some((name) => isDatabase(`${path}/${name}`))',
    'listing.recorded.length > 0',
  ),
  guard(
    'toolbox.data.planted',
    'a marker that is a directory closes the one above it',
    'toolbox/store-files.ts',
    'marker?.isFile() &&',
    'marker !== undefined &&',
  ),
  guard(
    'toolbox.store',
    'a database of this process is opened',
    'toolbox/store-files.ts',
    'status.size === 0n || isStoreInode(status) ||',
    'status.size === 0n ||',
  ),
  guard(
    'toolbox.store',
    'a database of another thread of this process is opened',
    'toolbox/store-files.ts',
    ' || isOwnedHere(path)',
    '',
  ),
  guard(
    'toolbox.data.planted',
    'a data directory that is renamed loses its marker',
    'toolbox/planted.ts',
    'if (closed.has(inodeOf(status))) return false;',
    '',
  ),
  guard(
    'toolbox.data.planted',
    'a store that is marked meanwhile loses its marker',
    'toolbox/planted.ts',
    '[...hidden, ...covered, ...stores.data]',
    '[...hidden, ...stores.data]',
  ),
  guard(
    'toolbox.data.planted',
    'a data directory that is moved into a root loses its marker',
    'toolbox/planted.ts',
    'return sinceMs === undefined || marker.ctimeMs >= sinceMs;',
    'return true;',
  ),
];

const ofOthers = guard(
  'toolbox.data.new',
  'a store waits for a name that another user has taken',
  'sqlite/admission.ts',
  ' && isTrusted(command)',
  '',
);

const sandboxed: readonly Guard<Appearing>[] = [
  guard(
    'toolbox.data.new',
    'a command does not wait for a store that is created',
    'toolbox/exposure.ts',
    'await creationsEnded(new Set(seen), roots, abort);',
    '',
  ),
  guard(
    'toolbox.data.new',
    'a command is not announced',
    'toolbox/exposure.ts',
    "await announce(() => announcement.add('command', seen));",
    '',
  ),
  guard(
    'toolbox.data.new',
    'a command does not tell what it hides',
    'toolbox/exposure.ts',
    "await announcement.add('hides', inodesOf(mounts.hidden).slice(0, MAX_HIDDEN));",
    '',
  ),
  guard(
    'toolbox.data.planted',
    'a command closes its root with a marker',
    'toolbox/planted.ts',
    'unlinkSync(join(at, DATA_MARKER));',
    'void unlinkSync;',
  ),
];

if (isLinux) proveGuards(() => new Workshop<Appearing>(shelf), isRoot ? [...inProcess, ofOthers] : inProcess);
if (isSandboxed) proveGuards(() => new Workshop<Appearing>(shelf), sandboxed);
else {
  verifies('toolbox.data.new', 'the guards of commands are not proved', (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    expect(isSandboxed).toBe(true);
  });
}
