/**
 * Linking: of a definition and everything it calls, loops that the kernel can run. What was linked does not change when
 * the registry does, so a turn goes on with the definitions it began with; its digest covers all of them.
 */

import { checked } from '../json/schema.js';
import type { Loop } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { AgentSpec, LoopDef, StepsSpec } from '../protocol/loop.js';
import { admitted } from './admission.js';
import { agentBody } from './agent/agent.js';
import { isReadOnly, type LinkedTool, shownTool } from './agent/tools.js';
import { boundedBody } from './bounded.js';
import { compileSteps, compositeBody } from './composite.js';
import { promptBody } from './prompt.js';
import type { Registered, Registry } from './registry.js';
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

/** A loop that was made before what it calls; told of each thing that it calls by id, and given it. */
interface Waiting {
  readonly loopId: string;
  readonly version: string | undefined;
  take(loop: Loop, registered: Registered): void;
}

/** What is being linked: what still waits, and whether a loop of an id is part of it in the end. */
interface Linking {
  readonly waiting: Waiting[];
  calls(id: string): boolean;
}

function link(root: Registered, find: Find): Linked {
  const made = new Map<Registered, Loop<Json, Json>>();
  const waiting: Waiting[] = [];
  const calls = (id: string): boolean => [...made.keys()].some(({ definition }) => definition.id === id);
  const loopOf = (registered: Registered): Loop<Json, Json> => {
    const known = made.get(registered);
    if (known !== undefined) return known;
    const loop = loopFor(registered, { waiting, calls });
    made.set(registered, loop);
    return loop;
  };
  const loop = loopOf(root);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const child = find(next.loopId, next.version);
    if (child !== undefined) next.take(loopOf(child) as unknown as Loop, child);
  }
  return { loop, root, parts: [...made.keys()] };
}

function loopFor(registered: Registered, linking: Linking): Loop<Json, Json> {
  const { definition, input, output, code } = registered;
  const { id, version, composite, prompt } = definition;
  // An agent in code is linked like any other: what it calls is found by id.
  if (code !== undefined && composite?.agent === undefined) return code as unknown as Loop<Json, Json>;
  return {
    name: id,
    version,
    bodyKind: prompt !== undefined ? 'prompt' : composite?.agent !== undefined ? 'agent' : undefined,
    input: code?.input ?? checked(input, 'INPUT_VALIDATION_FAILED', id),
    output: code?.output ?? checked(output, 'OUTPUT_VALIDATION_FAILED', id),
    hasFastValidation: code === undefined || code.hasFastValidation === true,
    body: bodyOf(registered, definition, linking),
  } as Loop<Json, Json>;
}

function bodyOf(registered: Registered, definition: LoopDef, { waiting, calls }: Linking): Loop<Json, Json>['body'] {
  const { output, origin, digest: own, code } = registered;
  const { id, prompt, tool, composite = { steps: [] }, backend, policy } = definition;
  if (prompt !== undefined) {
    const parts = { id, spec: prompt, output, backend, policy, origin, definition: own };
    return admitted({ name: id, definition: own, named: false }, promptBody(parts));
  }
  if (tool !== undefined) {
    const { safety = 'once', config = {} } = tool;
    return toolBody({ id, safety, config, policy, definition: own, ...implementedTool(tool, origin) });
  }
  if (composite.agent === undefined) return boundedBody(id, policy?.timeoutMs, stepsBody(id, composite, waiting));
  const tools = toolsOf(composite.agent, waiting);
  const parts = { id, spec: composite.agent, output, policy, origin, definition: own, model: code?.model };
  return admitted({ name: id, definition: own, named: true }, agentBody({ ...parts, calls }, tools));
}

function stepsBody(id: string, spec: StepsSpec, waiting: Waiting[]): Loop<Json, Json>['body'] {
  const steps = compileSteps(id, spec);
  for (const [index, step] of steps.entries()) {
    const take: Waiting['take'] = (loop) => {
      step.loop = loop;
    };
    waiting.push({ loopId: step.loopId, version: spec.steps[index]?.loopVersion, take });
  }
  return compositeBody(id, spec, steps);
}

function toolsOf({ tools, handoffs = [] }: AgentSpec, waiting: Waiting[]): readonly LinkedTool[] {
  return [...tools, ...handoffs].map((name, index) => {
    const tool: LinkedTool = {
      name,
      handoff: index >= tools.length,
      shown: undefined,
      readOnly: false,
      loop: undefined,
    };
    const take: Waiting['take'] = (loop, { definition }) => {
      tool.loop = loop;
      tool.shown = shownTool(definition);
      tool.readOnly = isReadOnly(definition);
    };
    waiting.push({ loopId: name, version: undefined, take });
    return tool;
  });
}
