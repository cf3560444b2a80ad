/**
 * A change of one file: foreseen, so that a person sees the diff before anything happens, and performed. Both follow the
 * same plan from what is there to what shall be there. Days may lie between: a plan that no longer fits refuses.
 */
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { diffOf } from './diff.js';
import { contentsOf } from './read.js';
import { named, notApproved, refusal } from './refusal.js';
import { inTurn, replaceAt } from './replace.js';
import type { Opened, Roots } from './roots.js';
import { exactText } from './text.js';

/** The largest file that is written or edited. */
export const LARGEST = 4 * 1024 * 1024;

/** What there is, or undefined if there is no file; what shall be there, or a refusal. */
export type Plan = (present: Buffer | undefined) => string;

export type Change = { readonly path: string; readonly diff: string };

interface Present {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

/** What the change would do. Touches nothing. */
export async function foreseen(roots: Roots, path: string, plan: Plan): Promise<Change> {
  const { real, missing } = await roots.nearest(path);
  const present = missing.length > 0 ? undefined : await roots.open(path, 'file', (opened) => presentIn(opened, path));
  return changeOf(roots.shown(join(real, ...missing)), present?.bytes, plan(present?.bytes));
}

/** Does it, if the plan still fits; an approved change only to the file that was approved. */
export async function performed(roots: Roots, path: string, plan: Plan, approved?: ApprovalTarget): Promise<Change> {
  // A plan that does not fit must not leave new directories behind.
  await foreseen(roots, path, plan);
  return roots.spot(path, approved, (spot) =>
    inTurn(spot.real, async () => {
      const present = await roots
        .within(spot.directory, spot.name, 'file', (opened) => presentIn(opened, path))
        .catch(missingFile);
      const text = plan(present?.bytes);
      // guard: new-file-replaces-nothing
      assertNew(path, approved, present?.bytes, text);
      await replaceAt(roots, spot, path, text, present?.stats);
      return changeOf(roots.shown(spot.real), present?.bytes, text);
    }),
  );
}

/** A file that was approved as a new one replaces nothing but what an earlier attempt of the same call has written. */
function assertNew(
  path: string,
  approved: ApprovalTarget | undefined,
  present: Buffer | undefined,
  text: string,
): void {
  if (approved?.isNew !== true || present === undefined || present.equals(Buffer.from(text))) return;
  throw notApproved(`${named(path)} was approved as a new file, and was created since`);
}

async function presentIn(opened: Opened, path: string): Promise<Present> {
  const { bytes, more } = await contentsOf(opened, LARGEST);
  if (!more) return { bytes, stats: opened.stats };
  throw refusal(`${named(path)} is larger than ${LARGEST} bytes; use run_command to change it.`);
}

function missingFile(error: unknown): undefined {
  const { cause } = error instanceof LoopError ? error : {};
  if ((cause as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT') throw error;
}

function changeOf(path: string, present: Buffer | undefined, text: string): Change {
  const before = present === undefined ? undefined : exactText(present);
  if (present === undefined || before !== undefined) return { path, diff: diffOf(path, before, text) };
  return { path, diff: `(in place of ${present.length} bytes that are not text)\n${diffOf(path, undefined, text)}` };
}
