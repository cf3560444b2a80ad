/** A model made of a function that answers: what the mock and the scripted backend share. No network is involved. */
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

/** One answer, whole. */
export interface CannedReply {
  /** The text, in the pieces that it is streamed in. */
  readonly chunks: readonly string[];
  readonly reasoning?: string;
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly delayMs?: number;
  /** Thrown in place of the answer, after the delay. */
  readonly error?: LoopError;
}

/** A model that answers each call with what the function gives for it. */
export function createCannedModel(
  provider: string,
  modelId: string,
  answer: (call: ModelCallOptions) => Promise<CannedReply> | CannedReply,
): Model {
  const answered = async (call: ModelCallOptions): Promise<CannedReply> => {
    call.abortSignal?.throwIfAborted();
    const given = await answer(call);
    const signal = call.abortSignal;
    if (given.delayMs) await pause(given.delayMs, undefined, signal ? { signal } : {});
    if (given.error) throw given.error;
    return given;
  };
  return {
    specificationVersion: 'v3',
    provider,
    modelId,
    supportedUrls: {},
    doGenerate: async (call) => {
      const given = await answered(call);
      return { content: contentOf(given), finishReason: finishReasonOf(given), usage: usageOf(given), warnings: [] };
    },
    doStream: async (call) => {
      const given = await answered(call);
      const stream = new ReadableStream<ModelStreamPart>({
        start(controller) {
          for (const part of streamPartsOf(given, modelId)) controller.enqueue(part);
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

function contentOf(answer: CannedReply): ModelContent[] {
  const content: ModelContent[] = [];
  if (answer.reasoning) content.push({ type: 'reasoning', text: answer.reasoning });
  if (answer.chunks.length > 0) content.push({ type: 'text', text: answer.chunks.join('') });
  return [...content, ...toolCallsOf(answer)];
}

function* streamPartsOf(answer: CannedReply, modelId: string): Generator<ModelStreamPart> {
  yield { type: 'stream-start', warnings: [] };
  yield { type: 'response-metadata', modelId };
  if (answer.reasoning) yield* streamBlock('reasoning', [answer.reasoning]);
  if (answer.chunks.length > 0) yield* streamBlock('text', answer.chunks);
  yield* toolCallsOf(answer);
  yield { type: 'finish', finishReason: finishReasonOf(answer), usage: usageOf(answer) };
}

function* streamBlock(kind: 'text' | 'reasoning', pieces: readonly string[]): Generator<ModelStreamPart> {
  const id = kind;
  yield { type: `${kind}-start`, id };
  for (const delta of pieces) yield { type: `${kind}-delta`, id, delta };
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

/** A text in this many pieces of about equal length, fewer when it is shorter; no character is split. */
export function splitIntoChunks(text: string, pieces: number): string[] {
  const characters = Array.from(text);
  const count = Math.min(Math.max(1, pieces), characters.length);
  const edge = (index: number): number => Math.floor((index * characters.length) / count);
  return Array.from({ length: count }, (_, index) => characters.slice(edge(index), edge(index + 1)).join(''));
}

/** What messages say in words: every text, tool call and tool result, one a line. */
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
