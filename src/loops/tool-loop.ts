/**
 * Converts tools made with `tool` or `loopsTool`, and tools of the AI SDK, into loops, whose calls are journaled and can need
 * approval.
 */
import { isConfined } from '../base/confined-tools.js';
import { LoopError } from '../base/errors.js';
import { withLazyProperty } from '../base/lazy-property.js';
import { canonicalJson } from '../json/canonical.js';
import { compileSchema } from '../json/schema.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy, LoopDef } from '../protocol/loop.js';
import { isThenable } from '../protocol/thenable.js';
import { type LoopsTool, type LoopsToolOptions, type ToolSchema, tool as toolOf } from '../protocol/tool.js';
import type { DefinedLoop } from './defined-loop.js';
import { parseDefinition } from './definition/definition.js';
import { leafMembers } from './leaf-loop.js';
import { compileIoSchema, type IoSchema } from './standard-schema.js';
import { type ToolLeafOptions, toolLeaf } from './tool.js';
import type { DescribeApproval, ResolveTarget, ToolCallContext } from './tool-implementation.js';

/** A tool made with `tool` or `loopsTool`, with any input and output. */
export interface AnyLoopsTool {
  readonly name: string;
  withApproval(policy: ApprovalPolicy, modeName?: string): unknown;
  makeTool(context: object): unknown;
}

type UntypedTool = LoopsTool<unknown, unknown>;

const loopsByTool = new WeakMap<object, DefinedLoop>();

/** True if the value has the members of a tool made with `loopsTool`. */
export function isLoopsTool(value: unknown): value is AnyLoopsTool {
  const { name, withApproval, makeTool } = (value ?? {}) as Partial<UntypedTool>;
  return typeof name === 'string' && typeof withApproval === 'function' && typeof makeTool === 'function';
}

/** The agent in which a tool is defined inline. */
export interface InlineOwner {
  readonly id: string;
  /** The version of the agent, which is that of its inline tools. */
  readonly version: string;
}

/** Returns the id of the loop of a tool that is defined inline in an agent. */
export function inlineLoopId(agent: string, name: string): string {
  return `${agent}.${name}`;
}

/** Returns the loop of a tool: the one of an agent, or one of its own, which is created once per tool. */
export function loopFromTool(tool: AnyLoopsTool, agent?: InlineOwner): DefinedLoop {
  if (agent !== undefined) return createLoop(tool as unknown as UntypedTool, agent);
  const cached = loopsByTool.get(tool);
  if (cached !== undefined) return cached;
  const loop = createLoop(tool as unknown as UntypedTool, undefined);
  loopsByTool.set(tool, loop);
  return loop;
}

/**
 * Converts a tool of the AI SDK, which has no name, into one made with `tool`; one made so is returned as it is. Throws
 * DEFINITION_INVALID if the tool has no `inputSchema` or no function `execute`.
 */
export function toLoopsTool(name: string, tool: unknown): AnyLoopsTool {
  if (isLoopsTool(tool)) return tool;
  const {
    description,
    inputSchema,
    execute,
    needsApproval = false,
  } = (tool ?? {}) as Partial<UntypedTool> & AiSdkApproval;
  if (typeof execute !== 'function' || inputSchema === undefined) {
    const message = `The tool "${name}" needs an inputSchema and a function execute; make it with tool().`;
    throw new LoopError('DEFINITION_INVALID', message, { tool: name });
  }
  const run = execute as (input: unknown, options: LoopsToolOptions) => unknown;
  const options = { name, ...(description !== undefined && { description }), inputSchema, execute: run };
  if (needsApproval === false) return toolOf(options);
  if (needsApproval === true) return toolOf({ ...options, approval: 'ask' });
  const requestApproval = async (input: unknown): Promise<string | null> =>
    (await needsApproval(input, { toolCallId: '', messages: [] })) === false ? null : `Run ${name}?`;
  return toolOf({ ...options, approval: 'ask', requestApproval });
}

/** The approval option of a tool of the AI SDK. */
interface AiSdkApproval {
  readonly needsApproval?: boolean | ((input: unknown, options: object) => boolean | PromiseLike<boolean>);
}

