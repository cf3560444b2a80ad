/** A protocol tool as a loop: the same object that the AI SDK runs, here with journal, gate and all. */
import { LoopError } from '../base/errors.js';
import { lazy } from '../base/lazy.js';
import { compileSchema } from '../json/schema.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy, LoopDef } from '../protocol/loop.js';
import { type LoopsTool, type LoopsToolOptions, loopsTool, type ToolSchema } from '../protocol/tool.js';
import type { DefinedLoop } from './defined.js';
import { parseDefinition } from './definition/definition.js';
import type { Describe, ResolveTarget, ToolCall } from './implementation.js';
import { type End, endOf } from './standard.js';
import { isThenable, type ToolParts, toolBody } from './tool.js';

/** Any tool of the protocol, whatever it takes and gives. */
export interface AnyTool {
  readonly name: string;
  withApproval(policy: ApprovalPolicy, modeName?: string): unknown;
  makeTool(context: object): unknown;
}

type Tool = LoopsTool<unknown, unknown>;

const loops = new WeakMap<object, DefinedLoop>();

/** Whether a value is a tool made with loopsTool. */
export function isLoopsTool(value: unknown): value is AnyTool {
  const { name, withApproval, makeTool } = (value ?? {}) as Partial<Tool>;
  return typeof name === 'string' && typeof withApproval === 'function' && typeof makeTool === 'function';
}

/** The loop of a tool, made once for each. */
export function toolLoop(tool: AnyTool): DefinedLoop {
  const known = loops.get(tool);
  if (known !== undefined) return known;
  const loop = loopOf(tool as unknown as Tool);
  loops.set(tool, loop);
  return loop;
}

/** A tool of the AI SDK, which has no name of its own. */
export function namedTool(name: string, tool: unknown): AnyTool {
  if (isLoopsTool(tool)) return tool;
  const { description, inputSchema, execute, needsApproval = false } = (tool ?? {}) as Partial<Tool> & Needy;
  if (typeof execute !== 'function' || inputSchema === undefined) {
    const message = `The tool "${name}" needs an inputSchema and a function execute; make it with loopsTool().`;
    throw new LoopError('DEFINITION_INVALID', message, { tool: name });
  }
  const run = execute as (input: unknown, options: LoopsToolOptions) => unknown;
  const parts = { name, ...(description !== undefined && { description }), inputSchema, execute: run };
  if (needsApproval === false) return loopsTool(parts);
  if (needsApproval === true) return loopsTool(parts).withApproval('ask');
  const requestApproval = async (input: unknown): Promise<string | null> =>
    (await needsApproval(input, { toolCallId: '', messages: [] })) === false ? null : `Run ${name}?`;
  return loopsTool({ ...parts, requestApproval }).withApproval('ask');
}

/** What a tool of the AI SDK says of approvals. */
interface Needy {
  readonly needsApproval?: boolean | ((input: unknown, options: object) => boolean | PromiseLike<boolean>);
}

function loopOf(tool: Tool): DefinedLoop {
  const { name: id, safety = 'once' } = tool;
  const input = inputOf(tool.inputSchema, id);
  const output = endOf(true, 'OUTPUT_VALIDATION_FAILED', id);
  const definition = definitionOf(tool, input);
  const { source } = tool;
  const state = `${JSON.stringify(definition)}\n${source}`;
  const { policy } = definition;
  const run = tool.withApproval('always_allow');
  const { mode } = tool;
  const resolve = resolving(tool);
  const open: ToolParts['open'] = (_scope, approved) =>
    approved === undefined
      ? (given, call) => resultOf(run, given, optionsOf(call))
      : (given, call) => resultOf(run, given, { ...optionsOf(call), approvedTarget: approved });
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
      definition: state,
      describe: describing(tool),
      mode,
      asksByDefault: asksByDefault(tool),
      resolve,
      open,
      inner: true,
    }) as DefinedLoop['body'],
    definition,
    ends: { input: input.validator, output: output.validator },
    source,
    asks: asksByDefault(tool),
  };
}

/** True for a tool that is asked about because it can say what to ask, and nobody set its policy. */
function asksByDefault({ requestApproval, policy, hasExplicitPolicy }: Tool): boolean {
  return requestApproval !== undefined && policy === 'always_allow' && hasExplicitPolicy !== true;
}

/** Something that only shows its JSON Schema is held to it: what shows a schema must not take anything else. */
function inputOf(schema: ToolSchema<unknown>, id: string): End {
  const end = endOf(schema, 'INPUT_VALIDATION_FAILED', id);
  const { validate, jsonSchema } = schema as { readonly validate?: unknown; readonly jsonSchema?: unknown };
  if (jsonSchema === undefined || validate !== undefined) return end;
  return endOf(compileSchema(jsonSchema, `${id}: inputSchema`).schema, 'INPUT_VALIDATION_FAILED', id);
}

function definitionOf({ name, description, readOnly, policy, hasExplicitPolicy, safety }: Tool, input: End): LoopDef {
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

function describing(tool: Tool): Describe | undefined {
  if (tool.requestApproval === undefined) return undefined;
  return async (input, context) => tool.requestApproval?.(input, context);
}

function resolving({ approvalTarget }: Tool): (() => ResolveTarget) | undefined {
  if (approvalTarget === undefined) return undefined;
  const resolve: ResolveTarget = async (input) => approvalTarget(input);
  return () => resolve;
}

function resultOf(tool: Tool, input: Json, options: LoopsToolOptions): unknown {
  const produced = tool.execute(input, options);
  return isThenable(produced) ? Promise.resolve(produced).then(lastOf) : lastOf(produced);
}

/** What was produced, or the last of what is produced one after another. */
function lastOf(produced: unknown): unknown {
  const several = typeof produced === 'object' && produced !== null && Symbol.asyncIterator in produced;
  return several ? lastIn(produced as AsyncIterable<unknown>) : produced;
}

async function lastIn(produced: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const value of produced) last = value;
  return last;
}

/** What the tool is told of its call; the signal is made for those who look at it. */
function optionsOf(call: ToolCall): LoopsToolOptions {
  const options: LoopsToolOptions = {
    toolCallId: call.toolCallId ?? call.callId,
    messages: [],
    onToolOutputDelta: (delta) => call.delta(delta),
    abortSignal: undefined as unknown as AbortSignal,
  };
  return lazy(options, 'abortSignal', () => call.signal);
}
