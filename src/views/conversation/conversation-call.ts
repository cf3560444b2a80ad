/** The open calls of a conversation: agents, their tool calls, and the calls in between. */
import type { EventEnvelopeOf } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { OpenCall } from './open-calls.js';

/** A tool call of a model: its envelope, and its zero-based index among the `total` tool calls of the reply. */
export interface ToolUse {
  envelope: EventEnvelopeOf<'tool-call'>;
  readonly index: number;
  readonly total: number;
}

/** The state of a call that is an agent. */
export interface AgentState {
  /** The start of its last message. */
  lastText: string;
  /** The tool calls of its last reply. */
  toolUses: readonly ToolUse[];
}

/** An effect whose result is displayed: the model call of an agent, or the effect of a tool. */
interface TrackedEffect {
  readonly key: string;
  /** The results of its attempts, by key. The layers may settle the effect with one of them. */
  attemptResults: Map<string, Json | undefined> | undefined;
}

/** An open call and the state that its envelopes need. */
export interface ConversationCall extends OpenCall {
  /** The kind of the loop's body; undefined for a tool, a composite of steps, and calls of earlier versions. */
  readonly bodyKind: string | undefined;
  readonly startedAt: number;
  readonly input: Json | undefined;
  agent: AgentState | undefined;
  /** The tool call of a model that this call runs; undefined for other calls. */
  toolUse: ToolUse | undefined;
  trackedEffect: TrackedEffect | undefined;
  /** The output that the tool streamed. */
  streamedOutput: string;
}

/**
 * Returns the tool call of an agent's last reply that runs at this key; undefined if there is none or the call is not
 * an agent. A single tool call is a step of the agent; of several, each is the first step of a branch.
 */
export function toolUseAt(agent: ConversationCall | undefined, key: string): ToolUse | undefined {
  if (agent?.agent === undefined) return undefined;
  const { toolUses } = agent.agent;
  const last = key.lastIndexOf('/');
  if (last === agent.key.length) return toolUses.length === 1 ? toolUses[0] : undefined;
  const branch = key.lastIndexOf('/', last - 1);
  if (key.lastIndexOf('/', branch - 1) !== agent.key.length || key.slice(last) !== '/0') return undefined;
  return toolUses[Number(key.slice(branch + 1, last))];
}

/** Returns the tool call, of the nearest enclosing agent, that contains a call; undefined if there is none. */
export function enclosingToolUse(call: ConversationCall): ToolUse | undefined {
  for (let inner: ConversationCall | undefined = call; inner !== undefined; inner = inner.parent) {
    if (inner.toolUse !== undefined) return inner.toolUse;
    if (inner.parent?.agent !== undefined) return undefined;
  }
  return undefined;
}

/** Returns the nearest agent that encloses a call; undefined if there is none. */
export function enclosingAgent(call: ConversationCall): ConversationCall | undefined {
  let agent = call.parent;
  while (agent !== undefined && agent.agent === undefined) agent = agent.parent;
  return agent;
}

/** Returns the id of the enclosing generation: the key of the nearest enclosing agent, or of the turn. */
export function enclosingGenerationId(call: ConversationCall): string {
  return (enclosingAgent(call) ?? rootCallOf(call)).key;
}

/** Returns the root call of the turn that contains a call. */
function rootCallOf(call: ConversationCall): ConversationCall {
  let root = call;
  while (root.parent !== undefined) root = root.parent;
  return root;
}
