import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect, expectTypeOf } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import {
  type ApprovalStatus,
  EVENT_TYPES,
  type EventContents,
  type EventEnvelope,
  type EventEnvelopeOf,
  type EventType,
} from './events.js';
import type { Json } from './json.js';

/** Renders an event as a front end does: the compiler requires a case for every event type. */
function render(event: EventEnvelope): string {
  switch (event.type) {
    case 'user-message':
    case 'assistant-message':
    case 'other-agent-message':
    case 'reasoning':
      return event.content.text;
    case 'tool-call':
    case 'tool-result':
      return event.content.toolName;
    case 'tool-error':
    case 'generation-failure':
      return event.content.error;
    case 'trigger':
      return event.content.triggerName;
    case 'loop-triggered':
      return event.content.triggeredBy;
    case 'child-generation':
      return event.content.item;
    case 'user-abort':
      return event.content.generationId;
    default:
      return event satisfies never;
  }
}

/** An envelope after serialization and parsing. */
function overTheWire<T extends EventType>(type: T, content: EventContents[T]): EventEnvelopeOf<T> {
  const envelope: EventEnvelopeOf<T> = {
    id: '7',
    sessionId: 's-1',
    generationId: 's-1.1',
    type,
    content,
    createdAt: '2026-01-02T03:04:05.678Z',
  };
  return JSON.parse(JSON.stringify(envelope));
}

verifies('looops.event.types', 'the event types are those of the protocol, in its order', () => {
  expect(EVENT_TYPES).toEqual([
    'user-message',
    'assistant-message',
    'tool-call',
    'tool-result',
    'tool-error',
    'trigger',
    'loop-triggered',
    'other-agent-message',
    'user-abort',
    'child-generation',
    'generation-failure',
    'reasoning',
  ]);
  expectTypeOf<typeof EVENT_TYPES>().toEqualTypeOf<
    readonly [
      'user-message',
      'assistant-message',
      'tool-call',
      'tool-result',
      'tool-error',
      'trigger',
      'loop-triggered',
      'other-agent-message',
      'user-abort',
      'child-generation',
      'generation-failure',
      'reasoning',
    ]
  >();
  expectTypeOf<EventType>().toEqualTypeOf<(typeof EVENT_TYPES)[number]>();
  expectTypeOf<keyof EventContents>().toEqualTypeOf<EventType>();
  expectTypeOf<EventEnvelope['type']>().toEqualTypeOf<EventType>();
});

verifies('looops.event.types', 'the type of an event determines the type of its content', () => {
  const renderNarrowed = (event: EventEnvelope): string => {
    if (event.type === 'tool-call') expectTypeOf(event.content).toEqualTypeOf<EventContents['tool-call']>();
    if (event.type === 'reasoning') expectTypeOf(event.content).toEqualTypeOf<EventContents['reasoning']>();
    return render(event);
  };
  expectTypeOf<Extract<EventEnvelope, { type: 'tool-call' }>>().toEqualTypeOf<EventEnvelopeOf<'tool-call'>>();
  expectTypeOf<EventEnvelopeOf<'tool-call'>>().not.toExtend<EventEnvelopeOf<'tool-result'>>();
  expect(renderNarrowed(overTheWire('tool-call', { toolCallId: 'c1', toolName: 'write_file', args: {} }))).toBe(
    'write_file',
  );
});

