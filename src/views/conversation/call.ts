/** Calls as a conversation sees them: agents, the tools that they asked for, and everything in between. */
import type { EventEnvelopeOf } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { OpenCall } from './calls.js';

/** A tool that was asked for: the envelope that stands for it, and its place among those of its reply. */
export interface Use {
  envelope: EventEnvelopeOf<'tool-call'>;
  readonly index: number;
  readonly total: number;
}

export interface Agent {
  /** The beginning of what it said last. */
  said: string;
  /** What its last reply asked for. */
  uses: readonly Use[];
}

/** The effect of a call whose result is told: an agent's model, or what a tool does. */
export interface Watched {
  readonly key: string;
  /** What its attempts returned: the layers may pass one of them on. */
  attempts: Map<string, Json | undefined> | undefined;
}

/** An open call, with what is told of it. */
export interface Call extends OpenCall {
  readonly at: number;
  readonly input: Json | undefined;
  agent: Agent | undefined;
  use: Use | undefined;
  effect: Watched | undefined;
  /** What the tool streamed. */
  said: string;
  /** Of a root: whether an agent began in it. */
  talks: boolean;
}

/** What an agent's last reply asked for with this step: of one call a step of the agent, of several the first of a branch. */
export function toolAt(agent: Call | undefined, key: string): Use | undefined {
  if (agent?.agent === undefined) return undefined;
  const { uses } = agent.agent;
  const last = key.lastIndexOf('/');
  if (last === agent.key.length) return uses.length === 1 ? uses[0] : undefined;
  const branch = key.lastIndexOf('/', last - 1);
  if (key.lastIndexOf('/', branch - 1) !== agent.key.length || key.slice(last) !== '/0') return undefined;
  return uses[Number(key.slice(branch + 1, last))];
}

/** The use that a call is part of, of the nearest agent above it. */
export function toolAround(call: Call): Use | undefined {
  for (let inner: Call | undefined = call; inner !== undefined; inner = inner.parent) {
    if (inner.use !== undefined) return inner.use;
    if (inner.parent?.agent !== undefined) return undefined;
  }
  return undefined;
}

export function agentAbove(call: Call): Call | undefined {
  let agent = call.parent;
  while (agent !== undefined && agent.agent === undefined) agent = agent.parent;
  return agent;
}

/** The generation around a call: that of the nearest agent above it, or the turn. */
export function generationAbove(call: Call): string {
  return (agentAbove(call) ?? rootOf(call)).key;
}

export function rootOf(call: Call): Call {
  let root = call;
  while (root.parent !== undefined) root = root.parent;
  return root;
}
