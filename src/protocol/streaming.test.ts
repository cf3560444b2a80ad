import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect, expectTypeOf } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Json } from './json.js';
import type {
  AssistantMessageDeltaInfo,
  AssistantMessageInfo,
  ReasoningDeltaInfo,
  ReasoningStartInfo,
  StreamHandlers,
  StreamResult,
  ToolApprovalRequiredInfo,
  ToolCallInfo,
  ToolErrorInfo,
  ToolNotFoundInfo,
  ToolOutputDeltaInfo,
  ToolResultInfo,
} from './streaming.js';

type Name = keyof StreamHandlers;
type InfoOf<N extends Name> = Parameters<NonNullable<StreamHandlers[N]>>[0];
type Handler<Info> = ((info: Info) => void | Promise<void>) | undefined;

/** What a handler that is written as the protocol shows it hears, in order. */
async function heard<N extends Name>(name: N, info: InfoOf<N>): Promise<unknown[]> {
  const told: unknown[] = [];
  const listen = async (what: unknown): Promise<void> => void told.push(what);
  const handlers: StreamHandlers = {
    onAssistantMessage: async ({ generationId }) => listen({ generationId }),
    onAssistantMessageDelta: async ({ generationId, delta }) => listen({ generationId, delta }),
    onReasoningStart: async ({ generationId }) => listen({ generationId }),
    onReasoningDelta: async ({ generationId, delta }) => listen({ generationId, delta }),
    onToolCall: listen,
    onToolResult: listen,
    onToolNotFound: listen,
    onToolError: listen,
    onToolOutputDelta: (what) => void told.push(what),
    onToolApprovalRequired: listen,
  };
  const handler = handlers[name] as NonNullable<Handler<InfoOf<N>>>;
  await handler(info);
  return told;
}

const of = { generationId: 's-1.1' } as const;
const tool = { ...of, toolCallId: 'c1', toolName: 'write_file' } as const;

verifies(
  'looops.handler.onAssistantMessage',
  'a message begins and its handler cannot say of which generation',
  async () => {
    expectTypeOf<StreamHandlers['onAssistantMessage']>().toEqualTypeOf<Handler<AssistantMessageInfo>>();
    expectTypeOf<AssistantMessageInfo>().toEqualTypeOf<{ readonly generationId: string }>();
    expect(await heard('onAssistantMessage', of)).toEqual([of]);
  },
);

verifies('looops.handler.onAssistantMessageDelta', 'a piece of a message comes without its text', async () => {
  expectTypeOf<StreamHandlers['onAssistantMessageDelta']>().toEqualTypeOf<Handler<AssistantMessageDeltaInfo>>();
  expectTypeOf<AssistantMessageDeltaInfo>().toEqualTypeOf<{ readonly generationId: string; readonly delta: string }>();
  expect(await heard('onAssistantMessageDelta', { ...of, delta: 'Hel' })).toEqual([{ ...of, delta: 'Hel' }]);
});

verifies(
  'looops.handler.onReasoningStart',
  'thinking begins and its handler cannot say of which generation',
  async () => {
    expectTypeOf<StreamHandlers['onReasoningStart']>().toEqualTypeOf<Handler<ReasoningStartInfo>>();
    expectTypeOf<ReasoningStartInfo>().toEqualTypeOf<{ readonly generationId: string }>();
    expect(await heard('onReasoningStart', of)).toEqual([of]);
  },
);

verifies('looops.handler.onReasoningDelta', 'a piece of thinking comes without its text', async () => {
  expectTypeOf<StreamHandlers['onReasoningDelta']>().toEqualTypeOf<Handler<ReasoningDeltaInfo>>();
  expectTypeOf<ReasoningDeltaInfo>().toEqualTypeOf<{ readonly generationId: string; readonly delta: string }>();
  expect(await heard('onReasoningDelta', { ...of, delta: 'Hm' })).toEqual([{ ...of, delta: 'Hm' }]);
});

verifies('looops.handler.onToolCall', 'a call comes without its arguments', async () => {
  expectTypeOf<StreamHandlers['onToolCall']>().toEqualTypeOf<Handler<ToolCallInfo>>();
  expectTypeOf<ToolCallInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly args: Json;
    readonly readOnly?: boolean;
  }>();
  const info = { ...tool, args: { path: 'a' }, readOnly: true };
  expect(await heard('onToolCall', info)).toEqual([info]);
});