verifies(
  'looops.envelope',
  'times are JSON strings on the wire, and a back end may choose its own type for them',
  () => {
    expectTypeOf<EventEnvelopeOf<'reasoning'>>().toEqualTypeOf<{
      readonly id: string;
      readonly sessionId: string;
      readonly generationId: string;
      readonly type: 'reasoning';
      readonly content: EventContents['reasoning'];
      readonly createdAt: string;
    }>();
    expectTypeOf<EventEnvelope['createdAt']>().toEqualTypeOf<string>();
    expectTypeOf<EventEnvelope<Date>['createdAt']>().toEqualTypeOf<Date>();
    expectTypeOf<EventEnvelopeOf<'trigger', number>['createdAt']>().toEqualTypeOf<number>();
    expectTypeOf<EventEnvelope<Date>>().not.toExtend<EventEnvelope>();

    const wire: EventEnvelope = overTheWire('user-message', { text: 'hi' });
    const stored: EventEnvelope<Date> = { ...wire, createdAt: new Date(wire.createdAt) };
    expect(stored.createdAt.toISOString()).toBe(wire.createdAt);
    expect(JSON.parse(JSON.stringify(stored))).toEqual(wire);
  },
);

verifies('looops.event.user-message', 'a user message has the shape of the protocol', () => {
  expectTypeOf<EventContents['user-message']>().toEqualTypeOf<{ readonly text: string }>();
  const event = overTheWire('user-message', { text: 'Tidy up.' });
  expect([event.content, render(event)]).toEqual([{ text: 'Tidy up.' }, 'Tidy up.']);
});

verifies('looops.event.assistant-message', 'an assistant message has the shape of the protocol', () => {
  expectTypeOf<EventContents['assistant-message']>().toEqualTypeOf<{ readonly text: string }>();
  const event = overTheWire('assistant-message', { text: 'Done.' });
  expect([event.content, render(event)]).toEqual([{ text: 'Done.' }, 'Done.']);
});

verifies('looops.event.tool-call', 'a tool call states whether it waits for approval', () => {
  expectTypeOf<EventContents['tool-call']>().toEqualTypeOf<{
    readonly toolCallId: string;
    readonly toolName: string;
    readonly args: Json;
    readonly readOnly?: boolean;
    readonly approvalStatus?: ApprovalStatus;
    readonly approvalDescription?: string;
    readonly approvalId?: string;
  }>();
  expectTypeOf<ApprovalStatus>().toEqualTypeOf<'pending_approval' | 'approved' | 'rejected'>();
  const event = overTheWire('tool-call', {
    toolCallId: 'c1',
    toolName: 'write_file',
    args: { path: 'a.txt' },
    readOnly: false,
    approvalStatus: 'pending_approval',
    approvalDescription: 'Write to a.txt?',
  });
  expect(event.content).toMatchObject({ args: { path: 'a.txt' }, approvalStatus: 'pending_approval' });
  expect(render(event)).toBe('write_file');
});

verifies('looops.event.tool-result', 'the streamed output of a tool is separate from its result', () => {
  expectTypeOf<EventContents['tool-result']>().toEqualTypeOf<{
    readonly toolCallId: string;
    readonly toolName: string;
    readonly result: Json;
    readonly output?: string;
  }>();
  const event = overTheWire('tool-result', { toolCallId: 'c1', toolName: 'ls', result: null, output: 'a\nb\n' });
  expect(event.content).toEqual({ toolCallId: 'c1', toolName: 'ls', result: null, output: 'a\nb\n' });
  expect(render(event)).toBe('ls');
});

verifies('looops.event.tool-error', 'a denial by a person is distinguishable from a failure of the tool', () => {
  expectTypeOf<EventContents['tool-error']>().toEqualTypeOf<{
    readonly toolCallId: string;
    readonly toolName: string;
    readonly error: string;
    readonly isUserRejection?: boolean;
  }>();
  const event = overTheWire('tool-error', { toolCallId: 'c1', toolName: 'rm', error: 'No.', isUserRejection: true });
  expect([event.content.isUserRejection, render(event)]).toEqual([true, 'No.']);
});

verifies('looops.event.reasoning', 'reasoning has the shape of the protocol', () => {
  expectTypeOf<EventContents['reasoning']>().toEqualTypeOf<{ readonly text: string; readonly durationMs?: number }>();
  const event = overTheWire('reasoning', { text: 'Hm.', durationMs: 12 });
  expect([event.content, render(event)]).toEqual([{ text: 'Hm.', durationMs: 12 }, 'Hm.']);
});

