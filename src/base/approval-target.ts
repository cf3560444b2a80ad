/**
 * Targets of approvals, the files and directories that calls act on: parses journaled targets and compares the current
 * target of a call with the approved one.
 */
import type { ApprovalTarget } from '../protocol/approval.js';
import { escapeForDisplay } from './escape-text.js';

const MAX_PART_CHARS = 1000;

/**
 * Describes, as the end of a sentence, how the current target differs from the approved one; undefined if it does not.
 * Compares path, kind, digest and confinement, but not `isNew` and `isIndirect`.
 */
export function targetDifference(
  approved: ApprovalTarget | undefined,
  current: ApprovalTarget | undefined,
): string | undefined {
  if (approved === undefined && current === undefined) return undefined;
  if (approved === undefined) return 'its approval does not name a target';
  if (current === undefined) return `it no longer acts on ${displayText(approved.path)}`;
  if (approved.path !== current.path || approved.kind !== current.kind)
    return `${displayText(approved.path)} was approved, and it would act on ${displayText(current.path)}`;
  if (approved.sha256 !== current.sha256)
    return `${displayText(approved.path)} was approved with the SHA-256 ${displayText(approved.sha256)}, and now has ${displayText(current.sha256)}`;
  if (approved.confinement !== current.confinement)
    return `it was approved ${displayText(approved.confinement)}, and would run ${displayText(current.confinement)}`;
  return undefined;
}

/** Parses a journaled target. Returns undefined if the value is not one. */
export function parseTarget(value: unknown): ApprovalTarget | undefined {
  const { kind, path, sha256, confinement, isNew, isIndirect } = (value ?? {}) as Partial<Record<string, unknown>>;
  if ((kind !== 'program' && kind !== 'file' && kind !== 'directory') || typeof path !== 'string') return undefined;
  return {
    kind,
    path,
    ...(typeof sha256 === 'string' && { sha256 }),
    ...(typeof confinement === 'string' && { confinement }),
    ...(isNew === true && { isNew }),
    ...(isIndirect === true && { isIndirect }),
  };
}

/** Returns a path, digest or confinement for a message, escaped and bounded; `unknown` if it is absent. */
function displayText(part: string | undefined): string {
  return part === undefined ? 'unknown' : escapeForDisplay(part, MAX_PART_CHARS);
}
