/**
 * `defineAgent`: defines an agent in code. The result is a composite like that of a JSON definition and is linked and
 * run the same way. Code adds inferred types for input and output, tools as objects and a model as an object.
 */

import { LoopError } from '../base/errors.js';
import { optionKeys } from '../base/option-keys.js';
import type { Json } from '../protocol/json.js';
import type { AgentSpec, ApprovalPolicy, LoopDef, StopSpec } from '../protocol/loop.js';
import { toolNameOf } from '../views/tool-name.js';
import { type DefinedLoop, isDefinedLoop } from './defined-loop.js';
import { parseDefinition } from './definition/definition.js';
import { type ModelOption, missingModelReason, type PolicyOption, resolveModels } from './model-ref.js';
import { runUnlinked } from './run-unlinked.js';
import {
  type AnySchema,
  compileIoSchema,
  type InputOf,
  type OutputOf,
  type StandardSchema,
} from './standard-schema.js';
import {
  type AnyLoopsTool,
  type InlineOwner,
  inlineLoopId,
  isLoopsTool,
  loopFromTool,
  toLoopsTool,
} from './tool-loop.js';
import { unknownOptionsReason } from './unknown-options.js';

/** A tool of an agent: the id of a registered loop, a loop in code, or a tool made with `tool` or `loopsTool`. */
export type AgentTool = string | DefinedLoop | AnyLoopsTool;

/** The input of an agent that declares no input schema: a prompt, or the trigger that started it. */
export type AgentInput =
  | { readonly prompt: string }
  | { readonly trigger: { readonly name: string; readonly payload?: Json } };

/** The options of `defineAgent`. */
export interface AgentDefinition<I extends AnySchema, O extends AnySchema> {
  /** The id under which the agent is registered and called. */
  readonly id: string;
  /**
   * A semantic version. Raise it when the behaviour of the agent changes.
   * @default '1.0.0'
   */
  readonly version?: string;
  /**
   * The name shown to people.
   * @default the id
   */
  readonly name?: string;
  /** What the agent does. A model that has this agent as a tool reads it. */
  readonly description?: string;
  /** The model that the agent calls: a model object of the AI SDK, `'PROVIDER'`, `'PROVIDER:MODEL'`, or a reference. */
  readonly model: ModelOption;
  /** The system prompt. */
  readonly instructions?: string;
  /**
   * A list of tools, or an object of tools by name as in the AI SDK. The name of a loop is its id, and a tool made with
   * `tool` keeps its own name, whatever its key. A tool that is not a loop is defined inline: its loop id is
   * `AGENT.NAME`, so two agents may each have a tool of one name. The name `model` is reserved.
   * @default []
   */
  readonly tools?: readonly AgentTool[] | { readonly [name: string]: unknown };
  /**
   * Agents, or other loops, that may take over. The output of a successful handoff is the output of this agent.
   * @default []
   */
  readonly handoffs?: readonly AgentTool[];
  /**
   * The schema of the input.
   * @default the schema of `AgentInput`
   */
  readonly input?: I;
  /**
   * The schema of the output. With a schema other than text or `{ text }`, the model is asked for JSON.
   * @default the schema of `{ text: string }`
   */
  readonly output?: O;
  /**
   * How often the model may be called before the agent stops with BUDGET_EXHAUSTED.
   * @default 20
   */
  readonly maxRounds?: number;
  /** Limits on tokens and time. The agent stops with BUDGET_EXHAUSTED when it reaches one. */
  readonly stop?: StopSpec;
  /** The mode that tools receive when they decide whether a call needs approval, such as `unsupervised`. */
  readonly mode?: string;
  /**
   * Approval policies by tool name or loop id; `*` applies to all other tools. They apply to everything below this agent
   * too.
   */
  readonly approvals?: { readonly [tool: string]: ApprovalPolicy };
  /** The maximum number of output tokens of each model call. */
  readonly maxTokens?: number;
  /** The sampling temperature of each model call. */
  readonly temperature?: number;
  /**
   * How long one tool call may take, in milliseconds.
   * @default 600_000
   */
  readonly toolTimeoutMs?: number;
  /**
   * Texts that the model gets as untrusted data before the prompt, at most 12: paths below the directory that the option
   * `context` of `createRondo` names, `skill:NAME` or `receipt:TURN`.
   * @default []
   */
  readonly contextSkills?: readonly string[];
  /** The policy of the model calls: retries, fallbacks, caching, rate limits, timeouts. */
  readonly policy?: PolicyOption;
  /** Arbitrary data that is stored with the definition. */
  readonly metadata?: { readonly [name: string]: Json };
}

export type PromptInputSchema = StandardSchema<AgentInput, AgentInput>;
export type TextOutputSchema = StandardSchema<{ text: string }, { text: string }>;

type SpecOptions = Omit<AgentSpec, 'backend' | 'tools'>;

/** Options that become members of the definition's `agent` under the same name. */
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
  contextSkills: true,
});
/** All other options. */
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

/** No inline tool has this name: `AGENT.model` stands for the model of the agent. */
const RESERVED_TOOL_NAME = 'model';

/** The JSON Schema of `AgentInput`. */
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

