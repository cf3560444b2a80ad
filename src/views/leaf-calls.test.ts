/** Views of leaf calls: they read the stored entries, and give what the entries that these stand for would give. */
import { expect } from 'vitest';
import {
  callStarted,
  type EntryDraft,
  entriesOf,
  ofType,
  roundBegun,
} from '../../spec/support/conversation-entries.js';
import { verifies } from '../../spec/verifies.js';
import { expandLeaves } from '../journal/leaf-entries.js';
import type { Entry } from '../protocol/entry.js';
import { conversationOf } from './conversation.js';
import { History } from './history.js';
import { ModelAnswerCounter } from './model-answer-counter.js';
import { traceOf } from './trace.js';

const leafStarted = (key: string, name: string, more: Partial<Entry>): EntryDraft => ({
  ...callStarted(key, name, { model: 'm1', promptLength: 3 }),
  ...{ kind: 'tool', safety: 'keyed' },
  ...more,
});
const leafEnded = (key: string, more: Partial<Entry>): EntryDraft => ({ type: 'call.completed', key, ...more });
const modelStarted = (key: string): EntryDraft =>
  leafStarted(key, 'helper.model', { bodyKind: 'model', kind: 'model', safety: 'idempotent', effectName: 'local' });
const reply = { text: '', toolCalls: [{ id: 'c1', name: 'weather', input: '{}' }], inputTokens: 7, outputTokens: 2 };

/** The turn of an agent that calls a tool once; `toolEntries` are those of the call. */
const agentTurn = (toolEntries: readonly EntryDraft[]): readonly Entry[] =>
  entriesOf(
    { ...callStarted('t', 'helper', { prompt: 'go' }), bodyKind: 'agent' },
    roundBegun('t/0'),
    modelStarted('t/1'),
    leafEnded('t/1', { value: reply, endsEffect: true }),
    ...toolEntries,
    modelStarted('t/3'),
    leafEnded('t/3', { value: { text: 'Clear.' }, endsEffect: true }),
    leafEnded('t', { value: { text: 'Clear.' } }),
  );

const error = { code: 'TOOL_FAILED', message: 'no network' };
const weatherStarted = leafStarted('t/2', 'weather', {});
const TURNS: { readonly [title: string]: readonly Entry[] } = {
  'a tool whose output takes time to validate': agentTurn([
    weatherStarted,
    leafEnded('t/2', { value: 'clear', endsEffect: 'output', validationMs: 1 }),
  ]),
  'a tool that fails': agentTurn([weatherStarted, { type: 'call.errored', key: 't/2', error, endsEffect: true }]),
  'a tool that streams output': agentTurn([
    weatherStarted,
    { type: 'effect.returned', key: 't/2/0', value: { output: 'clear', streamedOutput: 'looking up' } },
    leafEnded('t/2', { value: 'clear' }),
  ]),
  'a tool as a turn': entriesOf(
    leafStarted('t', 'weather', {}),
    leafEnded('t', { value: 'clear', endsEffect: 'output' }),
  ),
};

function messagesOf(entries: readonly Entry[]): unknown {
  const history = new History();
  for (const entry of entries) history.apply(entry);
  return history.messages();
}

for (const [title, entries] of Object.entries(TURNS))
  verifies('kernel.leaf', `trace, conversation and history of ${title} do not depend on leaf entries`, () => {
    const expanded = expandLeaves(entries);
    expect(expanded.length).toBeGreaterThan(entries.length);
    expect(traceOf('t', entries)).toEqual(traceOf('t', expanded));
    expect(conversationOf('s', entries)).toEqual(conversationOf('s', expanded));
    expect(messagesOf(entries)).toEqual(messagesOf(expanded));
  });

verifies('kernel.leaf', 'the streamed output of a leaf call belongs to its result', () => {
  const envelopes = conversationOf('s', TURNS['a tool that streams output'] ?? []);
  expect(ofType(envelopes, 'tool-result').map(({ content }) => content.output)).toEqual(['looking up']);
});

verifies('kernel.leaf', 'a turn that is a leaf call is displayed when it starts', () => {
  const started = conversationOf('s', (TURNS['a tool as a turn'] ?? []).slice(0, 1));
  expect(started.map(({ id, type }) => [id, type])).toEqual([['0.0', 'loop-triggered']]);
});

verifies('model.scripted', 'recorded answers are counted in the turn and in its session, failed calls too', () => {
  const calls = ['s.1/0', 's.10/0', 's.10/1', 's.10/2'].flatMap((key): EntryDraft[] => [
    modelStarted(key),
    key.endsWith('/2')
      ? { type: 'call.errored', key, error, endsEffect: true }
      : leafEnded(key, { value: reply, endsEffect: true }),
  ]);
  const entries = entriesOf(...calls, modelStarted('s.10/3'));
  const counter = new ModelAnswerCounter('s.1', entries.slice(0, 4));
  for (const entry of entries.slice(4)) counter.apply(entry);
  expect([counter.count('local', 'm1', 'turn'), counter.count('local', 'm1', 'session')]).toEqual([1, 4]);
  expect(new ModelAnswerCounter('s.10', entries).count('local', 'm1', 'turn')).toBe(3);
  expect(counter.count('local', 'm2', 'session') + counter.count('other', 'm1', 'session')).toBe(0);
});