verifies('looops.event.trigger', 'a trigger has the shape of the protocol', () => {
  expectTypeOf<EventContents['trigger']>().toEqualTypeOf<{ readonly triggerName: string; readonly payload?: Json }>();
  const event = overTheWire('trigger', { triggerName: 'nightly', payload: { day: 3 } });
  expect([event.content.payload, render(event)]).toEqual([{ day: 3 }, 'nightly']);
});

verifies('looops.event.loop-triggered', 'the start of a child has the shape of the protocol', () => {
  expectTypeOf<EventContents['loop-triggered']>().toEqualTypeOf<{
    readonly triggeredBy: string;
    readonly parentGenerationId?: string;
    readonly instructions?: string;
  }>();
  const event = overTheWire('loop-triggered', {
    triggeredBy: 'lead',
    parentGenerationId: 's-1.1',
    instructions: 'Look.',
  });
  expect([event.content.parentGenerationId, render(event)]).toEqual(['s-1.1', 'lead']);
});

verifies('looops.event.child-generation', 'the summary of a child has the shape of the protocol', () => {
  expectTypeOf<EventContents['child-generation']>().toEqualTypeOf<{
    readonly item: string;
    readonly index: number;
    readonly total: number;
    readonly durationMs: number;
    readonly parentGenerationId: string;
    readonly childGenerationId: string;
    readonly status: 'ok' | 'error';
    readonly summary?: string;
  }>();
  const content = {
    item: 'search',
    index: 0,
    total: 2,
    durationMs: 40,
    parentGenerationId: 's-1.1',
    childGenerationId: 's-1.1/1/0/0',
    status: 'ok',
  } as const;
  const event = overTheWire('child-generation', content);
  expect([event.content, render(event)]).toEqual([content, 'search']);
});

verifies('looops.event.other-agent-message', 'a message of another agent has the shape of the protocol', () => {
  expectTypeOf<EventContents['other-agent-message']>().toEqualTypeOf<{
    readonly text: string;
    readonly agent?: string;
  }>();
  const event = overTheWire('other-agent-message', { text: 'Mine.', agent: 'critic' });
  expect([event.content.agent, render(event)]).toEqual(['critic', 'Mine.']);
});

verifies('looops.event.user-abort', 'an abort names the generation that it stopped', () => {
  expectTypeOf<EventContents['user-abort']>().toEqualTypeOf<{ readonly generationId: string }>();
  const event = overTheWire('user-abort', { generationId: 's-1.1' });
  expect([event.content, render(event)]).toEqual([{ generationId: 's-1.1' }, 's-1.1']);
});

verifies('looops.event.generation-failure', 'a failure has the shape of the protocol', () => {
  expectTypeOf<EventContents['generation-failure']>().toEqualTypeOf<{ readonly error: string }>();
  const event = overTheWire('generation-failure', { error: 'The model is gone.' });
  expect([event.content, render(event)]).toEqual([{ error: 'The model is gone.' }, 'The model is gone.']);
});

verifies('looops.export.events', 'rondo/events is one constant and imports nothing', async () => {
  const source = readFileSync(new URL('./events.ts', import.meta.url), 'utf8');
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023, verbatimModuleSyntax: true };
  const { outputText } = ts.transpileModule(source, { compilerOptions: { ...compilerOptions, removeComments: true } });
  const compiled = ts.createSourceFile('events.js', outputText, ts.ScriptTarget.ES2023);
  expect(compiled.statements.map((statement) => ts.SyntaxKind[statement.kind])).toEqual(['FirstStatement']);
  expect(outputText).not.toMatch(/\b(?:import|require)\b/);
  expect(Object.keys(await import('./events.js'))).toEqual(['EVENT_TYPES']);
});
