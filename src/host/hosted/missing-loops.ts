/** The loops that the loop of a hosted loop calls and that are not there: a turn that comes to one fails. */
import { describeProblem } from '../../loops/failed-definition.js';
import { type LinkedLoop, linkLoop } from '../../loops/link.js';
import { calleesOf, type RegisteredLoop, type Registry } from '../../loops/registry.js';
import type { LoopFlaw } from './loop-flaws.js';

/** What was found in linked loops, which are linked again when the registry changes. */
const found = new WeakMap<LinkedLoop, readonly LoopFlaw[]>();

/** Returns a problem for each loop that is called, at any depth, and that is not registered. */
export function missingLoopFlawsOf(registered: RegisteredLoop, registry: Registry): readonly LoopFlaw[] {
  const linked = linkLoop(registry, registered);
  const known = found.get(linked);
  if (known !== undefined) return known;
  const flaws = linked.definitions.flatMap(({ definition: { id, composite } }) =>
    calleesOf(composite)
      .filter(({ loopId, loopVersion }) => registry.find(loopId, loopVersion) === undefined)
      .map(({ loopId }) => ({ path: '/loop', reason: missingText(id, loopId, registry) })),
  );
  found.set(linked, flaws);
  return flaws;
}

function missingText(caller: string, missing: string, registry: Registry): string {
  const [problem] = registry.failureOf(missing)?.problems ?? [];
  const calls = `runs "${caller}", which calls "${missing}"`;
  return problem === undefined
    ? `${calls}, and there is no such loop`
    : `${calls}, which could not be loaded: ${describeProblem(problem)}`;
}
