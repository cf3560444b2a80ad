import { expect } from 'vitest';
import {
  agentReplied,
  callStarted,
  type EntryDraft,
  effectReturned,
  entriesOf,
  envelopesOf,
  lead,
  modelRequested,
  ofType,
  type Script,
  scout,
  scriptedSession,
  summarize,
  weather,
} from '../../spec/support/conversation-entries.js';
import { SESSION } from '../../spec/support/conversation-fixture.mjs';
import { verifies } from '../../spec/verifies.js';
import type { EventEnvelope } from '../protocol/events.js';
import { conversationOf } from './conversation.js';

verifies('looops.event.loop-triggered', 'a child starts with the agent or composite that triggered it', async () => {
  const envelopes = await envelopesOf(lead);
  expect(summarize(ofType(envelopes, 'loop-triggered'))).toEqual([
    ['loop-triggered', 't/2/1/0', { triggeredBy: 'lead', parentGenerationId: 't', instructions: 'go' }],
  ]);
  const inSteps = await envelopesOf({ composite: 'flow', steps: [scout] });
  const expected = { triggeredBy: 'flow', parentGenerationId: 't', instructions: '{"step":0}' };
  expect(summarize(inSteps)[1]).toEqual(['loop-triggered', 't/0', expected]);
});

verifies('looops.event.other-agent-message', 'messages of a child are messages of another agent', async () => {
  const envelopes = await envelopesOf(lead);
  expect(summarize(ofType(envelopes, 'other-agent-message'))).toEqual([
    ['other-agent-message', 't/2/1/0', { text: 'Looking.', agent: 'scout' }],
    ['other-agent-message', 't/2/1/0', { text: 'Found it.', agent: 'scout' }],
  ]);
  expect(ofType(envelopes, 'assistant-message').map(({ content }) => content.text)).toEqual(['Done.']);
});

verifies('looops.event.child-generation', 'the summary of a child directly precedes its tool result', async () => {
  const envelopes = await envelopesOf(lead);
  const [summary] = ofType(envelopes, 'child-generation');
  expect(summary).toMatchObject({
    generationId: 't',
    content: {
      item: 'scout',
      index: 1,
      total: 2,
      parentGenerationId: 't',
      childGenerationId: 't/2/1/0',
      status: 'ok',
    },
  });
  expect(summary?.content.summary).toBe('Found it.');
  expect(summary?.content.durationMs).toBeGreaterThan(0);
  const after = envelopes.indexOf(summary as EventEnvelope);
  expect(envelopes[after + 1]).toMatchObject({
    type: 'tool-result',
    content: { toolCallId: 'c1', result: { text: 'Found it.' } },
  });
});

verifies('looops.event.child-generation', 'a child in a composite and a child that failed have summaries', async () => {
  const lost: Script = {
    agent: 'lost',
    rounds: [{ text: `${'x'.repeat(499)}😀 and more` }],
    fails: { code: 'BACKEND_FAILED', message: 'down' },
  };
  const flow: Script = { composite: 'flow', steps: [scout, lost] };
  const envelopes = await envelopesOf({ agent: 'lead', rounds: [{ calls: [{ id: 'c', name: 'flow', runs: flow }] }] });
  const base = { index: 0, total: 1, parentGenerationId: 't' };
  expect(ofType(envelopes, 'child-generation').map(({ content: { durationMs: _, ...content } }) => content)).toEqual([
    { ...base, item: 'scout', childGenerationId: 't/2/0/0/0', status: 'ok', summary: 'Found it.' },
    { ...base, item: 'lost', childGenerationId: 't/2/0/0/1', status: 'error', summary: 'x'.repeat(499) },
  ]);
  expect(ofType(envelopes, 'tool-error')).toHaveLength(1);
});

verifies('looops.event.child-generation', 'a child that lost a race ends with an error', async () => {
  const slow: Script = {
    agent: 'slow',
    rounds: [{ text: 'wait', calls: [{ id: 'w', name: 'weather', runs: weather }] }],
  };
  const flow: Script = { composite: 'flow', race: true, steps: [slow, { tool: 'fast', result: 1 }] };
  const script: Script = { agent: 'lead', rounds: [{ calls: [{ id: 'c', name: 'flow', runs: flow }] }] };
  const scripted = scriptedSession({ gated: ['weather'] });
  await scripted.run('t', script);
  const entries = await scripted.stored();
  expect(entries.filter(({ key, type }) => key.startsWith('t/2/0/0/0/0/0') && type === 'call.errored')).toEqual([]);
  const envelopes = conversationOf(SESSION, entries);
  expect(ofType(envelopes, 'loop-triggered').length).toBe(ofType(envelopes, 'child-generation').length);
  expect(ofType(envelopes, 'child-generation').map(({ content }) => content.status)).toEqual(['error']);
});

verifies('looops.event.child-generation', 'a child whose parent ended is closed and emits no more messages', () => {
  const lost = 't/2/0/0/0/0/0';
  const running = [
    ...agentReplied('t', 'lead', 'flow'),
    callStarted('t/2/0/0', 'flow'),
    ...agentReplied(lost, 'slow', 'look'),
  ];
  const inFlight = [callStarted(`${lost}/2/0/0`, 'look'), modelRequested(`${lost}/3`)];
  const late = effectReturned(`${lost}/3`, { text: 'too late' });
  const endings: readonly EntryDraft[] = [
    { type: 'race.won', key: 't/2/0/0/0', winnerIndex: 1 },
    { type: 'call.errored', key: 't/2/0/0', error: { code: 'SCOPE_BUSY', message: 'm' } },
  ];
  for (const ending of endings) {
    const entries = entriesOf(...running, ...inFlight, ending, late);
    const [from] = entries.filter(({ type }) => type === ending.type);
    const after = conversationOf('s', entries).filter(({ id }) => Number(id.split('.')[0]) >= (from?.seq ?? 0));
    expect(after.slice(0, 2)).toMatchObject([
      { type: 'tool-error', generationId: lost, content: { toolCallId: 'slow-0' } },
      { type: 'child-generation', content: { childGenerationId: lost, status: 'error', summary: 'slow' } },
    ]);
    expect(after.filter(({ type }) => type === 'other-agent-message')).toEqual([]);
  }
  const won = entriesOf(...running, ...inFlight, { type: 'race.won', key: 't/2/0/0/0', winnerIndex: 0 }, late);
  expect(conversationOf('s', won).at(-1)).toMatchObject({
    type: 'other-agent-message',
    content: { text: 'too late' },
  });
});

verifies('looops.event.child-generation', 'a child without a tool call has an index of its own', () => {
  const sub = 't/2/1/0';
  const entries = entriesOf(
    ...[
      ...agentReplied('t', 'lead', 'a', 'sub'),
      ...agentReplied(sub, 'sub', 'look'),
      ...agentReplied(`${sub}/2`, 'direct'),
    ],
    ...[`${sub}/2`, sub].map((key) => ({ type: 'call.completed', key, value: {} })),
  );
  const places = ofType(conversationOf('s', entries), 'child-generation').map(({ content }) => [
    content.index,
    content.total,
  ]);
  expect(places).toEqual([
    [0, 1],
    [1, 2],
  ]);
});
