/**
 * Markers of data directories that a sandboxed command has written. They would close directories to all tools, so they are removed when
 * the command has ended. Rondo itself marks no directory that a command sees: a store that is created waits until the command
 * has ended (see exposure.ts). A marker that may be another's work is left.
 */
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_MARKER, isInDataDirectory } from '../../journal/store-files.js';
import { type FoundStores, findStores } from './find-stores.js';
import { withPathDescriptor } from './mount-sources.js';
import type { SandboxMounts } from './mounts.js';
import { inodeAt, inodeOf, lstatOrUndefined, markerIn } from './store-protection.js';
import { toolError } from './tool-error.js';

/** What was there before a command. */
export interface StateBeforeCommand {
  /** Directories in which the command can create nothing, data directories among them, by device and inode. */
  readonly unwritableInodes: ReadonlySet<string>;
  /** Markers that are older were moved into the roots; undefined if they may have been there unseen. */
  readonly earliestMarkerAt: bigint | undefined;
}

/** Markers that a command left. */
export interface MarkerCleanup {
  readonly removed: readonly string[];
  /** Those that could not be removed. */
  readonly notRemoved: readonly string[];
  /** Why the roots could not be searched. */
  readonly problem?: string;
}

/** File systems take their time from a coarse clock. */
const CLOCK_SLACK_MS = 1000;

/** @param startedMs when the search began whose result this is. */
export function stateBeforeCommand(
  { stores, hiddenDirectories, coveredDirectories }: SandboxMounts,
  startedMs: number,
): StateBeforeCommand {
  return {
    unwritableInodes: new Set(
      [
        ...hiddenDirectories,
        /* guard: covered-store-keeps-marker */ ...coveredDirectories,
        ...stores.dataDirectories,
      ].flatMap((directory) => inodeAt(directory) ?? []),
    ),
    earliestMarkerAt: stores.isPartial ? undefined : BigInt(startedMs - CLOCK_SLACK_MS),
  };
}

/** Removes the markers in these roots that a command has written, which has ended. */
export async function removeCommandMarkers(
  roots: readonly string[],
  before: StateBeforeCommand,
): Promise<MarkerCleanup> {
  const removed = new Set<string>();
  const left: string[] = [];
  try {
    // Below a directory with a marker nothing is searched, so it is searched when its marker is gone.
    for (let places = roots; places.length > 0; ) {
      const planted = findCommandMarkers(await findStores(places), before);
      // Other commands may write the same marker again and again; theirs are removed when they end.
      places = planted.filter((directory) => !removed.has(directory) && tryRemoveMarker(directory, left));
      for (const directory of places) removed.add(directory);
    }
  } catch (error) {
    return { removed: [...removed], notRemoved: left, problem: (error as Error).message };
  }
  return { removed: [...removed], notRemoved: left };
}

function findCommandMarkers(
  { markedDirectories }: FoundStores,
  { unwritableInodes, earliestMarkerAt }: StateBeforeCommand,
): readonly string[] {
  return [...new Set(markedDirectories)].filter((directory) => {
    const status = lstatOrUndefined(directory);
    const marker = status && markerIn(directory, status);
    if (status === undefined || marker === undefined || isInDataDirectory(directory)) return false;
    // guard: known-data-directory-keeps-marker
    if (unwritableInodes.has(inodeOf(status))) return false;
    // guard: older-marker-kept
    return earliestMarkerAt === undefined || marker.ctimeMs >= earliestMarkerAt;
  });
}

/** Removes the marker from a directory, unless a link has taken the place of the directory: other commands may still run. */
function tryRemoveMarker(directory: string, left: string[]): boolean {
  try {
    return withPathDescriptor(directory, directoryMovedError, (at) => {
      // guard: planted-marker-removed
      if (lstatOrUndefined(join(at, DATA_MARKER))?.isFile()) unlinkSync(join(at, DATA_MARKER));
      return true;
    });
  } catch {
    left.push(directory);
    return false;
  }
}

function directoryMovedError(path: string): Error {
  return toolError(`${path} was moved or replaced.`);
}
