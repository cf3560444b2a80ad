/**
 * Agents in code: `defineAgent` makes the composite that a JSON definition would be, and is linked and run like one. What
 * code adds is types for both ends, tools as objects, and a model as an object.
 */

import { LoopError } from '../base/errors.js';
import { optionKeys } from '../base/option-keys.js';
import type { Json } from '../protocol/json.js';
import type { AgentSpec, ApprovalPolicy, BackendRef, LoopDef, PolicySpec, StopSpec } from '../protocol/loop.js';
import type { Model } from '../protocol/model.js';
import { type DefinedLoop, isDefinedLoop } from './defined-loop.js';
import { parseDefinition } from './definition/definition.js';
import {
  type AnySchema,
  compileIoSchema,
  type InputOf,
  type OutputOf,
  type StandardSchema,
} from './standard-schema.js';
import { type AnyLoopsTool, isLoopsTool, loopFromTool, toLoopsTool } from './tool-loop.js';

/** A loop by its id, a loop, or a tool. */
export type AgentTool = string | DefinedLoop | AnyLoopsTool;

/** What an agent is given when it says nothing else of its input. */
export type AgentInput =
  | { readonly prompt: string }
  | { readonly trigger: { readonly name: string; readonly payload?: Json } };

export interface AgentDefinition<I extends AnySchema, O extends AnySchema> {
  readonly id: string;
  /** Semver; 1.0.0 unless told. */
  readonly version?: string;
  readonly name?: string;
  readonly description?: string;
  /** A model of the AI SDK, or a backend by id. */
  readonly model: Model | BackendRef | string;
  readonly instructions?: string;
  /** A list, or an object of tools by name as the AI SDK takes it. */
  readonly tools?: readonly AgentTool[] | { readonly [name: string]: unknown };
  /** Agents that may take over: what they answer is the answer. */
  readonly handoffs?: readonly AgentTool[];
  /** `{prompt}` unless told. */
  readonly input?: I;
  /** `{text}` unless told. */
  readonly output?: O;
  readonly maxRounds?: number;
  readonly stop?: StopSpec;
  readonly mode?: string;
  readonly approvals?: { readonly [tool: string]: ApprovalPolicy };
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly toolTimeoutMs?: number;
  readonly policy?: PolicySpec;
  readonly metadata?: { readonly [name: string]: Json };
}

type PromptInputSchema = StandardSchema<AgentInput, AgentInput>;
type TextOutputSchema = StandardSchema<{ text: string }, { text: string }>;

type SpecOptions = Omit<AgentSpec, 'backend' | 'tools'>;

/** The options that become members of the definition's `agent` under the same name. */
const AGENT_SPEC_KEYS = optionKeys<SpecOptions>({
  instructions: true,
  handoffs: true,
  maxRounds: true,
  stop: true,
  mode: true,
  approvals: true,
  maxTokens: true,
  temperature: true,
  toolTimeoutMs: true,
});
const LOOP_KEYS = optionKeys<Omit<AgentDefinition<AnySchema, AnySchema>, keyof SpecOptions>>({
  id: true,
  version: true,
  name: true,
  description: true,
  model: true,
  tools: true,
  input: true,
  output: true,
  policy: true,
  metadata: true,
});

/** What an agent takes unless told: a prompt, or what triggered it. */
const DEFAULT_INPUT_SCHEMA = {
  type: 'object',
  properties: {
    prompt: { type: 'string' },
    trigger: {
      type: 'object',
      properties: { name: { type: 'string' }, payload: true },
      required: ['name'],
      additionalProperties: false,
    },
  },
  anyOf: [{ required: ['prompt'] }, { required: ['trigger'] }],
  additionalProperties: false,
} as const;

const DEFAULT_OUTPUT_SCHEMA = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } as const;

/** Makes an agent of code; a LoopError says what is wrong with it. */
export function defineAgent<
  const I extends AnySchema = PromptInputSchema,
  const O extends AnySchema = TextOutputSchema,
