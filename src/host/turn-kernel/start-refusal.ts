/** Refuses loops that cannot run as they are linked, before a turn of them starts. */
import type { LoopError } from '../../base/errors.js';
import type { LinkedLoop } from '../../loops/link.js';
import type { ModelProvider } from '../../loops/model.js';
import type { Registry } from '../../loops/registry.js';
import { mixedTrustError } from '../../loops/trust-boundary.js';
import { unknownModelInLinked } from '../unknown-model.js';

/** The linked loops in which no plan retries a `once` tool. A linked loop does not change. */
const checkedLoops = new WeakSet<LinkedLoop>();

/**
 * Returns DEFINITION_INVALID if a loop needs trust that not all of its parts have, or if something that it consists of
 * names a model without a provider, or is a plan that retries a tool with the safety `once`; undefined if a turn may start.
 */
export function startRefusalOf(
  linked: LinkedLoop,
  registry: Registry,
  providers: ReadonlyMap<string, ModelProvider> | undefined,
): LoopError | undefined {
  const reason = linked.trustProblem();
  // guard: mixed-trust-not-started
  if (reason !== undefined) return mixedTrustError(linked.root, reason);
  return unknownModelInLinked(linked, providers) ?? retriedOnceToolIn(linked, registry);
}

function retriedOnceToolIn(linked: LinkedLoop, registry: Registry): LoopError | undefined {
  if (checkedLoops.has(linked)) return undefined;
  for (const registered of linked.definitions) {
    const error = registry.retriedOnceTool(registered);
    // guard: retried-once-tool-not-started
    if (error !== undefined) return error;
  }
  checkedLoops.add(linked);
  return undefined;
}
