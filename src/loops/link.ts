/**
 * Linking: of a definition and everything it calls, loops that the kernel can run. What was linked does not change when
 * the registry does, so a turn goes on with the definitions it began with; its digest covers all of them.
 */

import { createSchemaCheck } from '../json/schema.js';
import type { Loop } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { AgentSpec, LoopDef, StepsSpec } from '../protocol/loop.js';
import { agentBody } from './agent/agent.js';
import { isReadOnlyLoop, type LinkedTool, toModelTool } from './agent/tools.js';
import { withApprovalGate } from './approval-gate.js';
import { withCallTimeout } from './call-timeout.js';
import { compileSteps, compositeBody } from './composite.js';
import { promptBody } from './prompt.js';
import type { RegisteredLoop, Registry } from './registry.js';
import { toolBody, toolFromImplementation } from './tool.js';

type FindLoop = (id: string, version?: string) => RegisteredLoop | undefined;

/** A loop with everything it can call. */
export interface LinkedLoop {
  readonly loop: Loop<Json, Json>;
  readonly root: RegisteredLoop;
  /** All definitions that it is made of, the root first. */
  readonly definitions: readonly RegisteredLoop[];
}

const linkCache = new WeakMap<
  RegisteredLoop,
  { readonly registry: Registry; readonly generation: number; readonly by: LinkedLoop }
>();

/** A loop with what its steps call in a registry, linked once for each state of that. */
export function linkLoop(registry: Registry, root: RegisteredLoop): LinkedLoop {
  const known = linkCache.get(root);
  if (known?.registry === registry && known.generation === registry.generation) return known.by;
  const by = resolveLoop(root, (id, version) => registry.find(id, version));
  linkCache.set(root, { registry, generation: registry.generation, by });
  return by;
}

/** A loop that was made before what it calls; told of each thing that it calls by id, and given it. */
interface UnresolvedReference {
  readonly loopId: string;
  readonly version: string | undefined;
  resolve(loop: Loop, registered: RegisteredLoop): void;
}

/** What is being linked: what still waits, and whether a loop of an id is part of it in the end. */
interface LinkContext {
  readonly unresolved: UnresolvedReference[];
  includesLoop(id: string): boolean;
}

function resolveLoop(root: RegisteredLoop, find: FindLoop): LinkedLoop {
  const made = new Map<RegisteredLoop, Loop<Json, Json>>();
  const waiting: UnresolvedReference[] = [];
  const calls = (id: string): boolean => [...made.keys()].some(({ definition }) => definition.id === id);
  const loopOf = (registered: RegisteredLoop): Loop<Json, Json> => {
    const known = made.get(registered);
    if (known !== undefined) return known;
    const loop = createLoop(registered, { unresolved: waiting, includesLoop: calls });
    made.set(registered, loop);
    return loop;
  };
  const loop = loopOf(root);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const child = find(next.loopId, next.version);
    if (child !== undefined) next.resolve(loopOf(child) as unknown as Loop, child);
  }
  return { loop, root, definitions: [...made.keys()] };
}

function createLoop(registered: RegisteredLoop, linking: LinkContext): Loop<Json, Json> {
  const { definition, input, output, definedLoop } = registered;
  const { id, version, composite, prompt } = definition;
  // An agent in code is linked like any other: what it calls is found by id.
  if (definedLoop !== undefined && composite?.agent === undefined) return definedLoop as unknown as Loop<Json, Json>;
  return {
    name: id,
    version,
    bodyKind: prompt !== undefined ? 'prompt' : composite?.agent !== undefined ? 'agent' : undefined,
    input: definedLoop?.input ?? createSchemaCheck(input, 'INPUT_VALIDATION_FAILED', id),
    output: definedLoop?.output ?? createSchemaCheck(output, 'OUTPUT_VALIDATION_FAILED', id),
    hasFastValidation: definedLoop === undefined || definedLoop.hasFastValidation === true,
    body: createBody(registered, definition, linking),
  } as Loop<Json, Json>;
}

function createBody(
  registered: RegisteredLoop,
  definition: LoopDef,
  { unresolved, includesLoop }: LinkContext,
): Loop<Json, Json>['body'] {
  const { output, origin, digest: own, definedLoop } = registered;
  const { id, prompt, tool, composite = { steps: [] }, backend, policy } = definition;
  if (prompt !== undefined) {
    const parts = { id, spec: prompt, output, backend, policy, origin, definitionFingerprint: own };
    return withApprovalGate({ name: id, definitionFingerprint: own, requiresName: false }, promptBody(parts));
  }
  if (tool !== undefined) {
    const { safety = 'once', config = {} } = tool;
    return toolBody({
      id,
      safety,
      config,
      policy,
      definitionFingerprint: own,
      ...toolFromImplementation(tool, origin),
    });
  }
  if (composite.agent === undefined)
    return withCallTimeout(id, policy?.timeoutMs, createStepsBody(id, composite, unresolved));
  const tools = createTools(composite.agent, unresolved);
  const parts = {
    id,
    spec: composite.agent,
    output,
    policy,
    origin,
    definitionFingerprint: own,
    model: definedLoop?.model,
  };
  return withApprovalGate(
    { name: id, definitionFingerprint: own, requiresName: true },
    agentBody({ ...parts, includesLoop }, tools),
  );
}

function createStepsBody(id: string, spec: StepsSpec, waiting: UnresolvedReference[]): Loop<Json, Json>['body'] {
  const steps = compileSteps(id, spec);
  for (const [index, step] of steps.entries()) {
    const take: UnresolvedReference['resolve'] = (loop) => {
      step.loop = loop;
    };
    waiting.push({ loopId: step.loopId, version: spec.steps[index]?.loopVersion, resolve: take });
  }
  return compositeBody(id, spec, steps);
}

function createTools({ tools, handoffs = [] }: AgentSpec, waiting: UnresolvedReference[]): readonly LinkedTool[] {
  return [...tools, ...handoffs].map((name, index) => {
    const tool: LinkedTool = {
      loopId: name,
      isHandoff: index >= tools.length,
      modelTool: undefined,
      isReadOnly: false,
      loop: undefined,
    };
    const take: UnresolvedReference['resolve'] = (loop, { definition }) => {
      tool.loop = loop;
      tool.modelTool = toModelTool(definition);
      tool.isReadOnly = isReadOnlyLoop(definition);
    };
    waiting.push({ loopId: name, version: undefined, resolve: take });
    return tool;
  });
}
