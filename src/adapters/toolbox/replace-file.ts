/**
 * Replaces a file atomically: writes a new file in the same open directory and renames it over the old one. A reader sees
 * the old content or the new one, and a failed write leaves the old one. Writes to one file are serialised.
 */
import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { type FileLocation, NO_LINKS_FLAG, type Roots } from './roots.js';
import { toPathError } from './tool-error.js';

const { O_WRONLY, O_CREAT, O_EXCL } = constants;

/** Puts the text at a spot, in place of what is there. */
export async function replaceFile(
  roots: Roots,
  spot: FileLocation,
  path: string,
  text: string,
  old: Stats | undefined,
): Promise<void> {
  const temporary = roots.pathWithin(spot.directory, `.rondo-${randomBytes(9).toString('hex')}`);
  try {
    const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | NO_LINKS_FLAG, 0o666);
    try {
      // Only Linux opens it in the very directory that was judged; elsewhere it may have been swapped, and nothing is written.
      await roots.assertStillInside({ ...spot.directory, handle, realPath: temporary }, path);
      await writeContent(handle, text, old);
    } finally {
      await handle.close();
    }
    await roots.assertStillInside(spot.directory, path);
    await rename(temporary, roots.pathWithin(spot.directory, spot.name));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw toPathError(path, error);
  }
}

async function writeContent(handle: FileHandle, text: string, old: Stats | undefined): Promise<void> {
  await handle.writeFile(text);
  if (old !== undefined) {
    const made = await handle.stat();
    // Who may not give a file away keeps it: the content matters more.
    if (made.uid !== old.uid || made.gid !== old.gid) await handle.chown(old.uid, old.gid).catch(() => undefined);
    await handle.chmod(old.mode & 0o777);
  }
  await handle.sync();
}

const pendingWrites = new Map<string, Promise<unknown>>();

/** Runs the work when all earlier work on this file is over: two edits side by side must not lose one. */
export async function runExclusive<T>(file: string, work: () => Promise<T>): Promise<T> {
  const before = pendingWrites.get(file) ?? Promise.resolve();
  const mine = before.then(work, work);
  pendingWrites.set(file, mine);
  try {
    return await mine;
  } finally {
    if (pendingWrites.get(file) === mine) pendingWrites.delete(file);
  }
}
