/**
 * Markers of data directories that a sandboxed command has written. They would close directories to all tools, so they are removed when
 * the command has ended. Rondo itself marks no directory that a command sees: a store that is created waits until the command
 * has ended (see exposure.ts). A marker that may be another's work is left.
 */
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_MARKER, isInDataDirectory } from '../../journal/store-files.js';
import type { Mounts } from './mounts.js';
import { refusal } from './refusal.js';
import { identified } from './sources.js';
import { entryOf, inodeAt, inodeOf, markerIn } from './store-files.js';
import { type Stores, storesIn } from './stores-in.js';

/** What was there before a command. */
export interface Before {
  /** Directories in which the command can create nothing, data directories among them, by device and inode. */
  readonly closed: ReadonlySet<string>;
  /** Markers that are older were moved into the roots; undefined if they may have been there unseen. */
  readonly sinceMs: bigint | undefined;
}

/** Markers that a command left. */
export interface Planted {
  readonly removed: readonly string[];
  /** Those that could not be removed. */
  readonly left: readonly string[];
  /** Why the roots could not be searched. */
  readonly flaw?: string;
}

/** File systems take their time from a coarse clock. */
const CLOCK_SLACK_MS = 1000;

/** @param startedMs when the search began whose result this is. */
export function beforeCommand({ stores, hidden, covered }: Mounts, startedMs: number): Before {
  return {
    closed: new Set(
      [...hidden, /* guard: covered-store-keeps-marker */ ...covered, ...stores.data].flatMap(
        (directory) => inodeAt(directory) ?? [],
      ),
    ),
    sinceMs: stores.isPartial ? undefined : BigInt(startedMs - CLOCK_SLACK_MS),
  };
}

/** Removes the markers in these roots that a command has written, which has ended. */
export async function removePlanted(roots: readonly string[], before: Before): Promise<Planted> {
  const removed = new Set<string>();
  const left: string[] = [];
  try {
    // Below a directory with a marker nothing is searched, so it is searched when its marker is gone.
    for (let places = roots; places.length > 0; ) {
      const planted = plantedAmong(await storesIn(places), before);
      // Other commands may write the same marker again and again; theirs are removed when they end.
      places = planted.filter((directory) => !removed.has(directory) && isRemoved(directory, left));
      for (const directory of places) removed.add(directory);
    }
  } catch (error) {
    return { removed: [...removed], left, flaw: (error as Error).message };
  }
  return { removed: [...removed], left };
}

function plantedAmong({ marked }: Stores, { closed, sinceMs }: Before): readonly string[] {
  return [...new Set(marked)].filter((directory) => {
    const status = entryOf(directory);
    const marker = status && markerIn(directory, status);
    if (status === undefined || marker === undefined || isInDataDirectory(directory)) return false;
    // guard: known-data-directory-keeps-marker
    if (closed.has(inodeOf(status))) return false;
    // guard: older-marker-kept
    return sinceMs === undefined || marker.ctimeMs >= sinceMs;
  });
}

/** Removes the marker from a directory, unless a link has taken the place of the directory: other commands may still run. */
function isRemoved(directory: string, left: string[]): boolean {
  try {
    return identified(directory, moved, (at) => {
      // guard: planted-marker-removed
      if (entryOf(join(at, DATA_MARKER))?.isFile()) unlinkSync(join(at, DATA_MARKER));
      return true;
    });
  } catch {
    left.push(directory);
    return false;
  }
}

function moved(path: string): Error {
  return refusal(`${path} was moved or replaced.`);
}
