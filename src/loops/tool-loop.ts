/**
 * Converts tools made with `loopsTool`, and tools of the AI SDK, into loops, whose calls are journaled and can need
 * approval.
 */
import { LoopError } from '../base/errors.js';
import { withLazyProperty } from '../base/lazy-property.js';
import { compileSchema } from '../json/schema.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy, LoopDef } from '../protocol/loop.js';
import { isThenable } from '../protocol/thenable.js';
import { type LoopsTool, type LoopsToolOptions, loopsTool, type ToolSchema } from '../protocol/tool.js';
import type { DefinedLoop } from './defined-loop.js';
import { parseDefinition } from './definition/definition.js';
import { compileIoSchema, type IoSchema } from './standard-schema.js';
import { type ToolBodyOptions, toolBody } from './tool.js';
import type { DescribeApproval, ResolveTarget, ToolCallContext } from './tool-implementation.js';

/** A tool made with `loopsTool`, with any input and output. */
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

/** Returns the loop of a tool. It is created once per tool. */
export function loopFromTool(tool: AnyLoopsTool): DefinedLoop {
  const cached = loopsByTool.get(tool);
  if (cached !== undefined) return cached;
  const loop = createLoop(tool as unknown as UntypedTool);
  loopsByTool.set(tool, loop);
  return loop;
}

/**
 * Converts a tool of the AI SDK, which has no name, into one made with `loopsTool`; such a tool is returned as it is.
 * Throws DEFINITION_INVALID if the tool has no `inputSchema` or no function `execute`.
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
    const message = `The tool "${name}" needs an inputSchema and a function execute; make it with loopsTool().`;
    throw new LoopError('DEFINITION_INVALID', message, { tool: name });
  }
  const run = execute as (input: unknown, options: LoopsToolOptions) => unknown;
  const options = { name, ...(description !== undefined && { description }), inputSchema, execute: run };
  if (needsApproval === false) return loopsTool(options);
  if (needsApproval === true) return loopsTool(options).withApproval('ask');
  const requestApproval = async (input: unknown): Promise<string | null> =>
    (await needsApproval(input, { toolCallId: '', messages: [] })) === false ? null : `Run ${name}?`;
  return loopsTool({ ...options, requestApproval }).withApproval('ask');
}

/** The approval option of a tool of the AI SDK. */
interface AiSdkApproval {
  readonly needsApproval?: boolean | ((input: unknown, options: object) => boolean | PromiseLike<boolean>);
}

function createLoop(tool: UntypedTool): DefinedLoop {
  const { name: id, safety = 'once' } = tool;
  const input = compileToolInput(tool.inputSchema, id);
  const output = compileIoSchema(true, 'OUTPUT_VALIDATION_FAILED', id);
  const definition = definitionOf(tool, input);
  const { source } = tool;
  const fingerprint = `${JSON.stringify(definition)}\n${source}`;
  const { policy } = definition;
  const run = tool.withApproval('always_allow');
  const { mode } = tool;
  const resolve = targetResolverOf(tool);
  const open: ToolBodyOptions['open'] = (_scope, approved) =>
    approved === undefined
      ? (args, call) => executeTool(run, args, toolOptionsOf(call))
      : (args, call) => executeTool(run, args, { ...toolOptionsOf(call), approvedTarget: approved });
  return {
    name: id,
    version: definition.version,
    input: input.check,
    output: output.check,
    hasFastValidation: input.isFast,
    body: toolBody({
      id,
      safety,
      config: {},
      policy,
      definitionFingerprint: fingerprint,
      describeApproval: approvalDescriberOf(tool),
      approvalMode: mode,
      asksByDefault: asksByDefault(tool),
      targetResolver: resolve,
      open,
      isInternal: true,
    }) as DefinedLoop['body'],
    definition,
    validators: { input: input.validator, output: output.validator },
    source,
    asksByDefault: asksByDefault(tool),
  };
}

/** True for a tool that has `requestApproval` and no explicit policy: it needs approval by default. */
function asksByDefault({ requestApproval, policy, hasExplicitPolicy }: UntypedTool): boolean {
  return requestApproval !== undefined && policy === 'always_allow' && hasExplicitPolicy !== true;
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
  input: IoSchema,
): LoopDef {
  const document = {
    id: name,
    name,
    version: '1.0.0',
    ...(description !== undefined && { description }),
    inputSchema: input.validator.schema,
    outputSchema: true,
    kind: 'tool',
    tool: { implementation: 'code:tool', ...(safety !== undefined && { safety }) },
    ...((policy !== 'always_allow' || hasExplicitPolicy) && { policy: { approval: policy } }),
    ...((readOnly || safety === 'pure') && { metadata: { readOnly } }),
  };
  return parseDefinition(document, `loopsTool("${name}")`);
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
    messages: [],
    onToolOutputDelta: (delta) => call.delta(delta),
    abortSignal: undefined as unknown as AbortSignal,
  };
  return withLazyProperty(options, 'abortSignal', () => call.signal);
}
