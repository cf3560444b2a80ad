/**
 * Refuses plans that retry a tool with the safety `once`. A retry of a step is another call, so it would repeat what may
 * happen only once. A tool that is not registered yet is checked when a turn of the plan starts.
 */
import { LoopError } from '../../base/errors.js';
import type { LoopDef } from '../../protocol/loop.js';
import { DefinitionIssues } from '../definition/shape.js';
import { planCallees } from './plan.js';

/** A loop, as far as this check needs it. */
interface CheckedLoop {
  readonly definition: LoopDef;
  readonly origin: { readonly file?: string | undefined };
}

/** Returns DEFINITION_INVALID if a plan retries a `once` tool; undefined for every other loop. */
export function retriedOnceTool(
  { definition: { id, composite }, origin }: CheckedLoop,
  find: (loopId: string, version?: string) => CheckedLoop | undefined,
): LoopError | undefined {
  if (composite?.plan === undefined) return undefined;
  const issues = new DefinitionIssues();
  for (const { loopId, version, where, isRetried } of planCallees(id, composite.plan)) {
    const callee = isRetried ? find(loopId, version)?.definition : undefined;
    if (callee?.kind !== 'tool' || (callee.tool?.safety ?? 'once') !== 'once') continue;
    const path = `${where.slice(id.length + 2)}/retry`;
    const reason =
      `repeats the tool "${loopId}", whose safety is "once", which is the default; if the tool may run again, declare ` +
      'its "safety" as "keyed", "idempotent" or "pure", else give the step "retry": { "strategy": "none" }';
    const message = `${origin.file ?? `"${id}"`}: ${path} ${reason}.`;
    issues.addError(new LoopError('DEFINITION_INVALID', message, { path, reason }));
  }
  return issues.addedError();
}
