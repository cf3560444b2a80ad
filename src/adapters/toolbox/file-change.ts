/**
 * Previews and applies the change of one file. A person approves the diff of the preview; the change may be applied
 * much later. Both use the same transform from the old content to the new, which throws if the change no longer fits
 * the file.
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

/** The maximum size of an existing file, in bytes, and of its new content, in UTF-16 code units. */
export const MAX_WRITE_BYTES = 4 * 1024 * 1024;

/**
 * Returns the new content of a file. `current` is the old content; undefined if the file does not exist. Throws if the
 * change does not fit it.
 */
export type ContentTransform = (current: Buffer | undefined) => string;

/** The path of a changed file for display, and the diff. */
type FileChange = { readonly path: string; readonly diff: string };

interface ExistingFile {
  readonly bytes: Buffer;
  readonly stats: Stats;
}

/** Returns the diff of a change without making it. */
export async function previewChange(roots: Roots, path: string, transform: ContentTransform): Promise<FileChange> {
  const { real, missing } = await roots.nearestExisting(path);
  const current =
    missing.length > 0 ? undefined : await roots.open(path, 'file', (opened) => readExistingFile(opened, path));
  return describeChange(roots.displayPath(join(real, ...missing)), current?.bytes, transform(current?.bytes));
}

/**
 * Makes a change, and creates missing directories. With an approval, throws TOOL_NOT_ADMITTED if the path leads to
 * another file than the approved one, or if a file that was approved as new exists with other content.
 */
export async function applyChange(
  roots: Roots,
  path: string,
  transform: ContentTransform,
  approved?: ApprovalTarget,
): Promise<FileChange> {
  // A change that does not fit must not leave new directories behind.
  await previewChange(roots, path, transform);
  return roots.openLocation(path, approved, (location) =>
    runExclusive(location.realPath, async () => {
      const current = await roots
        .openWithin(location.directory, location.name, 'file', (opened) => readExistingFile(opened, path))
        .catch(undefinedIfMissing);
      const text = transform(current?.bytes);
      // guard: new-file-replaces-nothing
      assertStillNew(path, approved, current?.bytes, text);
      await replaceFile(roots, location, path, text, current?.stats);
      return describeChange(roots.displayPath(location.realPath), current?.bytes, text);
    }),
  );
}

/**
 * Throws TOOL_NOT_ADMITTED if a file was approved as new but exists. A file with the new content is accepted: an
 * earlier attempt of the same call may have written it.
 */
function assertStillNew(
  path: string,
  approved: ApprovalTarget | undefined,
  current: Buffer | undefined,
  text: string,
): void {
  if (approved?.isNew !== true || current === undefined || current.equals(Buffer.from(text))) return;
  throw notApprovedError(`${quotePath(path)} was approved as a new file, but has been created since`);
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

function describeChange(path: string, current: Buffer | undefined, text: string): FileChange {
  const before = current === undefined ? undefined : decodeUtf8(current);
  if (current === undefined || before !== undefined) return { path, diff: unifiedDiff(path, before, text) };
  return {
    path,
    diff: `(in place of ${current.length} bytes that are not text)\n${unifiedDiff(path, undefined, text)}`,
  };
}
