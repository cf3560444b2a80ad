/** A full disk with blocks of 1 KiB, in which SQLite leaves holes in the shared memory that it maps. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { builtStoreUrl } from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';

const SCRIPT = fileURLToPath(new URL('../../../spec/support/full-disk-process.mjs', import.meta.url));
/** Closing a store on a full disk may have freed what opening it needs. */
const FULL_OR_OPENED = /^(?:STORE_FULL)?$/;
const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'ignore' });

/** Mounts a new file system of 8 MiB with blocks of 1 KiB; empty if this process may not. */
function mountSmallBlocks(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-full-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [image, disk] = [join(folder, 'image'), join(folder, 'disk')];
  mkdirSync(disk);
  try {
    run('truncate', '-s', '8M', image);
    run('mkfs.ext4', '-q', '-b', '1024', '-O', '^has_journal', image);
    run('mount', '-o', 'loop', image, disk);
  } catch {
    return '';
  }
  onTestFinished(() => void run('umount', disk));
  return disk;
}

/** Runs the script; returns the codes of its Faults, or the signal that ended it. */
function use(file: string, verb: 'fill' | 'kill' | 'open'): string {
  const { stdout, signal } = spawnSync(process.execPath, [SCRIPT, builtStoreUrl, file, verb], { encoding: 'utf8' });
  return signal ?? stdout.trim();
}

verifies('sqlite.failure', 'a full disk with small blocks is a Fault, and ends no process', async (context) => {
  const disk = mountSmallBlocks();
  context.skip(!disk, 'needs root, to mount, and mkfs.ext4');
  const file = join(disk, 'store.db');
  expect(use(file, 'fill')).toBe('STORE_FULL');
  const filler = join(disk, 'filler');
  for (let i = 0; i < 2; i++) expect(use(file, 'open'), 'a full disk').toMatch(FULL_OR_OPENED);
  rmSync(filler);
  expect(use(file, 'open'), 'a disk with space again').toBe('');
  // A killed owner whose shared memory was lost, for example because the disk was copied.
  expect(use(file, 'kill')).toBe('SIGKILL');
  rmSync(`${file}-shm`);
  const descriptor = openSync(filler, 'w');
  spawnSync('fallocate', ['-l', '8M', filler]);
  run('sync');
  const used = statSync(filler).blocks * 512;
  for (const freeKiB of [10, 12, 16, 24, 60]) {
    ftruncateSync(descriptor, used - freeKiB * 1024);
    run('sync');
    expect(use(file, 'open'), `${freeKiB} KiB are free`).toMatch(FULL_OR_OPENED);
  }
  closeSync(descriptor);
  rmSync(filler);
  expect(use(file, 'open'), 'a disk with space again').toBe('');
});
