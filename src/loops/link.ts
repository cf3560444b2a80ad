/**
 * Links a definition and everything that it calls into loops that the kernel can run. A linked loop does not change
 * when the registry does, so a turn continues with the definitions that it started with. A callee that is not
 * registered stays unlinked; its caller fails when it runs.
 */

import { LoopError } from '../base/errors.js';
import { compileSchema, createSchemaCheck } from '../json/schema.js';
import type { Loop } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { AgentSpec, BackendRef, LoopDef, StepsSpec } from '../protocol/loop.js';
import type { PlanSpec } from '../protocol/plan.js';
import { agentBody } from './agent/agent.js';
import { isReadOnlyLoop, type LinkedTool, toModelTool } from './agent/tools.js';
import { withAdmission, withApprovalGate } from './approval-gate.js';
import { withCallTimeout } from './call-timeout.js';
import { type DefinedLoop, innerLoopOf, toolNameIn } from './defined-loop.js';
import type { FailedDefinition } from './failed-definition.js';
import { leafMembers } from './leaf-loop.js';
import { CODE_ORIGIN, type DefinitionOrigin } from './origin.js';
import { MODEL_ADVICE } from './plan/bind-plan.js';
import type { PlanPrompt } from './plan/compiler.js';
import { compileSteps, compositeBody } from './plan/composite-steps.js';
import { compilePlan, planBody } from './plan/plan.js';
import { promptBody } from './prompt.js';
import type { RegisteredLoop, Registry } from './registry.js';
import { toolFromImplementation, toolLeaf } from './tool.js';
import { drivenProblem, isUntrustedPart, mixedTrustProblem } from './trust-boundary.js';

/** What runs a linked loop: code, or a journal in a directory that is not trusted. */
interface LoopCaller {
  readonly isCode?: boolean;
  readonly untrustedDirectory?: string | undefined;
}

/** A loop that is linked with everything it can call. */
export interface LinkedLoop {
  readonly loop: Loop<Json, Json>;
  readonly root: RegisteredLoop;
  /** All definitions that it consists of, the root first. */
  readonly definitions: readonly RegisteredLoop[];
  /**
   * Returns why it must not run, without a full stop: it needs trust, and not all of its parts have it, or the directory
   * that drives it does not; undefined if it may. What code calls needs trust.
   */
  trustProblem(caller?: LoopCaller): string | undefined;
}

/**
 * The model of a prompt without one in a journal of an earlier version, whose turns ran it with `mock`. Registration
 * refuses every other prompt without a model.
 */
const RECORDED_DEFAULT_BACKEND: BackendRef = { id: 'mock' };

const linkCache = new WeakMap<
  RegisteredLoop,
  { readonly registry: Registry; readonly generation: number; readonly linked: LinkedLoop }
>();

/** Links a loop with the loops of a registry. The result is cached until the registry changes. */
export function linkLoop(registry: Registry, root: RegisteredLoop): LinkedLoop {
  const cached = linkCache.get(root);
  if (cached?.registry === registry && cached.generation === registry.generation) return cached.linked;
  const linked = resolveLoop(root, registry);
  linkCache.set(root, { registry, generation: registry.generation, linked });
  return linked;
}

/**
 * A reference to a loop by id. Loops may call each other, so they are created first and references resolved afterwards.
 */
interface UnresolvedReference {
  readonly loopId: string;
  readonly version: string | undefined;
  /** The loop object that an agent in code was given. Another loop that is registered under its id does not replace it. */
  readonly innerLoop?: DefinedLoop | undefined;
  resolve(loop: Loop, registered: RegisteredLoop): void;
  /** Called instead of `resolve` if the definition could not be loaded. */
  fail(failure: FailedDefinition | undefined): void;
}

/** State of the link in progress. */
interface LinkContext {
  readonly unresolved: UnresolvedReference[];
  /**
   * True if a loop with this id, or an inline tool of this name, is part of the linked loop. Valid only once linking is
   * complete.
   */
  includesLoop(name: string): boolean;
}

