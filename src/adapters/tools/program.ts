/**
 * The entry file of a program as the target of an approval: its real path and the SHA-256 of its bytes. The target is
 * computed when an approval is requested, and again immediately before the program starts. The system, or the
 * interpreter of a script, reads the file by its path after that; its inode and change time show whether it was
 * replaced meanwhile. Files that the program loads itself, and the interpreter of a script, are not covered.
 */
import { createHash } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { targetDifference } from '../../base/approval-target.js';
import { LoopError } from '../../base/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';

/**
 * The minimum age of the last change of a file. Change times have a limited resolution, so a file that changed more
 * recently could change again with the same change time.
 */
const MIN_UNCHANGED_MS = 50;
const MAX_READ_ATTEMPTS = 40;

/** An entry file at the time it was read. */
interface ProgramFingerprint {
  readonly target: ApprovalTarget & { readonly sha256: string };
  /** Differs if the file was changed or replaced since, even if its bytes are the same again. */
  readonly changeStamp: string;
}

/**
 * Reads the approval target of a program. Throws TOOL_FAILED if the file cannot be read. `displayName` is its name in
 * messages.
 */
export async function programTargetOf(file: string, displayName: string): Promise<ProgramFingerprint['target']> {
  return (await readProgram(file, displayName)).target;
}

/**
 * Reads a program that is about to start. Waits until its last change is old enough for the next one to be detected.
 * Throws TOOL_NOT_ADMITTED if the file keeps changing, and TOOL_FAILED if it cannot be read.
 */
export async function fingerprintProgram(
  file: string,
  displayName: string,
  now: () => number = Date.now,
): Promise<ProgramFingerprint> {
  for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt++) {
    const { changedMs, ...program } = await readProgram(file, displayName);
    const ageMs = now() - changedMs;
    // guard: program-file-settled
    if (ageMs >= MIN_UNCHANGED_MS) return program;
    await setTimeout(Math.min(MIN_UNCHANGED_MS, MIN_UNCHANGED_MS - ageMs));
  }
  throw new LoopError('TOOL_NOT_ADMITTED', `${displayName} did not run: its file is being changed. Ask again.`, {
    path: file,
  });
}

/** Throws the error of `createError` if the file was changed, replaced or removed since it was read. */
export async function assertProgramUnchanged(
  { target, changeStamp }: ProgramFingerprint,
  createError: () => LoopError,
): Promise<void> {
  const status = await stat(target.path, { bigint: true }).catch(() => undefined);
  if (status === undefined || changeStampOf(status) !== changeStamp) throw createError();
}

/** Throws TOOL_NOT_ADMITTED if the current program is not the approved one. */
export function assertProgramApproved(approved: ApprovalTarget, current: ApprovalTarget, displayName: string): void {
  const difference = targetDifference(approved, current);
  if (difference === undefined) return;
  const message = `${displayName} did not run: ${difference}. Ask again.`;
  throw new LoopError('TOOL_NOT_ADMITTED', message, { path: current.path });
}

async function readProgram(
  file: string,
  displayName: string,
): Promise<ProgramFingerprint & { readonly changedMs: number }> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const hash = createHash('sha256');
      for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
      // Read after the bytes, so that a change while they were read shows in the change time.
      const status = await handle.stat({ bigint: true });
      const target = { kind: 'program', path: file, sha256: hash.digest('hex') } as const;
      return { target, changeStamp: changeStampOf(status), changedMs: Number(status.ctimeMs) };
    } finally {
      await handle.close();
    }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    const message = `${displayName} cannot be read (${code}), so it cannot be approved; make the file readable.`;
    throw new LoopError('TOOL_FAILED', message, undefined, error);
  }
}

function changeStampOf({ dev, ino, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${/* guard: change-time-in-stamp */ ctimeNs}`;
}
