/**
 * Writes a file whole: into a new file in the same open directory, which then takes the place of the old one. Whoever
 * reads sees the old content or the new, and a write that fails leaves the old. Writes to one file wait for each other.
 */
import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { unusable } from './refusal.js';
import { NO_LINKS, type Roots, type Spot } from './roots.js';

const { O_WRONLY, O_CREAT, O_EXCL } = constants;

/** Puts the text at a spot, in place of what is there. */
export async function replaceAt(
  roots: Roots,
  spot: Spot,
  path: string,
  text: string,
  old: Stats | undefined,
): Promise<void> {
  const temporary = roots.at(spot.directory, `.rondo-${randomBytes(9).toString('hex')}`);
  try {
    const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | NO_LINKS, 0o666);
    try {
      // Only Linux opens it in the very directory that was judged; elsewhere it may have been swapped, and nothing is written.
      await roots.still({ ...spot.directory, handle, real: temporary }, path);
      await fill(handle, text, old);
    } finally {
      await handle.close();
    }
    await roots.still(spot.directory, path);
    await rename(temporary, roots.at(spot.directory, spot.name));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw unusable(path, error);
  }
}

async function fill(handle: FileHandle, text: string, old: Stats | undefined): Promise<void> {
  await handle.writeFile(text);
  if (old !== undefined) {
    const made = await handle.stat();
    // Who may not give a file away keeps it: the content matters more.
    if (made.uid !== old.uid || made.gid !== old.gid) await handle.chown(old.uid, old.gid).catch(() => undefined);
    await handle.chmod(old.mode & 0o777);
  }
  await handle.sync();
}

const writing = new Map<string, Promise<unknown>>();

/** Runs the work when all earlier work on this file is over: two edits side by side must not lose one. */
export async function inTurn<T>(file: string, work: () => Promise<T>): Promise<T> {
  const before = writing.get(file) ?? Promise.resolve();
  const mine = before.then(work, work);
  writing.set(file, mine);
  try {
    return await mine;
  } finally {
    if (writing.get(file) === mine) writing.delete(file);
  }
}
