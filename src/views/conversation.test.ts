import { expect } from 'vitest';
import {
  callStarted,
  effectReturned,
  entriesOf,
  envelopesOf,
  lead,
  modelRequested,
  ofType,
  roundBegun,
  type Script,
  scriptedSession,
  summarize,
  weather,
} from '../../spec/support/conversation-entries.js';
import { SESSION } from '../../spec/support/conversation-fixture.mjs';
import { retryingLayer, upperCaseLayer } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import type { EventEnvelope } from '../protocol/events.js';
import { Conversation, conversationOf } from './conversation.js';

verifies('looops.event.user-message', 'a prompt and every message during a turn are user messages', async () => {
  const scripted = scriptedSession();
  const script: Script = { agent: 'helper', rounds: [{ text: 'hi' }, { text: 'sure', waitsFor: ['steer'] }] };
  await scripted.answer('queue', { text: 'for later' });
  await scripted.run('t', script, { prompt: 'hello' });
  await scripted.answer('steer', { text: 'too late' });
  await scripted.answer('gossip', { text: 'not a message' });
  const entries = await scripted.stored();
  expect(
    ofType(conversationOf(SESSION, entries), 'user-message').map((one) => [one.generationId, one.content.text]),
  ).toEqual([
    ['', 'for later'],
    ['t', 'hello'],
    ['t', 'received as steer'],
    ['', 'too late'],
  ]);
  const [other] = await envelopesOf({ agent: 'sorter', rounds: [{ text: 'ok' }] }, {}, { list: [3, 1] });
  expect(other?.content).toEqual({ text: '{"list":[3,1]}' });
});

verifies('looops.event.user-message', 'a message without text is displayed as JSON', () => {
  const values = [undefined, null, 7, 'plain', ['a'], { text: 5 }];
  const entries = entriesOf(
    ...values.map((value, i) => ({ type: 'signal.received', key: `d${i}`, name: 'steer', value })),
  );
  const texts = conversationOf('s', entries).map(({ content }) => content);
  const expected = ['', 'null', '7', '"plain"', '["a"]', '{"text":5}'];
  expect(texts).toEqual(expected.map((text) => ({ text })));
});

verifies('looops.event.assistant-message', 'an empty reply is not a message', async () => {
  const envelopes = await envelopesOf({ agent: 'helper', rounds: [{ text: '' }, { text: 'Good day.' }] });
  expect(summarize(envelopes)).toEqual([
    ['user-message', 't', { text: 'hello' }],
    ['assistant-message', 't', { text: 'Good day.' }],
  ]);
  const [first] = envelopes.map(({ id, sessionId, createdAt }) => ({ id, sessionId, createdAt }));
  expect(first).toEqual({ id: '2.0', sessionId: 's', createdAt: '2026-01-01T00:00:00.003Z' });
});

verifies(
  'looops.event.assistant-message',
  'the message is the reply that the layers settle on, not an attempt',
  async () => {
    const script: Script = { agent: 'helper', rounds: [{ text: 'Good day.' }] };
    const retried = await envelopesOf(script, { model: retryingLayer });
    expect(ofType(retried, 'assistant-message').map(({ content }) => content.text)).toEqual(['Good day.']);
    const changed = await envelopesOf(script, { model: upperCaseLayer });
    expect(ofType(changed, 'assistant-message').map(({ content }) => content.text)).toEqual(['GOOD DAY.']);
  },
);

verifies(
  'looops.event.reasoning',
  'reasoning precedes the message of its reply and has a duration if one is known',
  async () => {
    const script: Script = {
      agent: 'helper',
      rounds: [
        { reasoning: 'hm', reasoningMs: 40 },
        { reasoning: 'oh', text: 'a' },
      ],
    };
    expect(summarize(await envelopesOf(script)).slice(1)).toEqual([
      ['reasoning', 't', { text: 'hm', durationMs: 40 }],
      ['reasoning', 't', { text: 'oh' }],
      ['assistant-message', 't', { text: 'a' }],
    ]);
  },
);

verifies('looops.event.trigger', 'a turn that a trigger started begins with the trigger', async () => {
  const script: Script = { agent: 'helper', rounds: [{ text: 'ok' }] };
  const both = await envelopesOf(script, {}, { trigger: { name: 'nightly', payload: { n: 1 } }, prompt: 'clean up' });
  expect(summarize(both).slice(0, 2)).toEqual([
    ['trigger', 't', { triggerName: 'nightly', payload: { n: 1 } }],
    ['user-message', 't', { text: 'clean up' }],
  ]);
  const alone = await envelopesOf(script, {}, { trigger: { name: 'webhook' } });
  expect(summarize(alone).slice(0, -1)).toEqual([['trigger', 't', { triggerName: 'webhook' }]]);
  const none = await envelopesOf(script, {}, { trigger: 5 });
  expect(none[0]?.type).toBe('user-message');
});

