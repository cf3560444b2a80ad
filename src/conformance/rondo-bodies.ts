/** What the suite's Rondo has beyond definitions: composites whose body is a function, and a model that calls its tools. */

import { LoopError } from '../base/errors.js';
import { defineLoop } from '../loops/define.js';
import type { DefinedLoop } from '../loops/defined-loop.js';
import { linkLoop } from '../loops/link.js';
import type { ModelProvider } from '../loops/model.js';
import type { Registry } from '../loops/registry.js';
import type { Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Model, ModelCallOptions, ModelContent, ModelStreamPart } from '../protocol/model.js';
import type { CodeBody } from './driver.js';

/** A composite in code that is not yet in a registry. */
export class CodeComposite {
  readonly id: string;
  readonly body: CodeBody;

  constructor(id: string, body: CodeBody) {
    this.id = id;
    this.body = body;
  }
}

/** The loop of such a composite, which finds what it calls in this registry. */
export function codeCompositeLoop({ id, body }: CodeComposite, registry: Registry): DefinedLoop {
  const called = (loopId: string): Loop<Json, Json> => {
    const found = registry.find(loopId);
    if (found === undefined) throw new LoopError('LOOP_NOT_FOUND', `There is no loop "${loopId}".`);
    return linkLoop(registry, found).loop;
  };
  const call = (scope: Scope, loopId: string, input: unknown): Promise<Json> =>
    scope.call(called(loopId), input as Json);
  return defineLoop({
    id,
    input: true,
    output: true,
    body: async (input, scope) =>
      (await body(input, {
        call: (loopId, given) => call(scope, loopId, given),
        all: (calls) => scope.all(calls.map((each) => (branch) => call(branch, each.loopId, each.input))),
        effect: (name, perform) =>
          scope.effect({ kind: 'tool', name, input: null, safety: 'idempotent', perform: async () => perform() }),
      })) as Json,
  }) as DefinedLoop;
}

/** The id of a backend whose model calls every tool that it is shown, once, in one reply, and then answers. */
export const CALLER_BACKEND_ID = 'caller';

export const callerProvider: ModelProvider = {
  id: CALLER_BACKEND_ID,
  defaultModel: 'caller-1',
  open: async ({ model }) => callingModel(model),
};

const callerUsage = {
  inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: undefined, reasoning: undefined },
};

function callingModel(modelId: string): Model {
  const contentOf = ({ prompt, tools = [] }: ModelCallOptions): ModelContent[] =>
    prompt.some(({ role }) => role === 'tool')
      ? [{ type: 'text', text: 'done' }]
      : tools.map(({ name }, index) => ({
          type: 'tool-call',
          toolCallId: `call-${index}`,
          toolName: name,
          input: '{}',
        }));
  const finishOf = (content: readonly ModelContent[]) => ({
    unified: content.some(({ type }) => type === 'tool-call') ? ('tool-calls' as const) : ('stop' as const),
    raw: undefined,
  });
  return {
    specificationVersion: 'v3',
    provider: CALLER_BACKEND_ID,
    modelId,
    supportedUrls: {},
    doGenerate: async (options) => {
      const content = contentOf(options);
      return { content, finishReason: finishOf(content), usage: callerUsage, warnings: [] };
    },
    doStream: async (options) => {
      const content = contentOf(options);
      const finish: ModelStreamPart = { type: 'finish', finishReason: finishOf(content), usage: callerUsage };
      const parts = [
        { type: 'stream-start', warnings: [] },
        ...content.flatMap(streamPartsOf),
        finish,
      ] as ModelStreamPart[];
      return { stream: ReadableStream.from(parts) as ReadableStream<ModelStreamPart> };
    },
  };
}

function streamPartsOf(content: ModelContent): readonly unknown[] {
  if (content.type !== 'text') return [content];
  const id = 'text';
  return [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: content.text },
    { type: 'text-end', id },
  ];
}
