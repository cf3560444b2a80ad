/**
 * A change of one file: foreseen, so that a person sees the diff before anything happens, and performed. Both follow the
 * same plan from what is there to what shall be there. Days may lie between: a plan that no longer fits refuses.
 */
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { unifiedDiff } from './diff.js';
import { readContents } from './read-contents.js';
import { replaceFile, runExclusive } from './replace-file.js';
import type { OpenPath, Roots } from './roots.js';
import { decodeUtf8 } from './text.js';
import { notApprovedError, quotePath, toolError } from './tool-error.js';

/** The largest file that is written or edited. */
export const MAX_WRITE_BYTES = 4 * 1024 * 1024;

/** What there is, or undefined if there is no file; what shall be there, or a refusal. */
export type ContentTransform = (present: Buffer | undefined) => string;

export type FileChange = { readonly path: string; readonly diff: string };

interface ExistingFile {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

/** What the change would do. Touches nothing. */
export async function previewChange(roots: Roots, path: string, plan: ContentTransform): Promise<FileChange> {
  const { real, missing } = await roots.nearestExisting(path);
  const present =
    missing.length > 0 ? undefined : await roots.open(path, 'file', (opened) => readExistingFile(opened, path));
  return describeChange(roots.displayPath(join(real, ...missing)), present?.bytes, plan(present?.bytes));
}

/** Does it, if the plan still fits; an approved change only to the file that was approved. */
export async function applyChange(
  roots: Roots,
  path: string,
  plan: ContentTransform,
  approved?: ApprovalTarget,
): Promise<FileChange> {
  // A plan that does not fit must not leave new directories behind.
  await previewChange(roots, path, plan);
  return roots.openLocation(path, approved, (spot) =>
    runExclusive(spot.realPath, async () => {
      const present = await roots
        .openWithin(spot.directory, spot.name, 'file', (opened) => readExistingFile(opened, path))
        .catch(undefinedIfMissing);
      const text = plan(present?.bytes);
      // guard: new-file-replaces-nothing
      assertStillNew(path, approved, present?.bytes, text);
      await replaceFile(roots, spot, path, text, present?.stats);
      return describeChange(roots.displayPath(spot.realPath), present?.bytes, text);
    }),
  );
}

/** A file that was approved as a new one replaces nothing but what an earlier attempt of the same call has written. */
function assertStillNew(
  path: string,
  approved: ApprovalTarget | undefined,
  present: Buffer | undefined,
  text: string,
): void {
  if (approved?.isNew !== true || present === undefined || present.equals(Buffer.from(text))) return;
  throw notApprovedError(`${quotePath(path)} was approved as a new file, and was created since`);
}

async function readExistingFile(opened: OpenPath, path: string): Promise<ExistingFile> {
  const { bytes, isTruncated } = await readContents(opened, MAX_WRITE_BYTES);
  if (!isTruncated) return { bytes, stats: opened.stats };
  throw toolError(`${quotePath(path)} is larger than ${MAX_WRITE_BYTES} bytes; use run_command to change it.`);
}

function undefinedIfMissing(error: unknown): undefined {
  const { cause } = error instanceof LoopError ? error : {};
  if ((cause as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT') throw error;
}

function describeChange(path: string, present: Buffer | undefined, text: string): FileChange {
  const before = present === undefined ? undefined : decodeUtf8(present);
  if (present === undefined || before !== undefined) return { path, diff: unifiedDiff(path, before, text) };
  return {
    path,
    diff: `(in place of ${present.length} bytes that are not text)\n${unifiedDiff(path, undefined, text)}`,
  };
}
