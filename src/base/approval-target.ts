/** Targets of approvals: whether what a call would act on now is what was approved. */
import type { ApprovalTarget } from '../protocol/approval.js';
import { escapeForDisplay } from './escape-text.js';

const MAX_PATH_CHARS = 1000;

/** How the target that was found differs from the approved one, as the end of a sentence; undefined if it does not. */
export function targetDifference(
  approved: ApprovalTarget | undefined,
  found: ApprovalTarget | undefined,
): string | undefined {
  if (approved === undefined && found === undefined) return undefined;
  if (approved === undefined) return 'its approval does not say what it acts on';
  if (found === undefined) return `it no longer acts on ${displayText(approved.path)}`;
  if (approved.path !== found.path || approved.kind !== found.kind)
    return `${displayText(approved.path)} was approved, and it would act on ${displayText(found.path)}`;
  if (approved.sha256 !== found.sha256)
    return `${displayText(approved.path)} was approved with the SHA-256 ${displayText(approved.sha256)}, and now has ${displayText(found.sha256)}`;
  if (approved.confinement !== found.confinement)
    return `it was approved ${displayText(approved.confinement)}, and would run ${displayText(found.confinement)}`;
  return undefined;
}

/** A target as it is journaled, or undefined for a value that is none. */
export function parseTarget(value: unknown): ApprovalTarget | undefined {
  const { kind, path, sha256, confinement, isNew, isLinked } = (value ?? {}) as Partial<Record<string, unknown>>;
  if ((kind !== 'program' && kind !== 'file' && kind !== 'directory') || typeof path !== 'string') return undefined;
  return {
    kind,
    path,
    ...(typeof sha256 === 'string' && { sha256 }),
    ...(typeof confinement === 'string' && { confinement }),
    ...(isNew === true && { isNew }),
    ...(isLinked === true && { isLinked }),
  };
}

function displayText(part: string | undefined): string {
  return part === undefined ? 'unknown' : escapeForDisplay(part, MAX_PATH_CHARS);
}
