// Agents for tests: a model that answers from a list of replies, and definitions of agents and their tools.

import type { ModelProvider } from '../../src/loops/model.js';
import type { AgentSpec, LoopDef } from '../../src/protocol/loop.js';
import type {
  Model,
  ModelCallOptions,
  ModelContent,
  ModelGenerateResult,
  ModelStreamPart,
} from '../../src/protocol/model.js';

/** One reply of a model. */
export interface Reply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly (readonly [name: string, args: unknown, id?: string])[];
  readonly usage?: readonly [input: number | undefined, output: number | undefined];
  readonly finish?: string;
  readonly error?: unknown;
}

/** A reply, or a function that computes it from the request. */
export type Scripted = Reply | ((call: ModelCallOptions) => Reply);

/** Returns a reply as stream parts. `index` numbers the tool calls of different replies. */
export function partsOf(reply: Reply, index: number): ModelStreamPart[] {
  const { text = '', reasoning = '', calls = [], usage = [7, 3], finish } = reply;
  const block = (kind: 'text' | 'reasoning', content: string): ModelStreamPart[] =>
    content === ''
      ? []
      : [
          { type: `${kind}-start`, id: kind },
          ...content.split(/(?<= )/).map((delta) => ({ type: `${kind}-delta` as const, id: kind, delta })),
          { type: `${kind}-end`, id: kind },
        ];
  const toolCalls = calls.flatMap(([toolName, args, id = `call-${index}`], callIndex): ModelStreamPart[] => {
    const toolCallId = calls.length > 1 && id === `call-${index}` ? `${id}-${callIndex}` : id;
    const input = typeof args === 'string' ? args : JSON.stringify(args);
    return [
      { type: 'tool-input-start', id: toolCallId, toolName },
      { type: 'tool-input-delta', id: toolCallId, delta: input },
      { type: 'tool-input-end', id: toolCallId },
      { type: 'tool-call', toolCallId, toolName, input },
    ];
  });
  const unified = (finish ?? (calls.length > 0 ? 'tool-calls' : 'stop')) as 'stop';
  const [input, output] = usage;
  return [
    { type: 'stream-start', warnings: [] },
    ...block('reasoning', reasoning),
    ...block('text', text),
    ...toolCalls,
    ...(reply.error === undefined ? [] : [{ type: 'error', error: reply.error } as const]),
    {
      type: 'finish',
      finishReason: { unified, raw: unified },
      usage: {
        inputTokens: { total: input, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: output, text: undefined, reasoning: undefined },
      },
    },
  ];
}

/** Joins stream parts to one result. Throws the error of an `error` part. */
export function wholeOf(parts: readonly ModelStreamPart[]): ModelGenerateResult {
  const content: ModelContent[] = [];
  for (const part of parts) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'tool-call') content.push(part);
    if (part.type === 'text-delta' || part.type === 'reasoning-delta') {
      const type = part.type === 'text-delta' ? 'text' : 'reasoning';
      const last = content.at(-1);
      if (last?.type === type) last.text += part.delta;
      else content.push({ type, text: part.delta });
    }
    if (part.type === 'finish') return { content, finishReason: part.finishReason, usage: part.usage, warnings: [] };
  }
  throw new Error('The stream has no finish part.');
}

/** Returns a model that answers these replies, one after another, and records its requests in `requests`. */
export function modelOf(
  replies: readonly Scripted[],
  id = 'replies',
): Model & { readonly requests: ModelCallOptions[] } {
  const requests: ModelCallOptions[] = [];
  const next = (call: ModelCallOptions): ModelStreamPart[] => {
    const index = requests.push(call) - 1;
    const scripted = replies[index];
    if (scripted === undefined)
      throw new Error(`The model was called ${index + 1} times, but has ${replies.length} replies.`);
    return partsOf(typeof scripted === 'function' ? scripted(call) : scripted, index);
  };
  return {
    requests,
    specificationVersion: 'v3',
    provider: id,
    modelId: `${id}-1`,
    supportedUrls: {},
    doGenerate: async (call) => wholeOf(next(call)),
    doStream: async (call) => ({ stream: ReadableStream.from(next(call)) as ReadableStream<ModelStreamPart> }),
  };
}

/** Returns a provider of these replies. It skips the replies that the session has recorded already. */
export function replyProvider(
  replies: readonly Scripted[],
  id = 'replies',
): ModelProvider & { readonly requests: ModelCallOptions[] } {
  const requests: ModelCallOptions[] = [];
  return {
    id,
    defaultModel: `${id}-1`,
    requests,
    open: async (_, { replyCount }) => {
      const model = modelOf(replies.slice(replyCount), id);
      return {
        ...model,
        doGenerate: (call) => {
          requests.push(call);
          return model.doGenerate(call);
        },
        doStream: (call) => {
          requests.push(call);
          return model.doStream(call);
        },
      };
    },
  };
}

/** The definition of an agent. */
export function agentDef(id: string, spec: Partial<AgentSpec> = {}, more: Partial<LoopDef> = {}): LoopDef {
  return {
    id,
    name: id,
    version: '1.0.0',
    inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
    outputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    kind: 'composite',
    composite: { agent: { backend: { id: 'replies' }, tools: [], ...spec } },
    ...more,
  };
}
