/**
 * The entry file of a tool's program as the target of an approval: its real path and the SHA-256 of its bytes. It is
 * computed when an approval is requested and again immediately before the program is started. The system, and the interpreter
 * of a script, read the file after that, by its path; whether it was replaced meanwhile is told by its inode and change time.
 * Files that the program loads itself, and the interpreter of a script, are not covered.
 */
import { createHash } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { targetDifference } from '../../base/approval-target.js';
import { LoopError } from '../../base/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';

/** A file that changed more recently could change again without another change time. */
const MIN_UNCHANGED_MS = 50;
const MAX_READ_ATTEMPTS = 40;

/** An entry file as it was read, and what shows whether it was changed or replaced since, even if it has its old bytes again. */
export interface ProgramFingerprint {
  readonly target: ApprovalTarget & { readonly sha256: string };
  readonly changeStamp: string;
}

/** The program in this file, as it is on the disk now; `named` is how its definition names it. */
export async function programTargetOf(file: string, named: string): Promise<ProgramFingerprint['target']> {
  return (await readProgram(file, named)).target;
}

/** The same for a start: read when its last change was long enough ago for the next one to show. */
export async function fingerprintProgram(
  file: string,
  named: string,
  now: () => number = Date.now,
): Promise<ProgramFingerprint> {
  for (let attempt = 0; attempt < MAX_READ_ATTEMPTS; attempt++) {
    const { changedMs, ...program } = await readProgram(file, named);
    const age = now() - changedMs;
    // guard: program-file-settled
    if (age >= MIN_UNCHANGED_MS) return program;
    await setTimeout(Math.min(MIN_UNCHANGED_MS, MIN_UNCHANGED_MS - age));
  }
  throw new LoopError('TOOL_NOT_ADMITTED', `${named} did not run: its file is being changed. Ask again.`, {
    path: file,
  });
}

/** Refuses a file that was changed or replaced since it was read. */
export async function assertProgramUnchanged(
  { target, changeStamp }: ProgramFingerprint,
  refusal: () => LoopError,
): Promise<void> {
  const now = await stat(target.path, { bigint: true }).catch(() => undefined);
  if (now === undefined || changeStampOf(now) !== changeStamp) throw refusal();
}

/** Refuses a program that is not the approved one. */
export function assertProgramApproved(approved: ApprovalTarget, found: ApprovalTarget, named: string): void {
  const difference = targetDifference(approved, found);
  if (difference === undefined) return;
  throw new LoopError('TOOL_NOT_ADMITTED', `${named} did not run: ${difference}. Ask again.`, { path: found.path });
}

async function readProgram(file: string, named: string): Promise<ProgramFingerprint & { readonly changedMs: number }> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const hash = createHash('sha256');
      for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece as Buffer);
      // After the bytes: a change while they were read shows here.
      const status = await handle.stat({ bigint: true });
      const target = { kind: 'program', path: file, sha256: hash.digest('hex') } as const;
      return { target, changeStamp: changeStampOf(status), changedMs: Number(status.ctimeMs) };
    } finally {
      await handle.close();
    }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    const message = `${named} cannot be read (${code}), so it cannot be approved; make the file readable.`;
    throw new LoopError('TOOL_FAILED', message, undefined, error);
  }
}

function changeStampOf({ dev, ino, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${/* guard: change-time-in-stamp */ ctimeNs}`;
}
