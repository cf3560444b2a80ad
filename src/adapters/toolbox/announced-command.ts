/**
 * Runs a sandboxed command so that no store is created where the command could read it. The directories that the
 * command sees are announced to other processes (base/announcement.ts) before stores are searched for; those that its
 * sandbox hides are announced after the search. A process that creates a store in a visible directory waits for the end
 * of the command. If a store is already being created there, the command waits. Data markers (files that close their
 * directory to all tools) that the command creates are removed before its announcement ends.
 */
import { setTimeout } from 'node:timers/promises';
import {
  type AnnouncedDirectory,
  Announcement,
  isTrustedAnnouncement,
  listAnnouncements,
} from '../../base/announcement.js';
import { DATA_MARKER } from '../../journal/store-files.js';
import { mountPointsIn } from './aliases.js';
import { type MarkerCleanup, removeCommandMarkers, stateBeforeCommand } from './command-markers.js';
import type { ToolOutput } from './define-tool.js';
import { mountsFor, type SandboxMounts, searchRootsOf } from './mounts.js';
import type { Roots } from './roots.js';
import { inodeAt } from './store-protection.js';
import { toolError } from './tool-error.js';

const POLL_INTERVAL_MS = 20;
/** The maximum wait for the creation of a store. A process may never release its announcement. */
const MAX_CREATION_WAIT_MS = 10_000;
/**
 * The maximum number of announced directories of each of the kinds `hides` and `covers`. A process that creates a store
 * in a hidden directory that is not announced waits for the command, as for a visible one.
 */
const MAX_ANNOUNCED_DIRECTORIES = 200;
/** The maximum number of files that a note to the model lists. */
const MAX_LISTED_FILES = 5;

/**
 * Runs a sandboxed command while no other process creates a store in the directories it sees. Throws TOOL_FAILED, and
 * runs nothing, if the command cannot be announced, a store is still being created there after ten seconds, or the
 * mounts cannot be computed.
 */
export async function runAnnouncedCommand(
  roots: Roots,
  abort: AbortSignal | undefined,
  command: (mounts: SandboxMounts) => Promise<ToolOutput>,
): Promise<ToolOutput> {
  const announcement = new Announcement();
  try {
    const searchRoots = searchRootsOf(roots.realPaths);
    // The creator of a store looks for announcements of its parent directories. A mounted directory can have other
    // parents outside of the sandbox, so mount points are announced too.
    const visibleInodes = inodesOf([...searchRoots, ...mountPointsIn(searchRoots)]);
    // guard: command-announced
    await announceOrRefuse(() => announcement.add('command', visibleInodes));
    // guard: command-waits-for-store-creation
    await waitForStoreCreations(new Set(visibleInodes), roots, abort);
    const startedMs = Date.now();
    const mounts = await mountsFor(roots.realPaths);
    if (inodesOf(searchRoots).some((inode) => !visibleInodes.includes(inode))) throw rootMovedError(roots.realPaths);
    await announceOrRefuse(async () => {
      // guard: hidden-directories-announced
      await announcement.add('hides', inodesOf(mounts.hiddenDirectories).slice(0, MAX_ANNOUNCED_DIRECTORIES));
      await announcement.add('covers', inodesOf(mounts.coveredDirectories).slice(0, MAX_ANNOUNCED_DIRECTORIES));
    });
    return await runAndRemoveMarkers(roots, stateBeforeCommand(mounts, startedMs), () => command(mounts));
  } finally {
    announcement.release();
  }
}

function rootMovedError(roots: readonly string[]): Error {
  return toolError(
    `Nothing was run: one of ${roots.join(', ')} was moved or replaced while the sandbox was set up. Try again.`,
  );
}

async function announceOrRefuse(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw toolError(`Nothing was run: the command cannot be announced to other processes (${code}).`, {}, error);
  }
}

/**
 * Waits until no store is being created in directories with these inodes. Throws TOOL_FAILED after `maxWaitMs`, and the
 * reason of the signal if it aborts.
 */
export async function waitForStoreCreations(
  visibleInodes: ReadonlySet<string>,
  roots: Pick<Roots, 'realPaths'>,
  abort: AbortSignal | undefined,
  maxWaitMs: number = MAX_CREATION_WAIT_MS,
): Promise<void> {
  const isVisibleCreation = (announced: AnnouncedDirectory): boolean =>
    announced.kind === 'store' && visibleInodes.has(announced.directory) && isTrustedAnnouncement(announced);
  for (const startedMs = performance.now(); ; ) {
    abort?.throwIfAborted();
    const creation = listAnnouncements().find(isVisibleCreation);
    if (creation === undefined) return;
    if (performance.now() - startedMs > maxWaitMs) {
      throw toolError(
        `Nothing was run: process ${creation.pid} has been creating a store in ${roots.realPaths.join(', ')} for ${maxWaitMs / 1000} seconds, ` +
          'and a command would see it. Try again; if that does not help, ask the operator to end that process.',
      );
    }
    await setTimeout(POLL_INTERVAL_MS);
  }
}

/**
 * Runs a command and removes the data markers it leaves, whether it succeeds or not. If it succeeds, notes in its
 * output list them.
 */
async function runAndRemoveMarkers(
  roots: Roots,
  before: ReturnType<typeof stateBeforeCommand>,
  command: () => Promise<ToolOutput>,
): Promise<ToolOutput> {
  let output: ToolOutput;
  try {
    output = await command();
  } catch (error) {
    await removeCommandMarkers(roots.realPaths, before);
    throw error;
  }
  const notes = [output.note, ...markerNotesOf(await removeCommandMarkers(roots.realPaths, before), roots)].filter(
    (note) => note,
  );
  return notes.length === 0 ? output : { ...output, note: notes.join(' ') };
}

function markerNotesOf({ removed, notRemoved, problem }: MarkerCleanup, roots: Roots): readonly string[] {
  const listFiles = (directories: readonly string[]): string => {
    const files = directories
      .slice(0, MAX_LISTED_FILES)
      .map((directory) => roots.displayPath(`${directory}/${DATA_MARKER}`));
    return `${files.join(', ')}${directories.length > MAX_LISTED_FILES ? ` and ${directories.length - MAX_LISTED_FILES} more` : ''}`;
  };
  const reason = 'a file of this name closes its directory to all tools, and only Rondo may create it';
  return [
    ...(removed.length === 0 ? [] : [`It created ${listFiles(removed)}, which was removed: ${reason}.`]),
    ...(notRemoved.length === 0
      ? []
      : [`It created ${listFiles(notRemoved)}, which could not be removed: ${reason}. Ask the operator to remove it.`]),
    ...(problem === undefined ? [] : [`The roots could not be searched for the file ${DATA_MARKER}: ${problem}`]),
  ];
}

function inodesOf(paths: readonly string[]): readonly string[] {
  return paths.flatMap((path) => inodeAt(path) ?? []);
}
