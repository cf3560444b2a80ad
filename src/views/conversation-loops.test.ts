// The envelopes of turns whose root is no agent.

import { expect } from 'vitest';
import {
  callStarted,
  type EntryDraft,
  entriesOf,
  envelopesOf,
  roundBegun,
  scout,
  summarize,
} from '../../spec/support/conversation-entries.js';
import { composite, hostOf, prompt, tool } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import type { EventEnvelope } from '../protocol/events.js';
import { conversationOf } from './conversation.js';

const completed = (key: string, value: EntryDraft['value']): EntryDraft => ({ type: 'call.completed', key, value });

verifies('looops.loop', 'a turn of a tool or composite has its input and its output as envelopes', async () => {
  const steps = composite('steps', [{ loopId: 't', inputMapping: '$.input' }]);
  const host = hostOf([tool('t'), steps]);
  for (const loop of ['t', 'steps']) {
    const { sessionId, turnId } = await host.run({ loop, input: { n: 1 } });
    expect(summarize(await host.archive.events(sessionId))).toEqual([
      ['loop-triggered', turnId, { triggeredBy: loop, instructions: '{"n":1}' }],
      ['tool-result', turnId, { toolCallId: turnId, toolName: loop, result: { n: 1 } }],
    ]);
  }
});

verifies('looops.loop', 'the output of a prompt is an assistant message: a text, or JSON', async () => {
  const host = hostOf([
    prompt('text', 'Say {{x}}', { outputSchema: { type: 'string' }, backend: { id: 'mock' } }),
    prompt('json', 'Say {{x}}', {
      outputSchema: { type: 'object', properties: { n: { const: 4 } }, required: ['n'] },
      backend: { id: 'mock' },
    }),
  ]);
  for (const [loop, text] of [
    ['text', expect.stringMatching(/^[^"{]/)],
    ['json', '{"n":4}'],
  ]) {
    const { sessionId, turnId } = await host.run({ loop, input: { x: 'yes' } });
    expect(summarize(await host.archive.events(sessionId))).toEqual([
      ['loop-triggered', turnId, { triggeredBy: loop, instructions: '{"x":"yes"}' }],
      ['assistant-message', turnId, { text }],
    ]);
  }
});

verifies('looops.loop', 'a failed turn ends with a generation failure, and a cancelled one with an abort', () => {
  const error = { code: 'TOOL_FAILED', message: 'no' };
  const started = { ...callStarted('t', 'x', 'go'), bodyKind: 'code' };
  const ended: EntryDraft = { type: 'call.errored', key: 't', error };
  expect(summarize(conversationOf('s', entriesOf(started, ended)))).toEqual([
    ['loop-triggered', 't', { triggeredBy: 'x', instructions: 'go' }],
    ['generation-failure', 't', { error: 'TOOL_FAILED: no' }],
  ]);
  const cancelled = { ...ended, error: { code: 'CANCELLED', message: 'enough' } };
  const abort: EntryDraft = { type: 'cancel.requested', key: 't', reason: 'enough' };
  expect(summarize(conversationOf('s', entriesOf(started, abort, cancelled))).slice(1)).toEqual([
    ['user-abort', 't', { generationId: 't' }],
  ]);
});

verifies('looops.loop', 'the input of a loop in code is an envelope before its first step', () => {
  const started = { ...callStarted('t', 'x', 1), bodyKind: 'code' };
  expect(conversationOf('s', entriesOf(started))).toHaveLength(1);
});

verifies('looops.loop', 'a root agent has no envelopes of a plain loop, also if it was recorded without a kind', () => {
  const agent = [callStarted('t', 'x', { prompt: 'Hi' }), roundBegun('t/0'), completed('t', { text: 'Yes' })];
  expect(summarize(conversationOf('s', entriesOf(...agent)))).toEqual([['user-message', 't', { text: 'Hi' }]]);
});

verifies('looops.loop', 'an agent in a plain loop has its own envelopes between those of the loop', async () => {
  const envelopes = await envelopesOf({ composite: 'flow', steps: [scout] });
  expect(envelopes.map(({ type, generationId }) => [type, generationId])).toEqual([
    ['loop-triggered', 't'],
    ['loop-triggered', 't/0'],
    ['other-agent-message', 't/0'],
    ['other-agent-message', 't/0'],
    ['child-generation', 't'],
    ['tool-result', 't'],
  ]);
});

verifies('looops.loop', 'an approval of a plain loop is a tool call, and its turn ends with one result', async () => {
  const host = hostOf([tool('t', 'builtin:echo', { policy: { approval: 'ask' } })]);
  const { sessionId, turnId } = await host.run({ loop: 't', input: { n: 1 } });
  const [approval] = await host.archive.approvals(sessionId);
  const types = async (): Promise<unknown[]> => (await host.archive.events(sessionId)).map(({ type }) => type);
  expect(await types()).toEqual(['loop-triggered', 'tool-call']);
  await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  await host.resume(turnId);
  expect(await types()).toEqual(['loop-triggered', 'tool-call', 'tool-result']);
});

verifies(
  'looops.loop',
  'a subscriber receives the envelopes of a plain loop live, as they are read later',
  async () => {
    const host = hostOf([tool('t')]);
    const envelopes: EventEnvelope[] = [];
    const onEnvelope = (envelope: EventEnvelope): void => void envelopes.push(envelope);
    const { sessionId } = await host.run({ loop: 't', input: 1 }, { onEnvelope });
    expect(envelopes).toHaveLength(2);
    expect(envelopes).toEqual(await host.archive.events(sessionId));
  },
);