function createLoop(tool: UntypedTool, agent: InlineOwner | undefined): DefinedLoop {
  const { name, safety = 'once', source, mode } = tool;
  const id = agent === undefined ? name : inlineLoopId(agent.id, name);
  const input = compileToolInput(tool.inputSchema, id);
  const output = compileIoSchema(true, 'OUTPUT_VALIDATION_FAILED', id);
  const definition = definitionOf(tool, { id, version: agent?.version ?? '1.0.0' }, input);
  const asks = asksByDefault(tool);
  const run = tool.withApproval('always_allow');
  const open: ToolLeafOptions['open'] = (_scope, approved) =>
    approved === undefined
      ? (args, call) => executeTool(run, args, toolOptionsOf(call))
      : (args, call) => executeTool(run, args, { ...toolOptionsOf(call), approvedTarget: approved });
  const leaf = toolLeaf({
    id,
    safety,
    config: {},
    // The agent of a tool that asks by default may allow it, which no agent may under a policy of the tool.
    policy: asks ? undefined : definition.policy,
    definitionFingerprint: canonicalJson(definition as unknown as Json),
    boundary: isConfined(tool.inputSchema) ? 'toolbox' : 'code',
    source,
    describeApproval: approvalDescriberOf(tool),
    approvalMode: mode,
    asksByDefault: asks,
    targetResolver: targetResolverOf(tool),
    open,
    isInternal: true,
  });
  return {
    name: id,
    version: definition.version,
    input: input.check,
    output: output.check,
    hasFastValidation: input.isFast,
    ...(leafMembers(leaf) as Pick<DefinedLoop, 'leaf' | 'body'>),
    definition,
    validators: { input: input.validator, output: output.validator },
    source,
    asksByDefault: asks,
    inlineName: agent === undefined ? undefined : name,
  };
}

/** True for a tool that asks, by `approval` or `requestApproval`, and has no explicit policy. */
function asksByDefault({ requestApproval, policy, hasExplicitPolicy }: UntypedTool): boolean {
  return hasExplicitPolicy !== true && (policy === 'ask' || requestApproval !== undefined);
}

/** Compiles the input schema. A schema with a JSON Schema but no validator is validated against its JSON Schema. */
function compileToolInput(schema: ToolSchema<unknown>, id: string): IoSchema {
  const compiled = compileIoSchema(schema, 'INPUT_VALIDATION_FAILED', id);
  const { validate, jsonSchema } = schema as { readonly validate?: unknown; readonly jsonSchema?: unknown };
  if (jsonSchema === undefined || validate !== undefined) return compiled;
  return compileIoSchema(compileSchema(jsonSchema, `${id}: inputSchema`).schema, 'INPUT_VALIDATION_FAILED', id);
}

function definitionOf(
  { name, description, readOnly, policy, hasExplicitPolicy, safety }: UntypedTool,
  { id, version }: InlineOwner,
  input: IoSchema,
): LoopDef {
  const document = {
    id,
    name,
    version,
    ...(description !== undefined && { description }),
    inputSchema: input.validator.schema,
    outputSchema: true,
    kind: 'tool',
    tool: { implementation: 'code:tool', ...(safety !== undefined && { safety }) },
    ...((policy !== 'always_allow' || hasExplicitPolicy) && { policy: { approval: policy } }),
    ...((readOnly || safety === 'pure') && { metadata: { readOnly } }),
  };
  return parseDefinition(document, `tool("${name}")`);
}

function approvalDescriberOf(tool: UntypedTool): DescribeApproval | undefined {
  if (tool.requestApproval === undefined) return undefined;
  return async (input, context) => tool.requestApproval?.(input, context);
}

function targetResolverOf({ approvalTarget }: UntypedTool): (() => ResolveTarget) | undefined {
  if (approvalTarget === undefined) return undefined;
  const resolve: ResolveTarget = async (input) => approvalTarget(input);
  return () => resolve;
}

function executeTool(tool: UntypedTool, input: Json, options: LoopsToolOptions): unknown {
  const produced = tool.execute(input, options);
  return isThenable(produced) ? Promise.resolve(produced).then(finalValueOf) : finalValueOf(produced);
}

/** Returns the value itself, or the last value of an async iterable. */
function finalValueOf(produced: unknown): unknown {
  const isIterable = typeof produced === 'object' && produced !== null && Symbol.asyncIterator in produced;
  return isIterable ? lastYielded(produced as AsyncIterable<unknown>) : produced;
}

async function lastYielded(produced: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const value of produced) last = value;
  return last;
}

/**
 * Converts the context of a call into the options of the AI SDK, without messages. The abort signal is created on first
 * access.
 */
function toolOptionsOf(call: ToolCallContext): LoopsToolOptions {
  const options: LoopsToolOptions = {
    toolCallId: call.toolCallId ?? call.callId,
    idempotencyKey: call.idempotencyKey,
    messages: [],
    confinement: call.confinement,
    onToolOutputDelta: (delta) => call.delta(delta),
    abortSignal: undefined as unknown as AbortSignal,
  };
  return withLazyProperty(options, 'abortSignal', () => call.signal);
}
