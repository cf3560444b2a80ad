// Runs tools in generateText and streamText of the AI SDK, with a model that calls one tool.

import { generateText, stepCountIs, streamText, type ToolSet } from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { loopsTool, type ToolCallOptions, type ToolContext, type TurnTool } from '../../src/protocol/tool.js';

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that calls the tool `t` with this input and then answers "done". */
export function caller(input: unknown): MockLanguageModelV3 {
  const call = { type: 'tool-call' as const, toolCallId: 'c1', toolName: 't', input: JSON.stringify(input) };
  const [calls, stop] = [
    { unified: 'tool-calls' as const, raw: undefined },
    { unified: 'stop' as const, raw: undefined },
  ];
  const text = { type: 'text' as const, text: 'done' };
  return new MockLanguageModelV3({
    doGenerate: [
      { content: [call], finishReason: calls, usage, warnings: [] },
      { content: [text], finishReason: stop, usage, warnings: [] },
    ],
    doStream: [
      { stream: convertArrayToReadableStream([call, { type: 'finish', finishReason: calls, usage }]) },
      {
        stream: convertArrayToReadableStream([
          { type: 'text-start', id: '1' },
          { type: 'text-delta', id: '1', delta: 'done' },
          { type: 'text-end', id: '1' },
          { type: 'finish', finishReason: stop, usage },
        ]),
      },
    ],
  });
}

interface ToolRun {
  /** The outcome of the call: a result, or the message of an error. */
  readonly parts: readonly (readonly [type: string, value: unknown])[];
  /** The result in the second prompt of the model. */
  readonly shown: unknown;
  readonly text: string;
}

interface Part {
  readonly type: string;
  readonly output?: unknown;
  readonly error?: unknown;
  readonly preliminary?: boolean | undefined;
}

const outcome = ({ type, output, error, preliminary }: Part): readonly [string, unknown] => [
  preliminary === true ? 'preliminary' : type,
  error instanceof Error ? `${error.name}: ${error.message}` : (error ?? output),
];

const isOutcome = ({ type }: Part): boolean => type === 'tool-result' || type === 'tool-error';

/** The settings of both functions. */
export const settings = { prompt: 'Do it.', maxRetries: 0, stopWhen: stepCountIs(3) } as const;

async function generated(t: ToolSet[string], input: unknown): Promise<ToolRun> {
  const model = caller(input);
  const { steps, text } = await generateText({ ...settings, model, tools: { t } });
  const parts = steps.flatMap(({ content }) => content as readonly Part[]).filter(isOutcome);
  return { parts: parts.map(outcome), shown: model.doGenerateCalls[1]?.prompt.at(-1)?.content, text };
}

/** Runs a tool in streamText. */
export async function streamed(t: ToolSet[string], input: unknown, model = caller(input)): Promise<ToolRun> {
  const result = streamText({ ...settings, model, tools: { t }, onError: () => {} });
  const parts: Part[] = [];
  for await (const part of result.fullStream) parts.push(part);
  const shown = model.doStreamCalls[1]?.prompt.at(-1)?.content;
  return { parts: parts.filter(isOutcome).map(outcome), shown, text: await result.text };
}

/** Both ways to run a tool. */
export const ways = [generated, streamed];

/** Returns the tool of the protocol's example, its writes, and the contexts of its approval requests. */
export function writer() {
  const wrote: [path: string, content: string][] = [];
  const asked: ToolContext[] = [];
  const writeFile = loopsTool({
    name: 'write_file',
    description: 'Write content to a file',
    readOnly: false,
    inputSchema: z.object({ path: z.string(), content: z.string().default('') }),
    requestApproval: ({ path }, ctx) => {
      asked.push(ctx);
      return ctx.mode === 'unsupervised' ? null : `Write to \`${path}\`?`;
    },
    execute: async ({ path, content }, opts) => {
      opts.onToolOutputDelta(`Writing ${content.length} bytes to ${path}…\n`);
      wrote.push([path, content]);
      return { ok: true };
    },
  });
  return { writeFile, wrote, asked };
}

/** The options of a direct call. */
export const options = (more: Partial<ToolCallOptions> = {}): ToolCallOptions => ({
  toolCallId: 'c9',
  messages: [],
  ...more,
});

/** Calls a tool. Returns its value, its streamed values, or the thrown error. */
export async function ended(tool: TurnTool<unknown, unknown>, input: unknown, more: Partial<ToolCallOptions> = {}) {
  try {
    const produced = tool.execute(input, options(more));
    if (typeof produced !== 'object' || produced === null || !(Symbol.asyncIterator in produced)) return await produced;
    const values: unknown[] = [];
    for await (const value of produced as AsyncIterable<unknown>) values.push(value);
    return { values };
  } catch (error) {
    return error;
  }
}