verifies('looops.handler.onToolResult', 'a result comes without its value', async () => {
  expectTypeOf<StreamHandlers['onToolResult']>().toEqualTypeOf<Handler<ToolResultInfo>>();
  expectTypeOf<ToolResultInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly result: Json;
    readonly output?: string;
  }>();
  const info = { ...tool, result: { ok: true }, output: 'Writing…\n' };
  expect(await heard('onToolResult', info)).toEqual([info]);
});

verifies('looops.handler.onToolNotFound', 'a tool that there is not must have arguments that can be read', async () => {
  expectTypeOf<StreamHandlers['onToolNotFound']>().toEqualTypeOf<Handler<ToolNotFoundInfo>>();
  expectTypeOf<ToolNotFoundInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly args?: Json;
  }>();
  expect(await heard('onToolNotFound', tool)).toEqual([tool]);
});

verifies('looops.handler.onToolError', 'a refusal by a person looks like a fault of the tool', async () => {
  expectTypeOf<StreamHandlers['onToolError']>().toEqualTypeOf<Handler<ToolErrorInfo>>();
  expectTypeOf<ToolErrorInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly error: string;
    readonly isUserRejection?: boolean;
  }>();
  const info = { ...tool, error: 'No.', isUserRejection: true };
  expect(await heard('onToolError', info)).toEqual([info]);
});

verifies('looops.handler.onToolOutputDelta', 'a piece of output comes without its call', async () => {
  expectTypeOf<StreamHandlers['onToolOutputDelta']>().toEqualTypeOf<Handler<ToolOutputDeltaInfo>>();
  expectTypeOf<ToolOutputDeltaInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly delta: string;
  }>();
  expect(await heard('onToolOutputDelta', { ...tool, delta: '.' })).toEqual([{ ...tool, delta: '.' }]);
});

verifies(
  'looops.handler.onToolApprovalRequired',
  'a person is asked and nobody can say what the answer is to',
  async () => {
    expectTypeOf<StreamHandlers['onToolApprovalRequired']>().toEqualTypeOf<Handler<ToolApprovalRequiredInfo>>();
    expectTypeOf<ToolApprovalRequiredInfo>().toEqualTypeOf<{
      readonly generationId: string;
      readonly toolCallId: string;
      readonly toolName: string;
      readonly args: Json;
      readonly description: string;
      readonly approvalId: string;
    }>();
    const info = { ...tool, args: { path: 'a' }, description: 'Write to `a`?', approvalId: 'a-1' };
    expect(await heard('onToolApprovalRequired', info)).toEqual([info]);
  },
);

verifies('looops.export.streaming', 'a handler appears, goes or has to be there', () => {
  expectTypeOf<Name>().toEqualTypeOf<
    | 'onAssistantMessage'
    | 'onAssistantMessageDelta'
    | 'onReasoningStart'
    | 'onReasoningDelta'
    | 'onToolCall'
    | 'onToolResult'
    | 'onToolNotFound'
    | 'onToolError'
    | 'onToolOutputDelta'
    | 'onToolApprovalRequired'
  >();
  const nobody: StreamHandlers = {};
  expect(nobody).toEqual({});
});

verifies('looops.export.streaming', 'how a generation ended cannot be told', () => {
  expectTypeOf<StreamResult>().toEqualTypeOf<{
    readonly generationId: string;
    readonly status: 'ok' | 'error' | 'paused' | 'stopped';
    readonly text?: string;
    readonly error?: string;
    readonly pendingApprovals?: readonly string[];
  }>();
  const paused: StreamResult = { ...of, status: 'paused', pendingApprovals: ['a-1'] };
  expect(JSON.parse(JSON.stringify(paused))).toEqual(paused);
});

verifies('looops.export.streaming', 'types for handlers weigh something at run time', async () => {
  const source = readFileSync(new URL('./streaming.ts', import.meta.url), 'utf8');
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023, verbatimModuleSyntax: true };
  const { outputText } = ts.transpileModule(source, { compilerOptions: { ...compilerOptions, removeComments: true } });
  expect(outputText.trim()).toBe('export {};');
  expect(Object.keys(await import('./streaming.js'))).toEqual([]);
});