function resolveLoop(root: RegisteredLoop, registry: Registry): LinkedLoop {
  const loops = new Map<RegisteredLoop, Loop<Json, Json>>();
  const unresolved: UnresolvedReference[] = [];
  const includesLoop = (name: string): boolean =>
    [...loops.keys()].some(({ definition, definedLoop }) => [definition.id, definedLoop?.inlineName].includes(name));
  const loopOf = (registered: RegisteredLoop): Loop<Json, Json> => {
    const existing = loops.get(registered);
    if (existing !== undefined) return existing;
    const loop = createLoop(registered, { unresolved, includesLoop });
    loops.set(registered, loop);
    return loop;
  };
  const loop = loopOf(root);
  for (let next = unresolved.shift(); next !== undefined; next = unresolved.shift()) {
    const { loopId, version, innerLoop } = next;
    const child = innerLoop === undefined ? registry.find(loopId, version) : registry.registrationOf(innerLoop);
    if (child !== undefined) next.resolve(loopOf(child) as unknown as Loop, child);
    else next.fail(registry.failureOf(next.loopId));
  }
  const definitions = [...loops.keys()];
  const trustProblem: LinkedLoop['trustProblem'] = ({ isCode, untrustedDirectory } = {}) => {
    const mixed = definitions.some(isUntrustedPart) ? mixedTrustProblem(registry, root, isCode) : undefined;
    return mixed ?? (untrustedDirectory && drivenProblem(registry, [root], untrustedDirectory));
  };
  return { loop, root, definitions, trustProblem };
}

function createLoop(registered: RegisteredLoop, context: LinkContext): Loop<Json, Json> {
  const { definition, input, output, definedLoop } = registered;
  const { id, version, composite, prompt } = definition;
  // An agent in code is linked like one in JSON, because its tools are resolved by id.
  if (definedLoop !== undefined && composite?.agent === undefined) return definedLoop as unknown as Loop<Json, Json>;
  return {
    name: id,
    version,
    bodyKind: prompt !== undefined ? 'prompt' : composite?.agent !== undefined ? 'agent' : undefined,
    input: definedLoop?.input ?? createSchemaCheck(input, 'INPUT_VALIDATION_FAILED', id),
    output: definedLoop?.output ?? createSchemaCheck(output, 'OUTPUT_VALIDATION_FAILED', id),
    hasFastValidation: definedLoop === undefined || definedLoop.hasFastValidation === true,
    awaitsSteps: true,
    ...createMembers(registered, definition, context),
  } as Loop<Json, Json>;
}

function createMembers(
  registered: RegisteredLoop,
  definition: LoopDef,
  context: LinkContext,
): Pick<Loop<Json, Json>, 'leaf' | 'body'> {
  const { origin, digest } = registered;
  const { id, tool, policy } = definition;
  if (tool === undefined) return { body: createBody(registered, definition, context) };
  const { safety = 'once', config = {} } = tool;
  const implementation = toolFromImplementation(tool, origin);
  return leafMembers(toolLeaf({ id, safety, config, policy, definitionFingerprint: digest, ...implementation }));
}

function createBody(
  registered: RegisteredLoop,
  definition: LoopDef,
  { unresolved, includesLoop }: LinkContext,
): Loop<Json, Json>['body'] {
  const { output, origin, digest, definedLoop } = registered;
  const { id, version, prompt, composite = { steps: [] }, backend, policy } = definition;
  if (prompt !== undefined) {
    const options = { id, spec: prompt, output, policy, origin, definitionFingerprint: digest };
    const body = promptBody({ ...options, backend: backend ?? RECORDED_DEFAULT_BACKEND });
    return withApprovalGate({ name: id, definitionFingerprint: digest, exactNameOnly: false, policy }, body);
  }
  if (composite.plan !== undefined)
    return withAdmission(
      { name: id, definitionFingerprint: digest },
      withCallTimeout(id, policy?.timeoutMs, createPlanBody(registered, composite.plan, unresolved)),
    );
  if (composite.agent === undefined)
    return withAdmission(
      { name: id, definitionFingerprint: digest },
      withCallTimeout(id, policy?.timeoutMs, createStepsBody(id, composite, unresolved)),
    );
  const tools = createTools(composite.agent, definedLoop, unresolved);
  const options = {
    id,
    version,
    spec: composite.agent,
    output,
    policy,
    origin,
    contextOrigin: contextOriginOf(registered),
    definitionFingerprint: digest,
    modelObjects: definedLoop?.modelObjects,
    includesLoop,
  };
  const gate = { name: id, definitionFingerprint: digest, exactNameOnly: true, policy };
  return withApprovalGate(gate, agentBody(options, tools));
}