/**
 * Defines an agent: it calls a model, runs the tools that the model chooses, and repeats until the model answers.
 * Throws DEFINITION_INVALID if an option is invalid.
 *
 * @example
 * ```ts
 * const refund = tool({
 *   name: 'refund',
 *   inputSchema: z.object({ order: z.string(), amount: z.number() }),
 *   requestApproval: ({ order, amount }) => `Refund ${amount} for ${order}?`,
 *   execute: async ({ amount }) => ({ refunded: amount }),
 * });
 * const support = defineAgent({
 *   id: 'support',
 *   model: anthropic('claude-sonnet-4-5'),
 *   instructions: 'Help customers with their orders.',
 *   tools: [refund],
 *   stop: { outputTokens: 20_000 },
 * });
 * ```
 */
export function defineAgent<
  const I extends AnySchema = PromptInputSchema,
  const O extends AnySchema = TextOutputSchema,
>(spec: AgentDefinition<I, O>): DefinedLoop<InputOf<I>, OutputOf<O>> {
  const unknown = Object.keys(spec).filter((key) => !LOOP_KEYS.has(key) && !AGENT_SPEC_KEYS.has(key));
  if (unknown.length > 0)
    throw invalidAgentError(spec.id, unknownOptionsReason(unknown, [...LOOP_KEYS, ...AGENT_SPEC_KEYS]));
  const { id } = spec;
  if (spec.model === undefined) throw invalidAgentError(id, missingModelReason());
  const models = resolveModels(`defineAgent("${id}")`, spec.model, spec.policy);
  const input = compileIoSchema(spec.input ?? DEFAULT_INPUT_SCHEMA, 'INPUT_VALIDATION_FAILED', id);
  const output = compileIoSchema(spec.output ?? DEFAULT_OUTPUT_SCHEMA, 'OUTPUT_VALIDATION_FAILED', id);
  const tools = toolListOf(spec.tools ?? []);
  assertToolNames(id, [...tools, ...(spec.handoffs ?? [])]);
  const validators = { input: input.validator, output: output.validator };
  const definition = definitionOf(spec, { ...models, tools }, validators);
  const { version } = definition;
  const innerLoops = [...tools, ...(spec.handoffs ?? [])].flatMap((tool) => innerLoopsOf(tool, { id, version }));
  return {
    name: id,
    version,
    input: input.check as DefinedLoop<InputOf<I>>['input'],
    output: output.check as DefinedLoop<unknown, OutputOf<O>>['output'],
    bodyKind: 'agent',
    body: runUnlinked as DefinedLoop<InputOf<I>, OutputOf<O>>['body'],
    hasFastValidation: input.isFast && output.isFast,
    definition,
    validators,
    source: '',
    innerLoops,
    modelObjects: models.modelObjects,
  };
}

/** Builds the definition that an equivalent JSON document would contain. */
function definitionOf(
  spec: AgentDefinition<AnySchema, AnySchema>,
  { backend, policy, tools }: ReturnType<typeof resolveModels> & { readonly tools: readonly AgentTool[] },
  validators: DefinedLoop['validators'],
): LoopDef {
  const { id, version = '1.0.0', name = id, description, metadata, handoffs } = spec;
  const options = Object.entries(spec).filter(
    ([key, value]) => AGENT_SPEC_KEYS.has(key) && key !== 'handoffs' && value !== undefined,
  );
  const agent = {
    backend,
    tools: tools.map((tool) => toolIdOf(tool, id)),
    ...(handoffs !== undefined && { handoffs: handoffs.map((tool) => toolIdOf(tool, id)) }),
    ...Object.fromEntries(options),
  };
  const document = {
    id,
    name,
    ...(description !== undefined && { description }),
    version,
    inputSchema: validators.input.schema,
    outputSchema: validators.output.schema,
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

/** Returns the loop of a tool that is given as an object. A tool that is not a loop becomes one of this agent. */
function innerLoopsOf(tool: AgentTool, agent: InlineOwner): readonly DefinedLoop[] {
  if (typeof tool === 'string') return [];
  return [isLoopsTool(tool) ? loopFromTool(tool, agent) : tool];
}

function toolIdOf(tool: AgentTool, agent: string): string {
  if (typeof tool === 'string') return tool;
  if (isLoopsTool(tool)) return inlineLoopId(agent, tool.name);
  if (isDefinedLoop(tool)) return tool.definition.id;
  throw invalidAgentError(agent, 'a tool must be the id of a loop, a loop, or made with tool()');
}

/**
 * Throws DEFINITION_INVALID if an inline tool has the reserved name, or if the model or a policy would take its name for
 * another tool. Two tools with one id are found with the definition.
 */
function assertToolNames(agent: string, tools: readonly AgentTool[]): void {
  const named = tools.map((tool) => ({
    id: toolIdOf(tool, agent),
    inlineName: isLoopsTool(tool) ? tool.name : undefined,
  }));
  for (const { id, inlineName } of named) {
    if (inlineName === undefined) continue;
    if (inlineName === RESERVED_TOOL_NAME)
      throw invalidAgentError(agent, `the name "${inlineName}" is reserved ("${id}" is the model); rename the tool`);
    const modelName = toolNameOf(inlineName);
    const other = named.find(
      (one) => one.id !== id && (one.id === inlineName || toolNameOf(one.inlineName ?? one.id) === modelName),
    );
    // guard: inline-tool-names-compared
    if (other !== undefined)
      throw invalidAgentError(
        agent,
        `it has "${id}" and "${other.id}", which a model would both see as "${modelName}"; rename one of them`,
      );
  }
}

function invalidAgentError(id: string, reason: string): LoopError {
  return new LoopError('DEFINITION_INVALID', `defineAgent("${id}"): ${reason}.`, { reason });
}
