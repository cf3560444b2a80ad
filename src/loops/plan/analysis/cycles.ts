/** Finds plans that call each other in a cycle. */
import type { DefinitionIssue } from '../../definition/shape.js';
import type { AnalyzedLoop, LoopTable } from './analyze.js';
import type { LoopReference } from './call-analysis.js';

/** Returns an issue for each reference that is part of a cycle, by the plan that contains it. */
export function cyclesOf<L extends AnalyzedLoop>(
  references: ReadonlyMap<L, readonly LoopReference[]>,
  loops: LoopTable<L>,
): ReadonlyMap<L, readonly DefinitionIssue[]> {
  const calleesOf = (loop: L): readonly (readonly [LoopReference, L])[] =>
    (references.get(loop) ?? []).flatMap((reference) => {
      const callee = loops.find(reference.loopId, reference.version);
      return callee !== undefined && references.has(callee) ? [[reference, callee] as const] : [];
    });
  return new Map(
    [...references.keys()].map((loop) => {
      const issues = calleesOf(loop).flatMap(([{ path }, callee]) => {
        const back = pathBetween(callee, loop, (from) => calleesOf(from).map(([, next]) => next));
        if (back === undefined) return [];
        const ids = [loop, ...back].map(({ definition }) => definition.id);
        return [
          {
            path,
            reason: `calls "${callee.definition.id}", which ends up calling this plan again: ${ids.join(' → ')}`,
          },
        ];
      });
      return [loop, issues];
    }),
  );
}

/** Returns the shortest path from one plan to another, with both ends; undefined if there is none. */
function pathBetween<L>(from: L, to: L, next: (loop: L) => readonly L[]): readonly L[] | undefined {
  const paths = new Map<L, readonly L[]>([[from, [from]]]);
  for (const [loop, path] of paths) {
    if (loop === to) return path;
    for (const callee of next(loop)) if (!paths.has(callee)) paths.set(callee, [...path, callee]);
  }
  return undefined;
}
