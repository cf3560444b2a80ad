/** Calls as a conversation sees them: agents, the tools that they asked for, and everything in between. */
import type { EventEnvelopeOf } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { OpenCall } from './open-calls.js';

/** A tool that was asked for: the envelope that stands for it, and its place among those of its reply. */
export interface ToolUse {
  envelope: EventEnvelopeOf<'tool-call'>;
  readonly index: number;
  readonly total: number;
}

export interface AgentState {
  /** The beginning of what it said last. */
  lastText: string;
  /** What its last reply asked for. */
  toolUses: readonly ToolUse[];
}

/** The effect of a call whose result is told: an agent's model, or what a tool does. */
interface TrackedEffect {
  readonly key: string;
  /** What its attempts returned: the layers may pass one of them on. */
  attemptResults: Map<string, Json | undefined> | undefined;
}

/** An open call, with what is told of it. */
export interface ConversationCall extends OpenCall {
  readonly startedAt: number;
  readonly input: Json | undefined;
  agent: AgentState | undefined;
  toolUse: ToolUse | undefined;
  trackedEffect: TrackedEffect | undefined;
  /** What the tool streamed. */
  streamedOutput: string;
  /** Of a root: whether an agent began in it. */
  hasAgent: boolean;
}

/** What an agent's last reply asked for with this step: of one call a step of the agent, of several the first of a branch. */
export function toolUseAt(agent: ConversationCall | undefined, key: string): ToolUse | undefined {
  if (agent?.agent === undefined) return undefined;
  const { toolUses } = agent.agent;
  const last = key.lastIndexOf('/');
  if (last === agent.key.length) return toolUses.length === 1 ? toolUses[0] : undefined;
  const branch = key.lastIndexOf('/', last - 1);
  if (key.lastIndexOf('/', branch - 1) !== agent.key.length || key.slice(last) !== '/0') return undefined;
  return toolUses[Number(key.slice(branch + 1, last))];
}

/** The use that a call is part of, of the nearest agent above it. */
export function enclosingToolUse(call: ConversationCall): ToolUse | undefined {
  for (let inner: ConversationCall | undefined = call; inner !== undefined; inner = inner.parent) {
    if (inner.toolUse !== undefined) return inner.toolUse;
    if (inner.parent?.agent !== undefined) return undefined;
  }
  return undefined;
}

export function enclosingAgent(call: ConversationCall): ConversationCall | undefined {
  let agent = call.parent;
  while (agent !== undefined && agent.agent === undefined) agent = agent.parent;
  return agent;
}

/** The generation around a call: that of the nearest agent above it, or the turn. */
export function enclosingGenerationId(call: ConversationCall): string {
  return (enclosingAgent(call) ?? rootCallOf(call)).key;
}

export function rootCallOf(call: ConversationCall): ConversationCall {
  let root = call;
  while (root.parent !== undefined) root = root.parent;
  return root;
}