verifies(
  'looops.event.user-abort',
  'a cancel is an abort and not a failure, and closes pending approvals',
  async () => {
    const scripted = scriptedSession({ gated: ['weather'] });
    const script: Script = { agent: 'helper', rounds: [{ calls: [{ id: 'c', name: 'weather', runs: weather }] }] };
    await scripted.runUntilPause('t', script);
    await (await scripted.session()).cancel('t', 'enough');
    await scripted.runUntilPause('t', script);
    const envelopes = conversationOf(SESSION, await scripted.stored());
    expect(ofType(envelopes, 'user-abort').map(({ content }) => content)).toEqual([{ generationId: 't' }]);
    expect(ofType(envelopes, 'generation-failure')).toEqual([]);
    expect(ofType(envelopes, 'tool-call').map(({ content }) => content.approvalStatus)).toEqual(['rejected']);
    const withoutAgent = entriesOf(callStarted('t', 'flow'), { type: 'cancel.requested', key: 't', reason: 'x' });
    expect(conversationOf('s', withoutAgent)).toMatchObject([{ type: 'loop-triggered' }, { type: 'user-abort' }]);
  },
);

verifies('looops.event.generation-failure', 'a turn that ends with an error has a generation failure', async () => {
  const fails = { code: 'BUDGET_EXHAUSTED', message: 'Twenty rounds are enough.', data: { reason: 'rounds' } };
  const envelopes = await envelopesOf({ agent: 'helper', rounds: [{ text: 'hm' }], fails });
  expect(summarize(envelopes).at(-1)).toEqual([
    'generation-failure',
    't',
    { error: 'BUDGET_EXHAUSTED: Twenty rounds are enough.' },
  ]);
  const error = { code: 'INPUT_VALIDATION_FAILED', message: 'no' };
  expect(
    conversationOf('s', entriesOf(callStarted('t', 'x'), { type: 'call.errored', key: 't', error })),
  ).toMatchObject([
    { type: 'loop-triggered' },
    { type: 'generation-failure', content: { error: 'INPUT_VALIDATION_FAILED: no' } },
  ]);
});

verifies('agent.stream', 'only the settled reply of a model call becomes a message', () => {
  const entries = entriesOf(
    callStarted('t', 'helper', { prompt: 'p' }),
    roundBegun('t/0'),
    { ...modelRequested('t/1'), kind: 'tool' },
    effectReturned('t/1', { text: 'not the model' }),
    { ...modelRequested('t/2'), type: 'effect.opened' },
    modelRequested('t/2/0'),
    modelRequested('t/2/1'),
    effectReturned('t/2/1', { text: 'second' }),
    effectReturned('t/2/0', { text: 'late first' }),
    { type: 'effect.settled', key: 't/2', attemptKey: 't/2/1' },
    effectReturned('t/2/0', { text: 'later still' }),
    { ...modelRequested('t/3'), safety: 'once' },
    { ...modelRequested('t/3~1'), safety: 'once' },
    effectReturned('t/3', { text: 'after a resolution' }),
    { ...modelRequested('t/4'), type: 'effect.opened' },
    { type: 'effect.settled', key: 't/4', error: { code: 'BACKEND_FAILED', message: 'm' } },
    { type: 'call.completed', key: 't', value: {} },
    effectReturned('t/5', { text: 'after the end' }),
  );
  const texts = ofType(conversationOf('s', entries), 'assistant-message').map(({ content }) => content.text);
  expect(texts).toEqual(['second', 'after a resolution']);
});

verifies('agent.stream', 'the view releases ended calls', async () => {
  const scripted = scriptedSession({ gated: ['weather'] });
  for (let i = 0; i < 5; i++) await scripted.run(`t${i}`, lead);
  const envelopes: EventEnvelope[] = [];
  const conversation = new Conversation(SESSION, (envelope) => envelopes.push(envelope));
  const size = (): number =>
    JSON.stringify(conversation, (_, value) => (value instanceof Map ? [...value] : value)).length;
  const emptySize = size();
  for (const entry of await scripted.stored()) conversation.apply(entry);
  expect(envelopes.length).toBeGreaterThan(50);
  expect(size(), 'state of ended calls is still held').toBe(emptySize);
});
