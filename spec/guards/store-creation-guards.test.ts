// Guards of stores that are created while a command runs, and of planted markers and anchors.

import { expect } from 'vitest';
import { probeSandbox } from '../../src/adapters/toolbox/sandbox.js';
import { verifies } from '../verifies.js';
import { guardsOf, proveGuards } from './prove.js';
import { storeCreationChecks, storeCreationParts } from './store-creation-checks.js';

const isSandboxed = 'bubblewrap' in (await probeSandbox());
const isLinux = process.platform === 'linux';
const isRoot = process.getuid?.() === 0;

const guard = guardsOf(storeCreationChecks);

const inProcess = [
  guard(
    'toolbox.data.new',
    'no store is created where a running command can read it',
    'store-waits-for-commands-that-see-it',
    'never',
  ),
  guard(
    'toolbox.data.new',
    'a store does not wait for a command that hides its directory',
    'hidden-directory-delays-no-store',
    'drop',
  ),
  guard('toolbox.data.new', 'no command starts while a store is being created', 'store-creation-announced', 'drop'),
  guard(
    'toolbox.data.new',
    'no command starts while a store is being created',
    'announced-directory-holds-the-store',
    'always',
  ),
  guard('toolbox.data.planted', 'a false anchor hides no file', 'anchor-needs-a-database', 'drop'),
  guard(
    'toolbox.data.planted',
    'a false anchor does not make a directory read-only for commands',
    'shared-directory-holds-a-database',
    'always',
  ),
  guard(
    'toolbox.data.planted',
    'a directory with the name of the marker does not mark its parent',
    'marker-is-a-regular-file',
    'drop',
  ),
  guard(
    'toolbox.store',
    'a database that this process has open is not opened again',
    'own-database-never-opened',
    'drop',
  ),
  guard(
    'toolbox.store',
    'a database that another thread has open is not opened again',
    'database-of-other-thread-never-opened',
    'drop',
  ),
  guard(
    'toolbox.data.planted',
    'a renamed data directory keeps its marker',
    'known-data-directory-keeps-marker',
    'drop',
  ),
  guard(
    'toolbox.data.planted',
    'a store that is marked while a command runs keeps its marker',
    'covered-store-keeps-marker',
    'drop',
  ),
  guard('toolbox.data.planted', 'a data directory that is moved into a root keeps its marker', 'older-marker-kept', {
    value: 'true',
  }),
];

/** Only root can create an announcement of another user. */
const ofOtherUsers = [
  guard(
    'toolbox.data.new',
    'a store does not wait for an announcement of another user',
    'only-trusted-announcement-delays-store',
    'drop',
  ),
];

const sandboxed = [
  guard(
    'toolbox.data.new',
    'a command waits for a store that is being created',
    'command-waits-for-store-creation',
    'drop',
  ),
  guard('toolbox.data.new', 'a command is announced before it starts', 'command-announced', 'drop'),
  guard(
    'toolbox.data.new',
    'a command announces the directories that it hides',
    'hidden-directories-announced',
    'drop',
  ),
  guard(
    'toolbox.data.planted',
    'a marker that a command plants in its root is removed',
    'planted-marker-removed',
    'drop',
  ),
];

if (isLinux) proveGuards(storeCreationParts, isRoot ? [...inProcess, ...ofOtherUsers] : inProcess);
if (isSandboxed) proveGuards(storeCreationParts, sandboxed);
else {
  verifies('toolbox.data.new', 'the guards of commands are proved where bubblewrap is available', (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    expect(isSandboxed).toBe(true);
  });
}
