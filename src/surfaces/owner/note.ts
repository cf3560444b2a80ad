/**
 * The note that the owner of a store leaves for other processes: where it listens, and the word that lets them in. It
 * lies in the data directory, readable by its owner alone. A note whose process has died is as good as none.
 */
import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

export interface OwnerNote {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  /** The file of the store: a data directory may be shared by several. */
  readonly store: string;
}

const ADDRESS = /^http:\/\/127\.0\.0\.1:\d{1,5}$/;

const noteIn = (data: string): string => join(data, 'owner.json');

/** The store's file under the one name that all processes know it by. */
export function trueName(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

/** The note of a living owner of this store, if there is one. */
export function readNote(data: string, store: string): OwnerNote | undefined {
  const note = parsed(noteIn(data));
  return note !== undefined && note.store === trueName(store) && lives(note.pid) ? note : undefined;
}

function parsed(file: string): OwnerNote | undefined {
  try {
    const { url, token, pid, store } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<string, unknown>>;
    if (typeof url !== 'string' || !ADDRESS.test(url) || typeof token !== 'string') return undefined;
    if (typeof store !== 'string' || !Number.isSafeInteger(pid) || Number(pid) <= 0) return undefined;
    return { url, token, pid: Number(pid), store };
  } catch {
    return undefined;
  }
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Leaves the note, all of it or nothing. */
export function writeNote(data: string, note: OwnerNote): void {
  mkdirSync(data, { recursive: true });
  const file = noteIn(data);
  const draft = `${file}.${note.pid}`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${JSON.stringify(note)}\n`, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
}

/** Takes the note away again, unless another owner has left its own since. */
export function removeNote(data: string, token: string): void {
  try {
    if (parsed(noteIn(data))?.token === token) rmSync(noteIn(data), { force: true });
  } catch {
    // A note that stays is recognised as stale.
  }
}
