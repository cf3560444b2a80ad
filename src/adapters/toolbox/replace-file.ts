/**
 * Replaces files atomically: writes a temporary file in the same open directory and renames it. Readers see either the
 * old content or the new, and a failed write keeps the old content. Writes of this process to the same file are
 * serialized.
 */
import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { type FileLocation, NO_LINKS_FLAG, type Roots } from './roots.js';
import { toPathError } from './tool-error.js';

const { O_WRONLY, O_CREAT, O_EXCL } = constants;

/**
 * Writes a text to a location. `oldStats` are the stats of the file that is replaced, if there is one; the new file
 * gets its permissions and, if possible, its owner. `path` is the requested path, for messages.
 */
export async function replaceFile(
  roots: Roots,
  location: FileLocation,
  path: string,
  text: string,
  oldStats: Stats | undefined,
): Promise<void> {
  const temporary = roots.pathWithin(location.directory, `.rondo-${randomBytes(9).toString('hex')}`);
  try {
    const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | NO_LINKS_FLAG, 0o666);
    try {
      // On Linux the file is in the checked directory. Elsewhere the directory may have been replaced since; if so,
      // nothing is written.
      await roots.assertStillInside({ ...location.directory, handle, realPath: temporary }, path);
      await writeContent(handle, text, oldStats);
    } finally {
      await handle.close();
    }
    await roots.assertStillInside(location.directory, path);
    await rename(temporary, roots.pathWithin(location.directory, location.name));
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw toPathError(path, error);
  }
}

async function writeContent(handle: FileHandle, text: string, oldStats: Stats | undefined): Promise<void> {
  await handle.writeFile(text);
  if (oldStats !== undefined) {
    const { uid, gid, mode } = oldStats;
    const newStats = await handle.stat();
    // Changing the owner needs privileges. Without them, the file keeps its new owner.
    if (newStats.uid !== uid || newStats.gid !== gid) await handle.chown(uid, gid).catch(() => undefined);
    await handle.chmod(mode & 0o777);
  }
  await handle.sync();
}

const pendingWrites = new Map<string, Promise<unknown>>();

/** Runs the work after all earlier work on the same file, so that no concurrent edit is lost. */
export async function runExclusive<T>(file: string, work: () => Promise<T>): Promise<T> {
  const previous = pendingWrites.get(file) ?? Promise.resolve();
  const result = previous.then(work, work);
  pendingWrites.set(file, result);
  try {
    return await result;
  } finally {
    if (pendingWrites.get(file) === result) pendingWrites.delete(file);
  }
}
