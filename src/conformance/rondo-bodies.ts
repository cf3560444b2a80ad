/** Composites in code and a tool-calling model, for the driver that runs the suite on Rondo. */
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

/** A composite in code that is not registered yet. */
export class CodeComposite {
  readonly id: string;
  readonly body: CodeBody;

  constructor(id: string, body: CodeBody) {
    this.id = id;
    this.body = body;
  }
}

/** Returns the loop of a composite in code. It finds the loops that it calls in the registry. */
export function codeCompositeLoop({ id, body }: CodeComposite, registry: Registry): DefinedLoop {
  const findLoop = (loopId: string): Loop<Json, Json> => {
    const registered = registry.find(loopId);
    if (registered === undefined) throw new LoopError('LOOP_NOT_FOUND', `There is no loop "${loopId}".`);
    return linkLoop(registry, registered).loop;
  };
  const call = (scope: Scope, loopId: string, input: unknown): Promise<Json> =>
    scope.call(findLoop(loopId), input as Json);
  return defineLoop({
    id,
    input: true,
    output: true,
    run: async (input, scope) =>
      (await body(input, {
        call: (loopId, childInput) => call(scope, loopId, childInput),
        all: (calls) => scope.all(calls.map((each) => (branch) => call(branch, each.loopId, each.input))),
        effect: (name, perform) =>
          scope.effect({ kind: 'tool', name, input: null, safety: 'idempotent', perform: async () => perform() }),
      })) as Json,
  }) as DefinedLoop;
}

/** The id of a provider whose model calls every available tool once with `{}`, in one reply, and then answers. */
export const CALLER_BACKEND_ID = 'caller';

/** The provider of the tool-calling model. */
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
