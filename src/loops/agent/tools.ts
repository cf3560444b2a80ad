/**
 * The tools of an agent: loops of any kind, shown to the model and run when it asks. Whatever goes wrong with one (there
 * is none of that name, its arguments do not fit, it throws, somebody says no) is a result that the model sees.
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
import type { ModelReply } from '../model.js';

/** A loop that the model may call. */
export interface LinkedTool {
  /** The id of the loop. */
  readonly loopId: string;
  /** Whether what it answers is the answer of the agent. */
  readonly isHandoff: boolean;
  /** What the model is shown; undefined, like the loop, if there is none of that id. */
  modelTool: ModelTool | undefined;
  isReadOnly: boolean;
  loop: Loop | undefined;
}

/** What the model is told of a loop. */
export function toModelTool({ id, name, description = name, inputSchema }: LoopDef): ModelTool {
  const schema = typeof inputSchema === 'object' ? inputSchema : {};
  // Providers take nothing but objects.
  return { type: 'function', name: toolNameOf(id), description, inputSchema: { type: 'object', ...schema } };
}

/** Whether a loop declares that it changes nothing: `metadata.readOnly`, by default whether its safety is `pure`. */
export function isReadOnlyLoop({ metadata, tool }: LoopDef): boolean {
  return typeof metadata?.readOnly === 'boolean' ? metadata.readOnly : tool?.safety === 'pure';
}

/** The tools of one agent, found by loop id and by what a model may call them. */
export class ToolTable {
  readonly tools: readonly LinkedTool[];
  readonly byId: ReadonlyMap<string, LinkedTool>;
  /**
   * Both the name that a model is shown and the id itself, which a script uses. No name is the id of another tool: such an
   * agent is not registered.
   */
  private readonly byName: ReadonlyMap<string, LinkedTool>;

  constructor(tools: readonly LinkedTool[]) {
    this.tools = tools;
    this.byId = new Map(tools.map((tool) => [tool.loopId, tool]));
    this.byName = new Map([...this.byId, ...tools.map((tool) => [toolNameOf(tool.loopId), tool] as const)]);
  }

  /** The id of the loop that a model calls by this name; the name itself if there is none. */
  loopIdOf(name: string): string {
    return this.byName.get(name)?.loopId ?? name;
  }

  /** A reply with the ids of the tools that it calls in place of their names, and with what is known of them. */
  withLoopIds(reply: ModelReply): ModelReply {
    const { toolCalls } = reply;
    if (toolCalls === undefined || toolCalls.every((call) => this.withLoopId(call) === call)) return reply;
    return { ...reply, toolCalls: toolCalls.map((call) => this.withLoopId(call)) };
  }

  private withLoopId(call: RecordedToolCall): RecordedToolCall {
    const tool = this.byName.get(call.name);
    // guard: called-tool-resolved-to-its-id
    if (tool === undefined || (tool.loopId === call.name && !tool.isReadOnly)) return call;
    return tool.isReadOnly ? { ...call, name: tool.loopId, readOnly: true } : { ...call, name: tool.loopId };
  }
}

/** What the calls of one reply are run with. */
export interface ToolRunOptions {
  readonly agentKey: string;
  readonly toolsById: ReadonlyMap<string, LinkedTool>;
  readonly restrictions: RestrictionTable;
  /** Why none of the calls may run, if so. */
  readonly refusalReason: string | undefined;
  /** How long one of them may take, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Runs the calls of one reply side by side; how each ended, in the order of the calls. One alone is a step of the agent
 * itself, several are branches of a group.
 */
export function runToolCalls(
  scope: Scope,
  calls: readonly RecordedToolCall[],
  given: readonly Json[],
  hands: ToolRunOptions,
): Promise<readonly ToolCallOutcome[]> {
  const [only] = calls;
  if (only !== undefined && calls.length === 1)
    return runToolCall(scope, only, given[0] ?? null, hands).then((end) => [end]);
  return scope.all(
    calls.map((call, index) => (branch: Scope) => runToolCall(branch, call, given[index] ?? null, hands)),
  );
}

function runToolCall(
  scope: Scope,
  call: RecordedToolCall,
  given: Json,
  hands: ToolRunOptions,
): Promise<ToolCallOutcome> {
  const { agentKey, toolsById, restrictions, refusalReason, timeoutMs } = hands;
  const { key } = scope;
  const loop = toolsById.get(call.name)?.loop;
  if (refusalReason !== undefined) return refuseToolCall(scope, call, 'TOOL_NOT_ADMITTED', refusalReason);
  if (loop === undefined)
    return refuseToolCall(scope, call, 'TOOL_NOT_FOUND', unknownToolMessage(call.name, toolsById));
  if (restrictions.approvalPolicy(key, call.name) === 'blocked')
    return refuseToolCall(scope, call, 'TOOL_NOT_ADMITTED', `"${call.name}" is blocked here.`);
  // No JSON text is its own value.
  if (given === call.input)
    return refuseToolCall(scope, call, 'INPUT_VALIDATION_FAILED', invalidArgumentsMessage(call.input));
  restrictions.toolCallStarted(key, { agentKey, toolCallId: call.id, toolName: call.name, timeoutMs });
  const done = (end: ToolCallOutcome): ToolCallOutcome => {
    restrictions.toolCallEnded(key);
    return end;
  };
  return scope.call(loop, given).then(
    (value) => done({ value: value as Json }),
    (thrown) => done({ error: toLoopError(thrown).toErrorRecord() }),
  );
}

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
  const known = [...tools.keys()].slice(0, 50).map(toolNameOf).join(', ');
  return `There is no tool ${JSON.stringify(name.slice(0, 100))}; ${known === '' ? 'there are none' : `there are ${known}`}.`;
}

/** What is wrong with arguments that are no value. */
function invalidArgumentsMessage(input: string): string {
  let said = '';
  try {
    parseArguments(input);
  } catch (thrown) {
    if (thrown instanceof Error) said = thrown.message.slice(0, 300);
  }
  return `The arguments are not JSON that can be used: ${said}`;
}
