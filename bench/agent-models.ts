// The mock models of both loops. An answer depends only on the length of the history, so that one model serves any number
// of runs, and a truncated or duplicated history fails the run.

import type { LanguageModelV3FinishReason, LanguageModelV3StreamPart, LanguageModelV3ToolCall } from '@ai-sdk/provider';
import { convertArrayToReadableStream, MockLanguageModelV3 } from 'ai/test';

/** An answer as content and as stream parts. */
interface Answer {
  readonly content: (LanguageModelV3ToolCall | { type: 'text'; text: string })[];
  readonly parts: LanguageModelV3StreamPart[];
  readonly finishReason: LanguageModelV3FinishReason;
}

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

/** The final text of the model. */
export const DONE = 'done';

/** One delta of a streamed answer. */
export const DELTA = 'word ';

function answer(content: Answer['content'], parts: readonly LanguageModelV3StreamPart[]): Answer {
  const unified = content[0]?.type === 'tool-call' ? 'tool-calls' : 'stop';
  const finishReason = { unified, raw: undefined } as const;
  const finish = { type: 'finish', usage, finishReason } as const;
  return { content, parts: [{ type: 'stream-start', warnings: [] }, ...parts, finish], finishReason };
}

function text(texts: readonly string[]): Answer {
  const deltas = texts.map((delta) => ({ type: 'text-delta', id: 't', delta }) as const);
  const parts = [{ type: 'text-start', id: 't' }, ...deltas, { type: 'text-end', id: 't' }] as const;
  return answer([{ type: 'text', text: texts.join('') }], parts);
}

/** Returns an answer with `count` calls of the tool `increment`, numbered from `first`. */
function calls(count: number, first = 0): Answer {
  const each = Array.from({ length: count }, (_, i): LanguageModelV3ToolCall => {
    const n = first + i;
    return { type: 'tool-call', toolCallId: `call-${n}`, toolName: 'increment', input: `{"n":${n}}` };
  });
  return answer(each, each);
}

/** A model whose answer depends on the number of messages. */
function modelOf(answerTo: (messageCount: number) => Answer): MockLanguageModelV3 {
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      // The mock retains all calls; after thousands of runs the garbage collector would dominate.
      model.doGenerateCalls.length = 0;
      const { content, finishReason } = answerTo(prompt.length);
      return { content, warnings: [], usage, finishReason };
    },
    doStream: async ({ prompt }) => {
      model.doStreamCalls.length = 0;
      return { stream: convertArrayToReadableStream(answerTo(prompt.length).parts) };
    },
  });
  return model;
}

const done = text([DONE]);

/** Calls the tool once in each round. A round adds a call and its result to the history. */
export function callsInRounds(rounds: number): MockLanguageModelV3 {
  const each = Array.from({ length: rounds }, (_, n) => calls(1, n));
  return modelOf((messageCount) => each[(messageCount - 1) / 2] ?? done);
}

/** Calls the tool `count` times in one reply. */
export function callsAtOnce(count: number): MockLanguageModelV3 {
  const all = calls(count);
  return modelOf((messageCount) => (messageCount === 1 ? all : done));
}

/** Answers with a text of `count` deltas. */
export function answersInDeltas(count: number): MockLanguageModelV3 {
  const all = text(Array<string>(count).fill(DELTA));
  return modelOf(() => all);
}

/** Answers with a fixed text. */
export function answersWith(answerText: string): MockLanguageModelV3 {
  const all = text([answerText]);
  return modelOf(() => all);
}
