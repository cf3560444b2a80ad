/** A model that takes its replies from a function, without network access. The mock and scripted providers use it. */
import { setTimeout as pause } from 'node:timers/promises';
import type { LoopError } from '../../base/errors.js';
import type {
  Model,
  ModelCallOptions,
  ModelContent,
  ModelFinishReason,
  ModelMessage,
  ModelStreamPart,
  ModelToolCall,
  ModelUsage,
} from '../../protocol/model.js';

/** One complete reply. */
export interface CannedReply {
  /** The text, in the chunks in which it is streamed. */
  readonly chunks: readonly string[];
  readonly reasoning?: string;
  /** The tool calls. `input` is JSON text. */
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly delayMs?: number;
  /** Thrown instead of the reply, after the delay. */
  readonly error?: LoopError;
}

/** Creates a model that answers each call with the reply that the function returns for it. */
export function createCannedModel(
  provider: string,
  modelId: string,
  replyTo: (call: ModelCallOptions) => Promise<CannedReply> | CannedReply,
): Model {
  const delayedReplyTo = async (call: ModelCallOptions): Promise<CannedReply> => {
    call.abortSignal?.throwIfAborted();
    const reply = await replyTo(call);
    const signal = call.abortSignal;
    if (reply.delayMs) await pause(reply.delayMs, undefined, signal ? { signal } : {});
    if (reply.error) throw reply.error;
    return reply;
  };
  return {
    specificationVersion: 'v3',
    provider,
    modelId,
    supportedUrls: {},
    doGenerate: async (call) => {
      const reply = await delayedReplyTo(call);
      return { content: contentOf(reply), finishReason: finishReasonOf(reply), usage: usageOf(reply), warnings: [] };
    },
    doStream: async (call) => {
      const reply = await delayedReplyTo(call);
      const stream = new ReadableStream<ModelStreamPart>({
        start(controller) {
          for (const part of streamPartsOf(reply, modelId)) controller.enqueue(part);
          controller.close();
        },
      });
      return { stream };
    },
  };
}

function toolCallsOf({ toolCalls = [] }: CannedReply): ModelToolCall[] {
  return toolCalls.map(({ id, name, input }) => ({ type: 'tool-call', toolCallId: id, toolName: name, input }));
}

function contentOf(reply: CannedReply): ModelContent[] {
  const content: ModelContent[] = [];
  if (reply.reasoning) content.push({ type: 'reasoning', text: reply.reasoning });
  if (reply.chunks.length > 0) content.push({ type: 'text', text: reply.chunks.join('') });
  return [...content, ...toolCallsOf(reply)];
}

function* streamPartsOf(reply: CannedReply, modelId: string): Generator<ModelStreamPart> {
  yield { type: 'stream-start', warnings: [] };
  yield { type: 'response-metadata', modelId };
  if (reply.reasoning) yield* streamBlock('reasoning', [reply.reasoning]);
  if (reply.chunks.length > 0) yield* streamBlock('text', reply.chunks);
  yield* toolCallsOf(reply);
  yield { type: 'finish', finishReason: finishReasonOf(reply), usage: usageOf(reply) };
}

function* streamBlock(kind: 'text' | 'reasoning', deltas: readonly string[]): Generator<ModelStreamPart> {
  const id = kind;
  yield { type: `${kind}-start`, id };
  for (const delta of deltas) yield { type: `${kind}-delta`, id, delta };
  yield { type: `${kind}-end`, id };
}

function finishReasonOf({ toolCalls = [] }: CannedReply): ModelFinishReason {
  return { unified: toolCalls.length > 0 ? 'tool-calls' : 'stop', raw: undefined };
}

function usageOf({ inputTokens, outputTokens }: CannedReply): ModelUsage {
  return {
    inputTokens: { total: inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: outputTokens, text: undefined, reasoning: undefined },
  };
}

/**
 * Splits a text into `chunkCount` chunks of about equal length, at most one per code point. An empty text has no
 * chunks.
 */
export function splitIntoChunks(text: string, chunkCount: number): string[] {
  const characters = Array.from(text);
  const count = Math.min(Math.max(1, chunkCount), characters.length);
  const edge = (index: number): number => Math.floor((index * characters.length) / count);
  return Array.from({ length: count }, (_, index) => characters.slice(edge(index), edge(index + 1)).join(''));
}

/**
 * Returns the texts, the reasoning, the tool calls (name and input) and the tool results of messages, separated by
 * newlines. Omits messages whose role is not in `roles`.
 */
export function promptTextOf(prompt: readonly ModelMessage[], roles?: readonly ModelMessage['role'][]): string {
  const lines: string[] = [];
  for (const message of prompt) {
    if (roles && !roles.includes(message.role)) continue;
    if (message.role === 'system') lines.push(message.content);
    else for (const part of message.content) lines.push(...textLinesOf(part));
  }
  return lines.join('\n');
}

type MessagePart = Exclude<ModelMessage, { role: 'system' }>['content'][number];

function textLinesOf(part: MessagePart): string[] {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return [part.text];
    case 'tool-call':
      return [part.toolName, JSON.stringify(part.input) ?? ''];
    case 'tool-result': {
      const { output } = part;
      if (output.type === 'execution-denied') return [output.reason ?? ''];
      return [typeof output.value === 'string' ? output.value : JSON.stringify(output.value)];
    }
    default:
      return [];
  }
}
