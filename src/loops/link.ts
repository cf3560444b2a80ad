/**
 * Linking: of a definition and everything it calls, loops that the kernel can run. What was linked does not change when
 * the registry does, so a turn goes on with the definitions it began with; its digest covers all of them.
 */
import type { Loop } from '../kernel/call.js';
import type { Json } from '../protocol/json.js';
import type { LoopDef } from '../protocol/loop.js';
import { compileSteps, compositeBody, type LinkedStep } from './composite.js';
import { promptBody } from './prompt.js';
import type { Registered, Registry } from './registry.js';
import { checked } from './schema.js';
import { implementedTool, toolBody } from './tool.js';

type Find = (id: string, version?: string) => Registered | undefined;

/** A loop with everything it can call. */
export interface Linked {
  readonly loop: Loop<Json, Json>;
  readonly root: Registered;
  /** All definitions that it is made of, the root first. */
  readonly parts: readonly Registered[];
}

const linked = new WeakMap<
  Registered,
  { readonly registry: Registry; readonly generation: number; readonly by: Linked }
>();

/** A loop with what its steps call in a registry, linked once for each state of that. */
export function linkedIn(registry: Registry, root: Registered): Linked {
  const known = linked.get(root);
  if (known?.registry === registry && known.generation === registry.generation) return known.by;
  const by = link(root, (id, version) => registry.find(id, version));
  linked.set(root, { registry, generation: registry.generation, by });
  return by;
}

function link(root: Registered, find: Find): Linked {
  const made = new Map<Registered, Loop<Json, Json>>();
  const queue: Registered[] = [];
  const loopOf = (registered: Registered): Loop<Json, Json> => {
    const known = made.get(registered);
    if (known !== undefined) return known;
    const loop = loopFor(registered, (steps) => waiting.push({ registered, steps }));
    made.set(registered, loop);
    queue.push(registered);
    return loop;
  };
  const waiting: { registered: Registered; steps: LinkedStep[] }[] = [];
  const loop = loopOf(root);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { composite } = next.registered.definition;
    for (const [index, step] of next.steps.entries()) {
      const child = find(step.loopId, composite?.steps[index]?.loopVersion);
      step.loop = child === undefined ? undefined : (loopOf(child) as unknown as Loop);
    }
  }
  return { loop, root, parts: queue };
}

function loopFor(registered: Registered, waits: (steps: LinkedStep[]) => void): Loop<Json, Json> {
  const { definition, input, output, code } = registered;
  if (code !== undefined) return code as unknown as Loop<Json, Json>;
  const { id, version } = definition;
  return {
    name: id,
    version,
    input: checked(input, 'INPUT_VALIDATION_FAILED', id) as (value: unknown) => Json,
    output: checked(output, 'OUTPUT_VALIDATION_FAILED', id) as (value: unknown) => Json,
    quick: true,
    body: bodyOf(registered, definition, waits),
  };
}

function bodyOf(
  { output, origin, digest: own }: Registered,
  definition: LoopDef,
  waits: (steps: LinkedStep[]) => void,
): Loop<Json, Json>['body'] {
  const { id, prompt, tool, composite, backend, policy } = definition;
  if (prompt !== undefined) return promptBody({ id, spec: prompt, output, backend, policy, origin, definition: own });
  if (tool !== undefined) {
    const { safety = 'once', config = {} } = tool;
    return toolBody({ id, safety, config, policy, definition: own, open: implementedTool(tool, origin) });
  }
  const spec = composite ?? { steps: [] };
  const steps = compileSteps(id, spec);
  waits(steps);
  return compositeBody(id, spec, steps);
}