>(spec: AgentDefinition<I, O>): DefinedLoop<InputOf<I>, OutputOf<O>> {
  const unknown = Object.keys(spec).filter((key) => !LOOP_KEYS.has(key) && !AGENT_SPEC_KEYS.has(key));
  if (unknown.length > 0)
    throw invalidAgentError(spec.id, `it has no member ${unknown.map((key) => `"${key}"`).join(', ')}`);
  const { id } = spec;
  const input = compileIoSchema(spec.input ?? DEFAULT_INPUT_SCHEMA, 'INPUT_VALIDATION_FAILED', id);
  const output = compileIoSchema(spec.output ?? DEFAULT_OUTPUT_SCHEMA, 'OUTPUT_VALIDATION_FAILED', id);
  const called = [...toolListOf(spec.tools ?? []), ...(spec.handoffs ?? [])];
  const parts = called.flatMap((tool) => innerLoopsOf(tool, id));
  const ends = { input: input.validator, output: output.validator };
  const definition = definitionOf(spec, ends);
  return {
    name: id,
    version: definition.version,
    input: input.check as DefinedLoop<InputOf<I>>['input'],
    output: output.check as DefinedLoop<unknown, OutputOf<O>>['output'],
    body: bodyWithoutHost(id),
    hasFastValidation: input.isFast && output.isFast,
    definition,
    validators: ends,
    source: '',
    innerLoops: parts,
    model: isModel(spec.model) ? spec.model : undefined,
  };
}

/** The definition as a document would have it. */
function definitionOf(spec: AgentDefinition<AnySchema, AnySchema>, ends: DefinedLoop['validators']): LoopDef {
  const { id, version = '1.0.0', name = id, description, policy, metadata, tools = [], handoffs } = spec;
  const given = Object.entries(spec).filter(
    ([key, value]) => AGENT_SPEC_KEYS.has(key) && key !== 'handoffs' && value !== undefined,
  );
  const agent: AgentSpec = {
    backend: backendRefOf(spec.model, id),
    tools: toolListOf(tools).map((tool) => toolIdOf(tool, id)),
    ...(handoffs !== undefined && { handoffs: handoffs.map((tool) => toolIdOf(tool, id)) }),
    ...Object.fromEntries(given),
  };
  const document = {
    id,
    name,
    ...(description !== undefined && { description }),
    version,
    inputSchema: ends.input.schema,
    outputSchema: ends.output.schema,
    kind: 'composite',
    composite: { agent },
    ...(policy !== undefined && { policy }),
    ...(metadata !== undefined && { metadata }),
  };
  return parseDefinition(document, `defineAgent("${id}")`);
}

function toolListOf(tools: NonNullable<AgentDefinition<AnySchema, AnySchema>['tools']>): readonly AgentTool[] {
  if (Array.isArray(tools)) return tools as readonly AgentTool[];
  return Object.entries(tools).map(([name, tool]) => (isDefinedLoop(tool) ? tool : toLoopsTool(name, tool)));
}

function innerLoopsOf(tool: AgentTool, agent: string): readonly DefinedLoop[] {
  if (typeof tool === 'string') return [];
  if (isLoopsTool(tool)) return [loopFromTool(tool)];
  if (isDefinedLoop(tool)) return [tool as DefinedLoop];
  throw invalidAgentError(agent, 'a tool is the id of a loop, a loop, or made with loopsTool()');
}

function toolIdOf(tool: AgentTool, agent: string): string {
  if (typeof tool === 'string') return tool;
  return innerLoopsOf(tool, agent)[0]?.name ?? '';
}

function isModel(model: unknown): model is Model {
  const { doStream, doGenerate } = (model ?? {}) as Partial<Model>;
  return typeof doStream === 'function' && typeof doGenerate === 'function';
}

function backendRefOf(model: Model | BackendRef | string, agent: string): BackendRef {
  if (typeof model === 'string') return { id: model };
  if (isModel(model)) return { id: model.provider, model: model.modelId };
  if (typeof model === 'object' && model !== null && typeof model.id === 'string') return model;
  throw invalidAgentError(
    agent,
    'its model must be a model of the AI SDK, or a backend: an id, or {id, model?, options?}',
  );
}

/** Without a host there is nobody to link it. */
function bodyWithoutHost(id: string): () => never {
  return () => {
    throw new LoopError('EXECUTION_FAILED', `The agent "${id}" needs a host: run it with host.run({ loop }).`);
  };
}

function invalidAgentError(id: string, reason: string): LoopError {
  return new LoopError('DEFINITION_INVALID', `defineAgent("${id}"): ${reason}.`, { reason });
}
