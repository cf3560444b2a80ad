/**
 * Removes the data markers that a sandboxed command has written. A marker closes its directory to all tools, and only
 * Rondo may write one. Rondo itself marks no directory that a running command sees: the creation of a store waits until
 * the command has ended (see sqlite/sandbox-exposure.ts). A marker in a known data directory is kept, and so is an
 * older one that another process may have moved into the roots (see `earliestMarkerAt`).
 */
import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_MARKER, isInDataDirectory } from '../../journal/store-files.js';
import { type FoundStores, findStores } from './find-stores.js';
import { withPathDescriptor } from './mount-sources.js';
import type { SandboxMounts } from './mounts.js';
import { inodeAt, inodeOf, lstatOrUndefined, markerIn } from './store-protection.js';
import { toolError } from './tool-error.js';

/** The state of the roots before a command. */
interface StateBeforeCommand {
  /** The inodes of directories in which the command can create nothing, including data directories. */
  readonly unwritableInodes: ReadonlySet<string>;
  /**
   * The change time, in milliseconds since 1970, from which on a marker counts as the command's. An older one was moved
   * into the roots and is kept. Undefined if not every directory could be read: an older marker may then have been
   * there unnoticed, so markers of any age are removed.
   */
  readonly earliestMarkerAt: bigint | undefined;
}

/** The directories in which a command left markers. */
export interface MarkerCleanup {
  readonly removed: readonly string[];
  /** The directories whose marker could not be removed. */
  readonly notRemoved: readonly string[];
  /** The reason why the roots could not be searched completely. */
  readonly problem?: string;
}

/** The tolerance for timestamps of files: file systems use a coarse clock. */
const CLOCK_SLACK_MS = 1000;

/**
 * Records the state of the roots before a command.
 * @param startedMs the time at which the search for stores began.
 */
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

/**
 * Removes the markers in these roots that a command has written. The command must have ended. Does not throw: the
 * result states problems.
 */
export async function removeCommandMarkers(
  roots: readonly string[],
  before: StateBeforeCommand,
): Promise<MarkerCleanup> {
  const removed = new Set<string>();
  const notRemoved: string[] = [];
  try {
    // A search does not descend into a marked directory, so it is searched after its marker has been removed.
    for (let directories = roots; directories.length > 0; ) {
      const marked = findCommandMarkers(await findStores(directories), before);
      // Another command may rewrite a marker repeatedly; its markers are removed when it ends.
      directories = marked.filter((directory) => !removed.has(directory) && tryRemoveMarker(directory, notRemoved));
      for (const directory of directories) removed.add(directory);
    }
  } catch (error) {
    return { removed: [...removed], notRemoved, problem: (error as Error).message };
  }
  return { removed: [...removed], notRemoved };
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

/**
 * Removes the marker from a directory and returns true. If it cannot be removed, adds the directory to `notRemoved` and
 * returns false, for example if another command has replaced the directory by a link.
 */
function tryRemoveMarker(directory: string, notRemoved: string[]): boolean {
  try {
    return withPathDescriptor(directory, directoryMovedError, (descriptorPath) => {
      const marker = join(descriptorPath, DATA_MARKER);
      // guard: planted-marker-removed
      if (lstatOrUndefined(marker)?.isFile()) unlinkSync(marker);
      return true;
    });
  } catch {
    notRemoved.push(directory);
    return false;
  }
}

function directoryMovedError(path: string): Error {
  return toolError(`${path} was moved or replaced.`);
}
