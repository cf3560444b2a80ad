/**
 * The tools of an agent: loops of any kind, shown to the model and run when it asks. Whatever goes wrong with one (there
 * is none of that name, its arguments do not fit, it throws, somebody says no) is a result that the model sees.
 */

import { outcomeOf } from '../../base/errors.js';
import type { Loop, Scope } from '../../protocol/body.js';
import type { Json } from '../../protocol/json.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { ModelTool } from '../../protocol/model.js';
import { REFUSED } from '../../views/history.js';
import { type AskedCall, readArguments, type ToolEnd } from '../../views/messages.js';
import { toolNameOf } from '../../views/tool-name.js';
import type { ModelReply } from '../model.js';
import type { Watches } from './watch.js';

/** A loop that the model may call. */
export interface LinkedTool {
  /** The id of the loop. */
  readonly name: string;
  /** Whether what it answers is the answer of the agent. */
  readonly handoff: boolean;
  /** What the model is shown; undefined, like the loop, if there is none of that id. */
  shown: ModelTool | undefined;
  readOnly: boolean;
  loop: Loop | undefined;
}

/** What the model is told of a loop. */
export function shownTool({ id, name, description = name, inputSchema }: LoopDef): ModelTool {
  const schema = typeof inputSchema === 'object' ? inputSchema : {};
  // Providers take nothing but objects.
  return { type: 'function', name: toolNameOf(id), description, inputSchema: { type: 'object', ...schema } };
}

/** Whether a loop declares that it changes nothing: `metadata.readOnly`, by default whether its safety is `pure`. */
export function isReadOnly({ metadata, tool }: LoopDef): boolean {
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
    this.byId = new Map(tools.map((tool) => [tool.name, tool]));
    this.byName = new Map([...this.byId, ...tools.map((tool) => [toolNameOf(tool.name), tool] as const)]);
  }

  /** The id of the loop that a model calls by this name; the name itself if there is none. */
  idOf(name: string): string {
    return this.byName.get(name)?.name ?? name;
  }

  /** A reply with the ids of the tools that it calls in place of their names, and with what is known of them. */
  marked(reply: ModelReply): ModelReply {
    const { toolCalls } = reply;
    if (toolCalls === undefined || toolCalls.every((call) => this.mark(call) === call)) return reply;
    return { ...reply, toolCalls: toolCalls.map((call) => this.mark(call)) };
  }

  private mark(call: AskedCall): AskedCall {
    const tool = this.byName.get(call.name);
    // guard: called-tool-resolved-to-its-id
    if (tool === undefined || (tool.name === call.name && !tool.readOnly)) return call;
    return tool.readOnly ? { ...call, name: tool.name, readOnly: true } : { ...call, name: tool.name };
  }
}

/** What the calls of one reply are run with. */
export interface Hands {
  readonly agent: string;
  readonly tools: ReadonlyMap<string, LinkedTool>;
  readonly watches: Watches;
  /** Why none of the calls may run, if so. */
  readonly refusal: string | undefined;
  /** How long one of them may take, in milliseconds. */
  readonly limitMs: number;
}

/**
 * Runs the calls of one reply side by side; how each ended, in the order of the calls. One alone is a step of the agent
 * itself, several are branches of a group.
 */
export function runCalls(
  scope: Scope,
  calls: readonly AskedCall[],
  given: readonly Json[],
  hands: Hands,
): Promise<readonly ToolEnd[]> {
  const [only] = calls;
  if (only !== undefined && calls.length === 1)
    return runOne(scope, only, given[0] ?? null, hands).then((end) => [end]);
  return scope.all(calls.map((call, index) => (branch: Scope) => runOne(branch, call, given[index] ?? null, hands)));
}

function runOne(scope: Scope, call: AskedCall, given: Json, hands: Hands): Promise<ToolEnd> {
  const { agent, tools, watches, refusal, limitMs } = hands;
  const { key } = scope;
  const loop = tools.get(call.name)?.loop;
  if (refusal !== undefined) return refused(scope, call, 'TOOL_NOT_ADMITTED', refusal);
  if (loop === undefined) return refused(scope, call, 'TOOL_NOT_FOUND', unknown(call.name, tools));
  if (watches.policy(key, call.name) === 'blocked')
    return refused(scope, call, 'TOOL_NOT_ADMITTED', `"${call.name}" is blocked here.`);
  // No JSON text is its own value.
  if (given === call.input) return refused(scope, call, 'INPUT_VALIDATION_FAILED', flawOf(call.input));
  watches.send(key, { agent, toolCallId: call.id, tool: call.name, limitMs });
  const done = (end: ToolEnd): ToolEnd => {
    watches.done(key);
    return end;
  };
  return scope.call(loop, given).then(
    (value) => done({ value: value as Json }),
    (thrown) => done({ error: outcomeOf(thrown).record() }),
  );
}

async function refused(scope: Scope, { id, name }: AskedCall, code: string, message: string): Promise<ToolEnd> {
  await scope.record(REFUSED, () => ({ id, name: name.slice(0, 200), code, message }));
  return { error: { code, message } };
}

function unknown(name: string, tools: ReadonlyMap<string, LinkedTool>): string {
  const known = [...tools.keys()].slice(0, 50).map(toolNameOf).join(', ');
  return `There is no tool ${JSON.stringify(name.slice(0, 100))}; ${known === '' ? 'there are none' : `there are ${known}`}.`;
}

/** What is wrong with arguments that are no value. */
function flawOf(input: string): string {
  let said = '';
  try {
    readArguments(input);
  } catch (thrown) {
    if (thrown instanceof Error) said = thrown.message.slice(0, 300);
  }
  return `The arguments are not JSON that can be used: ${said}`;
}
