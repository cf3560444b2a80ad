/**
 * The mock models that both loops ask: one object for the AI SDK and for ours. An answer depends on the length of the
 * history alone, so that a model serves any number of runs, and a history that came cut or doubled ends a run wrongly.
 */
import type { LanguageModelV3FinishReason, LanguageModelV3StreamPart, LanguageModelV3ToolCall } from '@ai-sdk/provider';
import { convertArrayToReadableStream, MockLanguageModelV3 } from 'ai/test';

/** The same answer, whole and as it comes. */
interface Answer {
  readonly content: (LanguageModelV3ToolCall | { type: 'text'; text: string })[];
  readonly parts: LanguageModelV3StreamPart[];
  readonly finishReason: LanguageModelV3FinishReason;
}

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

/** What the model says when it is done. */
export const DONE = 'done';

/** One piece of a streamed answer. */
export const PIECE = 'word ';

function answer(content: Answer['content'], parts: readonly LanguageModelV3StreamPart[]): Answer {
  const unified = content[0]?.type === 'tool-call' ? 'tool-calls' : 'stop';
  const finishReason = { unified, raw: undefined } as const;
  const finish = { type: 'finish', usage, finishReason } as const;
  return { content, parts: [{ type: 'stream-start', warnings: [] }, ...parts, finish], finishReason };
}

function text(pieces: readonly string[]): Answer {
  const deltas = pieces.map((delta) => ({ type: 'text-delta', id: 't', delta }) as const);
  const parts = [{ type: 'text-start', id: 't' }, ...deltas, { type: 'text-end', id: 't' }] as const;
  return answer([{ type: 'text', text: pieces.join('') }], parts);
}

/** So many calls of the tool `increment`, numbered from the first. */
function calls(count: number, first = 0): Answer {
  const each = Array.from({ length: count }, (_, i): LanguageModelV3ToolCall => {
    const n = first + i;
    return { type: 'tool-call', toolCallId: `call-${n}`, toolName: 'increment', input: `{"n":${n}}` };
  });
  return answer(each, each);
}

/** A model that answers by how many messages it is shown. */
function modelOf(answerTo: (history: number) => Answer): MockLanguageModelV3 {
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      // The mock keeps all that it was ever asked: thousands of runs would measure the collector.
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

/** Calls the tool once in each of so many rounds, then is done: a round adds a call and its result to the history. */
export function callsInRounds(rounds: number): MockLanguageModelV3 {
  const each = Array.from({ length: rounds }, (_, n) => calls(1, n));
  return modelOf((history) => each[(history - 1) / 2] ?? done);
}

/** Calls the tool so many times at once, then is done. */
export function callsAtOnce(count: number): MockLanguageModelV3 {
  const all = calls(count);
  return modelOf((history) => (history === 1 ? all : done));
}

/** Answers with a text of so many pieces. */
export function answersInPieces(count: number): MockLanguageModelV3 {
  const all = text(Array<string>(count).fill(PIECE));
  return modelOf(() => all);
}

/** Answers with this text. */
export function answersWith(said: string): MockLanguageModelV3 {
  const all = text([said]);
  return modelOf(() => all);
}