/** Returns the origin that paths of context are relative to. A loop in code has no directory of its own. */
export function contextOriginOf({ origin, definedLoop }: RegisteredLoop): DefinitionOrigin {
  return definedLoop === undefined ? origin : CODE_ORIGIN;
}

function createStepsBody(id: string, spec: StepsSpec, unresolved: UnresolvedReference[]): Loop<Json, Json>['body'] {
  const steps = compileSteps(id, spec);
  for (const [index, step] of steps.entries())
    unresolved.push(referenceOf(step, step.loopId, spec.steps[index]?.loopVersion));
  return compositeBody(id, spec, steps);
}

/** Returns the reference of a step, which stores the loop in the step. */
function referenceOf(
  step: { loop: Loop | undefined; failure: FailedDefinition | undefined },
  loopId: string,
  version: string | undefined,
): UnresolvedReference {
  const resolve: UnresolvedReference['resolve'] = (loop) => {
    step.loop = loop;
  };
  const fail: UnresolvedReference['fail'] = (failure) => {
    step.failure = failure;
  };
  return { loopId, version, resolve, fail };
}

function createPlanBody(
  registered: RegisteredLoop,
  spec: PlanSpec,
  unresolved: UnresolvedReference[],
): Loop<Json, Json>['body'] {
  const { id } = registered.definition;
  const createPrompt = (prompt: PlanPrompt): Loop => createPlanPrompt(registered, spec, prompt);
  const compiled = compilePlan({ id, createPrompt }, spec);
  for (const callee of compiled.callees) unresolved.push(referenceOf(callee, callee.loopId, callee.version));
  return planBody(id, spec, compiled);
}

/** Creates the loop of a prompt of a plan: a prompt like any other, named after the plan and the step. */
function createPlanPrompt(
  { definition, origin, digest }: RegisteredLoop,
  { backend }: PlanSpec,
  { name, system, schema = { type: 'string' } }: PlanPrompt,
): Loop {
  const id = `${definition.id}.${name}`;
  const output = compileSchema(schema, `${id}: schema`);
  const template = '{{prompt}}';
  const prompt = system === undefined ? { template } : { template, systemPrompt: system };
  const options = { id, spec: prompt, output, policy: undefined, origin, definitionFingerprint: digest };
  const body =
    backend === undefined ? () => Promise.reject(missingModelError(id)) : promptBody({ ...options, backend });
  return {
    name: id,
    version: definition.version,
    bodyKind: 'prompt',
    output: createSchemaCheck(output, 'OUTPUT_VALIDATION_FAILED', id),
    hasFastValidation: true,
    awaitsSteps: true,
    body: withApprovalGate({ name: id, definitionFingerprint: digest, exactNameOnly: false }, body),
  } as Loop;
}

function missingModelError(id: string): LoopError {
  const message = `"${id}" has no model: ${MODEL_ADVICE}.`;
  return new LoopError('DEFINITION_INVALID', message, { loopId: id });
}

function createTools(
  { tools, handoffs = [] }: AgentSpec,
  agent: DefinedLoop | undefined,
  unresolved: UnresolvedReference[],
): readonly LinkedTool[] {
  return [...tools, ...handoffs].map((loopId, index) => {
    const name = toolNameIn(agent, loopId);
    const tool: LinkedTool = {
      loopId,
      name,
      isHandoff: index >= tools.length,
      modelTool: undefined,
      isReadOnly: false,
      loop: undefined,
      failure: undefined,
    };
    const resolve: UnresolvedReference['resolve'] = (loop, { definition }) => {
      tool.loop = loop;
      tool.modelTool = toModelTool(name, definition);
      tool.isReadOnly = isReadOnlyLoop(definition);
    };
    const fail: UnresolvedReference['fail'] = (failure) => {
      tool.failure = failure;
    };
    unresolved.push({ loopId, version: undefined, innerLoop: innerLoopOf(agent, loopId), resolve, fail });
    return tool;
  });
}
