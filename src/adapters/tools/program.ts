/**
 * The entry file of a tool's program as the target of an approval: its real path and the SHA-256 of its bytes. It is
 * computed when an approval is requested and again immediately before the program is started. Files that the program
 * loads itself, and the interpreter of a script, are not covered.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { targetDifference } from '../../base/target.js';
import { LoopError } from '../../journal/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';

/** The program in this file, as it is on the disk now; `named` is how its definition names it. */
export async function programAt(file: string, named: string): Promise<ApprovalTarget & { readonly sha256: string }> {
  return { kind: 'program', path: file, sha256: await sha256Of(file, named) };
}

/** Refuses a program that is not the approved one. */
export function assertProgram(approved: ApprovalTarget, found: ApprovalTarget, named: string): void {
  const difference = targetDifference(approved, found);
  if (difference === undefined) return;
  throw new LoopError('TOOL_NOT_ADMITTED', `${named} did not run: ${difference}. Ask again.`, { path: found.path });
}

async function sha256Of(file: string, named: string): Promise<string> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const hash = createHash('sha256');
      for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece as Buffer);
      return hash.digest('hex');
    } finally {
      await handle.close();
    }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    const message = `${named} cannot be read (${code}), so it cannot be approved; make the file readable.`;
    throw new LoopError('TOOL_FAILED', message, undefined, error);
  }
}
