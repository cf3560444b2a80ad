/**
 * The tools of an agent: loops of any kind that the model can call. Every failure of a tool call (an unknown name,
 * invalid arguments, an error, a denied approval) becomes a result that the model receives.
 */

import { toLoopError } from '../../base/errors.js';
import type { RestrictionTable } from '../../policy/restrictions.js';
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { ModelTool } from '../../protocol/model.js';
import { TOOL_REFUSED } from '../../views/history.js';
import { parseArguments, type RecordedToolCall, type ToolCallOutcome } from '../../views/messages.js';
import { toolNameOf } from '../../views/tool-name.js';
import type { FailedDefinition } from '../failed-definition.js';
import type { ModelReply } from '../model.js';

/** A loop that the model may call. */
export interface LinkedTool {
  /** The id of the loop. */
  readonly loopId: string;
  /** The name in the journal and in events: that of an inline tool, or the id of any other loop. */
  readonly name: string;
  /** True if its successful output becomes the output of the agent. */
  readonly isHandoff: boolean;
  /** The description for the model; undefined, like `loop`, if no loop with that id is registered. */
  modelTool: ModelTool | undefined;
  /** True if the loop declares that it changes nothing; see `isReadOnlyLoop`. */
  isReadOnly: boolean;
  loop: Loop | undefined;
  /** Why the definition of the loop could not be loaded, if it was found. */
  failure: FailedDefinition | undefined;
}

/** Returns the description of a loop for the model, under the name of the tool. */
export function toModelTool(toolName: string, { name, description = name, inputSchema }: LoopDef): ModelTool {
  const schema = typeof inputSchema === 'object' ? inputSchema : {};
  // Providers accept only object schemas, so a schema without a type becomes one.
  return { type: 'function', name: toolNameOf(toolName), description, inputSchema: { type: 'object', ...schema } };
}

/** True if a loop declares that it changes nothing: by `metadata.readOnly`, or else by the safety `pure`. */
export function isReadOnlyLoop({ metadata, tool }: LoopDef): boolean {
  return typeof metadata?.readOnly === 'boolean' ? metadata.readOnly : tool?.safety === 'pure';
}

/** The tools of one agent, by loop id, by name and by the name that the model uses. */
export class ToolTable {
  readonly tools: readonly LinkedTool[];
  readonly byId: ReadonlyMap<string, LinkedTool>;
  readonly byName: ReadonlyMap<string, LinkedTool>;
  /**
   * Keys are the names that the model uses, the names and the ids, which scripted models use. No name equals the id of
   * another tool: such an agent is refused when it is defined or registered.
   */
  private readonly byModelName: ReadonlyMap<string, LinkedTool>;

  constructor(tools: readonly LinkedTool[]) {
    this.tools = tools;
    this.byId = new Map(tools.map((tool) => [tool.loopId, tool]));
    this.byName = new Map(tools.map((tool) => [tool.name, tool]));
    const modelNames = tools.map((tool) => [toolNameOf(tool.name), tool] as const);
    this.byModelName = new Map([...this.byId, ...this.byName, ...modelNames]);
  }

  /** Returns the name of the tool that the model calls by this name; the name itself if there is none. */
  nameOf(modelName: string): string {
    return this.byModelName.get(modelName)?.name ?? modelName;
  }

  /** Replaces the names that the model uses in a reply with those of the tools and marks calls of read-only tools. */
  withToolNames(reply: ModelReply): ModelReply {
    const { toolCalls } = reply;
    if (toolCalls === undefined || toolCalls.every((call) => this.withToolName(call) === call)) return reply;
    return { ...reply, toolCalls: toolCalls.map((call) => this.withToolName(call)) };
  }

  private withToolName(call: RecordedToolCall): RecordedToolCall {
    const tool = this.byModelName.get(call.name);
    // guard: called-tool-resolved-to-its-id
    if (tool === undefined || (tool.name === call.name && !tool.isReadOnly)) return call;
    return tool.isReadOnly ? { ...call, name: tool.name, readOnly: true } : { ...call, name: tool.name };
  }
}

