/**
 * A sandboxed command sees all that appears in its roots while it runs. So it announces what it sees and what of it it hides
 * (base/announcement.ts) before it looks for stores; a process that creates a store announces that and waits for the command. A
 * creation that is under way already is waited for here. What the command leaves that only a store may write is removed before
 * the announcement ends.
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
/** A name could be held for ever; this bounds what that costs. */
const MAX_CREATION_WAIT_MS = 10_000;
/** Bounds the names that one command holds. A store in a directory that is not announced as hidden waits for the command. */
const MAX_ANNOUNCED_DIRECTORIES = 200;
/** Bounds what a note names. */
const MAX_LISTED_FILES = 5;

/** Runs a sandboxed command while no store is created in what it sees. */
export async function runAnnouncedCommand(
  roots: Roots,
  abort: AbortSignal | undefined,
  command: (mounts: SandboxMounts) => Promise<ToolOutput>,
): Promise<ToolOutput> {
  const announcement = new Announcement();
  try {
    const places = searchRootsOf(roots.realPaths);
    // What is mounted in a root has another parent elsewhere.
    const seen = inodesOf([...places, ...mountPointsIn(places)]);
    // guard: command-announced
    await announceOrRefuse(() => announcement.add('command', seen));
    // guard: command-waits-for-store-creation
    await waitForStoreCreations(new Set(seen), roots, abort);
    const startedMs = Date.now();
    const mounts = await mountsFor(roots.realPaths);
    if (inodesOf(places).some((inode) => !seen.includes(inode))) throw rootMovedError(roots.realPaths);
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

/** Waits until no store is being created in these directories. */
export async function waitForStoreCreations(
  seen: ReadonlySet<string>,
  roots: Pick<Roots, 'realPaths'>,
  abort: AbortSignal | undefined,
  patienceMs: number = MAX_CREATION_WAIT_MS,
): Promise<void> {
  const isSeen = (announced: AnnouncedDirectory): boolean =>
    announced.kind === 'store' && seen.has(announced.directory) && isTrustedAnnouncement(announced);
  for (const begun = performance.now(); ; ) {
    abort?.throwIfAborted();
    const creation = listAnnouncements().find(isSeen);
    if (creation === undefined) return;
    if (performance.now() - begun > patienceMs) {
      throw toolError(
        `Nothing was run: process ${creation.pid} has been creating a store in ${roots.realPaths.join(', ')} for ${patienceMs / 1000} seconds, ` +
          'and a command would see it. Try again; if that does not help, let the operator end that process.',
      );
    }
    await setTimeout(POLL_INTERVAL_MS);
  }
}

/** Runs a command, and removes what it must not leave, however it ends. */
async function runAndRemoveMarkers(
  roots: Roots,
  before: ReturnType<typeof stateBeforeCommand>,
  command: () => Promise<ToolOutput>,
): Promise<ToolOutput> {
  let answer: ToolOutput;
  try {
    answer = await command();
  } catch (error) {
    await removeCommandMarkers(roots.realPaths, before);
    throw error;
  }
  const notes = [answer.note, ...markerNotesOf(await removeCommandMarkers(roots.realPaths, before), roots)].filter(
    (note) => note,
  );
  return notes.length === 0 ? answer : { ...answer, note: notes.join(' ') };
}

function markerNotesOf({ removed, notRemoved, problem }: MarkerCleanup, roots: Roots): readonly string[] {
  const named = (directories: readonly string[]): string => {
    const files = directories
      .slice(0, MAX_LISTED_FILES)
      .map((directory) => roots.displayPath(`${directory}/${DATA_MARKER}`));
    return `${files.join(', ')}${directories.length > MAX_LISTED_FILES ? ` and ${directories.length - MAX_LISTED_FILES} more` : ''}`;
  };
  const why = `a file of this name closes its directory to all tools, and only Rondo may create it`;
  return [
    ...(removed.length === 0 ? [] : [`It created ${named(removed)}, which was removed: ${why}.`]),
    ...(notRemoved.length === 0
      ? []
      : [`It created ${named(notRemoved)}, which could not be removed: ${why}. Let the operator remove it.`]),
    ...(problem === undefined ? [] : [`What it created could not be searched for the file ${DATA_MARKER}: ${problem}`]),
  ];
}

function inodesOf(paths: readonly string[]): readonly string[] {
  return paths.flatMap((path) => inodeAt(path) ?? []);
}
