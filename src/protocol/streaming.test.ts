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

/** Calls one handler, written as in the protocol, and returns what it received, in order. */
async function receivedBy<N extends Name>(name: N, info: InfoOf<N>): Promise<unknown[]> {
  const received: unknown[] = [];
  const collect = async (payload: unknown): Promise<void> => void received.push(payload);
  const handlers: StreamHandlers = {
    onAssistantMessage: async ({ generationId }) => collect({ generationId }),
    onAssistantMessageDelta: async ({ generationId, delta }) => collect({ generationId, delta }),
    onReasoningStart: async ({ generationId }) => collect({ generationId }),
    onReasoningDelta: async ({ generationId, delta }) => collect({ generationId, delta }),
    onToolCall: collect,
    onToolResult: collect,
    onToolNotFound: collect,
    onToolError: collect,
    onToolOutputDelta: (payload) => void received.push(payload),
    onToolApprovalRequired: collect,
  };
  const handler = handlers[name] as NonNullable<Handler<InfoOf<N>>>;
  await handler(info);
  return received;
}

const generation = { generationId: 's-1.1' } as const;
const tool = { ...generation, toolCallId: 'c1', toolName: 'write_file' } as const;

verifies('looops.handler.onAssistantMessage', 'the start of a message names its generation', async () => {
  expectTypeOf<StreamHandlers['onAssistantMessage']>().toEqualTypeOf<Handler<AssistantMessageInfo>>();
  expectTypeOf<AssistantMessageInfo>().toEqualTypeOf<{ readonly generationId: string }>();
  expect(await receivedBy('onAssistantMessage', generation)).toEqual([generation]);
});

verifies('looops.handler.onAssistantMessageDelta', 'a message delta has its text', async () => {
  expectTypeOf<StreamHandlers['onAssistantMessageDelta']>().toEqualTypeOf<Handler<AssistantMessageDeltaInfo>>();
  expectTypeOf<AssistantMessageDeltaInfo>().toEqualTypeOf<{ readonly generationId: string; readonly delta: string }>();
  expect(await receivedBy('onAssistantMessageDelta', { ...generation, delta: 'Hel' })).toEqual([
    { ...generation, delta: 'Hel' },
  ]);
});

verifies('looops.handler.onReasoningStart', 'the start of reasoning names its generation', async () => {
  expectTypeOf<StreamHandlers['onReasoningStart']>().toEqualTypeOf<Handler<ReasoningStartInfo>>();
  expectTypeOf<ReasoningStartInfo>().toEqualTypeOf<{ readonly generationId: string }>();
  expect(await receivedBy('onReasoningStart', generation)).toEqual([generation]);
});

verifies('looops.handler.onReasoningDelta', 'a reasoning delta has its text', async () => {
  expectTypeOf<StreamHandlers['onReasoningDelta']>().toEqualTypeOf<Handler<ReasoningDeltaInfo>>();
  expectTypeOf<ReasoningDeltaInfo>().toEqualTypeOf<{ readonly generationId: string; readonly delta: string }>();
  expect(await receivedBy('onReasoningDelta', { ...generation, delta: 'Hm' })).toEqual([
    { ...generation, delta: 'Hm' },
  ]);
});

verifies('looops.handler.onToolCall', 'a tool call has its arguments', async () => {
  expectTypeOf<StreamHandlers['onToolCall']>().toEqualTypeOf<Handler<ToolCallInfo>>();
  expectTypeOf<ToolCallInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly args: Json;
    readonly readOnly?: boolean;
  }>();
  const info = { ...tool, args: { path: 'a' }, readOnly: true };
  expect(await receivedBy('onToolCall', info)).toEqual([info]);
});

verifies('looops.handler.onToolResult', 'a tool result has its value', async () => {
  expectTypeOf<StreamHandlers['onToolResult']>().toEqualTypeOf<Handler<ToolResultInfo>>();
  expectTypeOf<ToolResultInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly result: Json;
    readonly output?: string;
  }>();
  const info = { ...tool, result: { ok: true }, output: 'Writing…\n' };
  expect(await receivedBy('onToolResult', info)).toEqual([info]);
});

verifies('looops.handler.onToolNotFound', 'a call of an unknown tool may lack arguments', async () => {
  expectTypeOf<StreamHandlers['onToolNotFound']>().toEqualTypeOf<Handler<ToolNotFoundInfo>>();
  expectTypeOf<ToolNotFoundInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly args?: Json;
  }>();
  expect(await receivedBy('onToolNotFound', tool)).toEqual([tool]);
});

verifies(
  'looops.handler.onToolError',
  'a denial by a person is distinguishable from a failure of the tool',
  async () => {
    expectTypeOf<StreamHandlers['onToolError']>().toEqualTypeOf<Handler<ToolErrorInfo>>();
    expectTypeOf<ToolErrorInfo>().toEqualTypeOf<{
      readonly generationId: string;
      readonly toolCallId: string;
      readonly toolName: string;
      readonly error: string;
      readonly isUserRejection?: boolean;
    }>();
    const info = { ...tool, error: 'No.', isUserRejection: true };
    expect(await receivedBy('onToolError', info)).toEqual([info]);
  },
);

verifies('looops.handler.onToolOutputDelta', 'an output delta names its call', async () => {
  expectTypeOf<StreamHandlers['onToolOutputDelta']>().toEqualTypeOf<Handler<ToolOutputDeltaInfo>>();
  expectTypeOf<ToolOutputDeltaInfo>().toEqualTypeOf<{
    readonly generationId: string;
    readonly toolCallId: string;
    readonly toolName: string;
    readonly delta: string;
  }>();
  expect(await receivedBy('onToolOutputDelta', { ...tool, delta: '.' })).toEqual([{ ...tool, delta: '.' }]);
});

verifies('looops.handler.onToolApprovalRequired', 'an approval request has the id to answer', async () => {
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
  expect(await receivedBy('onToolApprovalRequired', info)).toEqual([info]);
});

verifies('looops.export.streaming', 'the handlers are those of the protocol, and each is optional', () => {
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
  const none: StreamHandlers = {};
  expect(none).toEqual({});
});

verifies('looops.export.streaming', 'the result states how a generation ended', () => {
  expectTypeOf<StreamResult>().toEqualTypeOf<{
    readonly generationId: string;
    readonly status: 'ok' | 'error' | 'paused' | 'stopped';
    readonly text?: string;
    readonly error?: string;
    readonly pendingApprovals?: readonly string[];
  }>();
  const paused: StreamResult = { ...generation, status: 'paused', pendingApprovals: ['a-1'] };
  expect(JSON.parse(JSON.stringify(paused))).toEqual(paused);
});

verifies('looops.export.streaming', 'rondo/streaming has no code at run time', async () => {
  const source = readFileSync(new URL('./streaming.ts', import.meta.url), 'utf8');
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023, verbatimModuleSyntax: true };
  const { outputText } = ts.transpileModule(source, { compilerOptions: { ...compilerOptions, removeComments: true } });
  expect(outputText.trim()).toBe('export {};');
  expect(Object.keys(await import('./streaming.js'))).toEqual([]);
});
