/**
 * A sandboxed command sees all that appears in its roots while it runs. So it announces what it sees and what of it it hides
 * (base/announcement.ts) before it looks for stores; a process that creates a store announces that and waits for the command. A
 * creation that is under way already is waited for here. What the command leaves that only a store may write is removed before
 * the announcement ends.
 */
import { setTimeout } from 'node:timers/promises';
import { type Announced, Announcement, announcements, isTrusted } from '../../base/announcement.js';
import { DATA_MARKER } from '../../journal/store-files.js';
import type { Answer } from './box.js';
import { type Mounts, mountsOf, placesOf } from './mounts.js';
import { mountPointsIn } from './other-names.js';
import { beforeCommand, type Planted, removePlanted } from './planted.js';
import { refusal } from './refusal.js';
import type { Roots } from './roots.js';
import { inodeAt } from './store-files.js';

const POLL_MS = 20;
/** A name could be held for ever; this bounds what that costs. */
const PATIENCE_MS = 10_000;
/** Bounds the names that one command holds. A store in a directory that is not announced as hidden waits for the command. */
const MAX_HIDDEN = 200;
/** Bounds what a note names. */
const MAX_NAMED = 5;

/** Runs a sandboxed command while no store is created in what it sees. */
export async function runExposed(
  roots: Roots,
  abort: AbortSignal | undefined,
  command: (mounts: Mounts) => Promise<Answer>,
): Promise<Answer> {
  const announcement = new Announcement();
  try {
    const places = placesOf(roots.all);
    // What is mounted in a root has another parent elsewhere.
    const seen = inodesOf([...places, ...mountPointsIn(places)]);
    // guard: command-announced
    await announce(() => announcement.add('command', seen));
    // guard: command-waits-for-store-creation
    await creationsEnded(new Set(seen), roots, abort);
    const startedMs = Date.now();
    const mounts = await mountsOf(roots.all);
    if (inodesOf(places).some((inode) => !seen.includes(inode))) throw moved(roots.all);
    await announce(async () => {
      // guard: hidden-directories-announced
      await announcement.add('hides', inodesOf(mounts.hidden).slice(0, MAX_HIDDEN));
      await announcement.add('covers', inodesOf(mounts.covered).slice(0, MAX_HIDDEN));
    });
    return await cleaned(roots, beforeCommand(mounts, startedMs), () => command(mounts));
  } finally {
    announcement.release();
  }
}

function moved(roots: readonly string[]): Error {
  return refusal(
    `Nothing was run: one of ${roots.join(', ')} was moved or replaced while the sandbox was set up. Try again.`,
  );
}

async function announce(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refusal(`Nothing was run: the command cannot be announced to other processes (${code}).`, {}, error);
  }
}

/** Waits until no store is being created in these directories. */
export async function creationsEnded(
  seen: ReadonlySet<string>,
  roots: Pick<Roots, 'all'>,
  abort: AbortSignal | undefined,
  patienceMs: number = PATIENCE_MS,
): Promise<void> {
  const isSeen = (announced: Announced): boolean =>
    announced.kind === 'store' && seen.has(announced.directory) && isTrusted(announced);
  for (const begun = performance.now(); ; ) {
    abort?.throwIfAborted();
    const creation = announcements().find(isSeen);
    if (creation === undefined) return;
    if (performance.now() - begun > patienceMs) {
      throw refusal(
        `Nothing was run: process ${creation.pid} has been creating a store in ${roots.all.join(', ')} for ${patienceMs / 1000} seconds, ` +
          'and a command would see it. Try again; if that does not help, let the operator end that process.',
      );
    }
    await setTimeout(POLL_MS);
  }
}

/** Runs a command, and removes what it must not leave, however it ends. */
async function cleaned(
  roots: Roots,
  before: ReturnType<typeof beforeCommand>,
  command: () => Promise<Answer>,
): Promise<Answer> {
  let answer: Answer;
  try {
    answer = await command();
  } catch (error) {
    await removePlanted(roots.all, before);
    throw error;
  }
  const notes = [answer.note, ...notesOf(await removePlanted(roots.all, before), roots)].filter((note) => note);
  return notes.length === 0 ? answer : { ...answer, note: notes.join(' ') };
}

function notesOf({ removed, left, flaw }: Planted, roots: Roots): readonly string[] {
  const named = (directories: readonly string[]): string => {
    const files = directories.slice(0, MAX_NAMED).map((directory) => roots.shown(`${directory}/${DATA_MARKER}`));
    return `${files.join(', ')}${directories.length > MAX_NAMED ? ` and ${directories.length - MAX_NAMED} more` : ''}`;
  };
  const why = `a file of this name closes its directory to all tools, and only Rondo may create it`;
  return [
    ...(removed.length === 0 ? [] : [`It created ${named(removed)}, which was removed: ${why}.`]),
    ...(left.length === 0
      ? []
      : [`It created ${named(left)}, which could not be removed: ${why}. Let the operator remove it.`]),
    ...(flaw === undefined ? [] : [`What it created could not be searched for the file ${DATA_MARKER}: ${flaw}`]),
  ];
}

function inodesOf(paths: readonly string[]): readonly string[] {
  return paths.flatMap((path) => inodeAt(path) ?? []);
}