/** The options for running the tool calls of one reply. */
export interface ToolRunOptions {
  readonly agentKey: string;
  readonly toolsByName: ReadonlyMap<string, LinkedTool>;
  readonly restrictions: RestrictionTable;
  /** The reason if all calls are refused; undefined otherwise. */
  readonly refusalReason: string | undefined;
  /** The timeout of each call, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Runs the tool calls of one reply concurrently, and returns what `onEnded` returns for their outcomes, which have the
 * order of the calls. A single call is a step of the agent itself; several are branches of a group.
 */
export function runToolCalls<T>(
  scope: Scope,
  calls: readonly RecordedToolCall[],
  args: readonly Json[],
  options: ToolRunOptions,
  onEnded: (outcomes: readonly ToolCallOutcome[]) => T,
): Promise<T> {
  const [only] = calls;
  if (only !== undefined && calls.length === 1)
    return runToolCall(scope, only, args[0] ?? null, options).then((outcome) => onEnded([outcome]));
  return scope
    .all(calls.map((call, index) => (branch: Scope) => runToolCall(branch, call, args[index] ?? null, options)))
    .then(onEnded);
}

function runToolCall(
  scope: Scope,
  call: RecordedToolCall,
  args: Json,
  options: ToolRunOptions,
): Promise<ToolCallOutcome> {
  const { agentKey, toolsByName, restrictions, refusalReason, timeoutMs } = options;
  const { key } = scope;
  const { loop, loopId = call.name } = toolsByName.get(call.name) ?? {};
  if (refusalReason !== undefined) return refuseToolCall(scope, call, 'TOOL_NOT_ADMITTED', refusalReason);
  if (loop === undefined)
    return refuseToolCall(scope, call, 'TOOL_NOT_FOUND', unknownToolMessage(call.name, toolsByName));
  if (restrictions.approvalPolicy(key, loopId, call.name) === 'blocked')
    return refuseToolCall(scope, call, 'TOOL_NOT_ADMITTED', `"${call.name}" is blocked here.`);
  // parseArgumentsOrText returned the text itself, so it is not valid JSON: no JSON text equals its own value.
  if (args === call.input)
    return refuseToolCall(scope, call, 'INPUT_VALIDATION_FAILED', invalidArgumentsMessage(call.input));
  restrictions.toolCallStarted(key, { agentKey, toolCallId: call.id, loopId, toolName: call.name, timeoutMs });
  const finish = (outcome: ToolCallOutcome): ToolCallOutcome => {
    restrictions.toolCallEnded(key);
    return outcome;
  };
  return scope.call(loop, args).then(
    (value) => finish({ value: value as Json }),
    (thrown) => finish({ error: toLoopError(thrown).toErrorRecord() }),
  );
}

/** Records that a tool call does not run, and returns its error. */
async function refuseToolCall(
  scope: Scope,
  { id, name }: RecordedToolCall,
  code: string,
  message: string,
): Promise<ToolCallOutcome> {
  await scope.record(TOOL_REFUSED, () => ({ id, name: name.slice(0, 200), code, message }));
  return { error: { code, message } };
}

function unknownToolMessage(name: string, tools: ReadonlyMap<string, LinkedTool>): string {
  const names = [...tools.keys()].slice(0, 50).map(toolNameOf).join(', ');
  return `There is no tool ${JSON.stringify(name.slice(0, 100))}; ${names === '' ? 'there are none' : `there are ${names}`}.`;
}

function invalidArgumentsMessage(input: string): string {
  let reason = '';
  try {
    parseArguments(input);
  } catch (thrown) {
    if (thrown instanceof Error) reason = thrown.message.slice(0, 300);
  }
  return `The arguments are not usable JSON: ${reason}`;
}
