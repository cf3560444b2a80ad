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
  /** Markers, by device and inode. */
  readonly markers: ReadonlySet<string>;
  /** Directories in which the command can create nothing, by device and inode. */
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
    markers: new Set(stores.marked.flatMap((directory) => markerInode(directory) ?? [])),
    closed: new Set([...hidden, ...covered].flatMap((directory) => inodeAt(directory) ?? [])),
    sinceMs: stores.isPartial ? undefined : BigInt(startedMs - CLOCK_SLACK_MS),
  };
}

/** Removes the markers in these roots that a command has written, which has ended. */
export async function removePlanted(roots: readonly string[], before: Before): Promise<Planted> {
  const removed: string[] = [];
  const left: string[] = [];
  try {
    // Below a directory with a marker nothing is searched, so it is searched when its marker is gone.
    for (let places = roots; places.length > 0; ) {
      const planted = plantedAmong(await storesIn(places), before);
      places = planted.filter((directory) => isRemoved(directory));
      removed.push(...places);
      left.push(...planted.filter((directory) => !places.includes(directory)));
    }
  } catch (error) {
    return { removed, left, flaw: (error as Error).message };
  }
  return { removed, left };
}

function plantedAmong({ marked }: Stores, { markers, closed, sinceMs }: Before): readonly string[] {
  return [...new Set(marked)].filter((directory) => {
    const status = entryOf(directory);
    const marker = status && markerIn(directory, status);
    if (status === undefined || marker === undefined || isInDataDirectory(directory)) return false;
    if (markers.has(inodeOf(marker)) || closed.has(inodeOf(status))) return false;
    return sinceMs === undefined || marker.ctimeMs >= sinceMs;
  });
}

/** Removes the marker from a directory, unless a link has taken the place of the directory: other commands may still run. */
function isRemoved(directory: string): boolean {
  try {
    return identified(directory, moved, (at) => {
      if (entryOf(join(at, DATA_MARKER))?.isFile()) unlinkSync(join(at, DATA_MARKER));
      return true;
    });
  } catch {
    return false;
  }
}

function moved(path: string): Error {
  return refusal(`${path} was moved or replaced.`);
}

function markerInode(directory: string): string | undefined {
  const status = entryOf(directory);
  const marker = status && markerIn(directory, status);
  return marker && inodeOf(marker);
}
