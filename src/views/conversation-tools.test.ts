import { expect } from 'vitest';
import {
  agentReplied,
  callStarted,
  type EntryDraft,
  effectReturned,
  emissionsOf,
  entriesOf,
  envelopesOf,
  modelRequested,
  ofType,
  roundBegun,
  type Script,
  scriptedSession,
  weather,
} from '../../spec/support/conversation-entries.js';
import { SESSION } from '../../spec/support/conversation-fixture.mjs';
import { approvalId } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import type { Entry } from '../protocol/entry.js';
import { conversationOf } from './conversation.js';

verifies('looops.event.tool-call', 'invalid arguments are displayed as text', async () => {
  const hostile = ['{"city":', '['.repeat(600) + ']'.repeat(600), '{"__proto__":{"admin":true}}', '1e999'];
  const calls = hostile.map((input, i) => ({ id: `c${i}`, name: 'nope', input, refused: 'INPUT_VALIDATION_FAILED' }));
  const empty = { id: 'none', name: 'nope', input: '' };
  const valid = { id: 'fine', name: 'weather', args: { city: 'Bern' }, runs: weather };
  const envelopes = await envelopesOf({ agent: 'helper', rounds: [{ calls: [...calls, empty, valid] }] });
  expect(ofType(envelopes, 'tool-call').map(({ content }) => content.args)).toEqual([...hostile, {}, { city: 'Bern' }]);
  expect(ofType(envelopes, 'tool-call').at(-1)?.content).toEqual({
    ...{ toolCallId: 'fine', toolName: 'weather', args: { city: 'Bern' }, readOnly: false },
  });
  expect(JSON.stringify(envelopes)).toContain('Bern');
});

verifies('looops.event.tool-result', 'the result of a tool has its streamed output', async () => {
  const call = { id: 'c1', name: 'weather', args: {}, runs: weather };
  const quiet = { id: 'c2', name: 'quiet', args: {}, runs: { tool: 'quiet' } };
  for (const gated of [[], ['weather']]) {
    const envelopes = await envelopesOf({ agent: 'helper', rounds: [{ calls: [call, quiet] }] }, { gated });
    const results = ofType(envelopes, 'tool-result').map(({ content }) => content);
    expect(results).toHaveLength(2);
    expect(results).toContainEqual({
      ...{ toolCallId: 'c1', toolName: 'weather' },
      ...{ result: { sky: 'clear' }, output: 'looking up… done' },
    });
    expect(results).toContainEqual({ toolCallId: 'c2', toolName: 'quiet', result: null });
  }
});

verifies('looops.event.tool-error', 'only a denial by a person is a user rejection', async () => {
  const broken = { tool: 'broken', fails: { code: 'TOOL_FAILED', message: 'no disk' } };
  const expired = { tool: 'expired', fails: { code: 'APPROVAL_DENIED', message: 'not answered in time' } };
  const lying = { tool: 'lying', fails: { code: 'TOOL_FAILED', message: 'x', data: { rejected: true } } };
  const calls = [
    { id: 'c1', name: 'broken', runs: broken },
    { id: 'c2', name: 'weather', runs: weather },
    { id: 'c3', name: 'nope' },
    { id: 'c4', name: 'expired', runs: expired },
    { id: 'c5', name: 'lying', runs: lying },
  ];
  const options = { gated: ['weather'], answer: () => ({ approved: false, by: 'bob' }) };
  const envelopes = await envelopesOf({ agent: 'helper', rounds: [{ calls }] }, options);
  const errors = ofType(envelopes, 'tool-error').map(({ content }) => content);
  const sorted = errors.sort((a, b) => (a.toolCallId < b.toolCallId ? -1 : 1));
  expect(sorted).toEqual([
    { toolCallId: 'c1', toolName: 'broken', error: 'no disk' },
    { toolCallId: 'c2', toolName: 'weather', error: 'bob did not approve.', isUserRejection: true },
    { toolCallId: 'c3', toolName: 'nope', error: 'There is no nope.' },
    { toolCallId: 'c4', toolName: 'expired', error: 'not answered in time' },
    { toolCallId: 'c5', toolName: 'lying', error: 'x' },
  ]);
});

verifies('looops.event.tool-result', 'only the call at the position of a tool call is its result', () => {
  const otherKeys = ['t/2/0/1', 't/2/0/0/0', 't/2/0', 't/3/x/0', 't/3/9/0'];
  for (const key of otherKeys) {
    const entries = entriesOf(...agentReplied('t', 'lead', 'a'), callStarted(key, 'x'), {
      type: 'call.completed',
      key,
      value: 1,
    });
    expect(ofType(conversationOf('s', entries), 'tool-result')).toEqual([]);
  }
});

verifies('approval.depth', 'a pending approval is displayed on the tool call with its arguments', async () => {
  const scripted = scriptedSession({ gated: ['weather'] });
  const script: Script = {
    agent: 'helper',
    rounds: [{ calls: [{ id: 'c', name: 'weather', args: { city: 'Bern' }, runs: weather }] }],
  };
  await scripted.run('t', script);
  const emissions = emissionsOf(await scripted.stored());
  const calls = emissions.map(({ envelope }) => envelope).filter(({ type }) => type === 'tool-call');
  expect(new Set(calls.map(({ id }) => id)).size).toBe(1);
  const call = { toolCallId: 'c', toolName: 'weather', args: { city: 'Bern' }, readOnly: false };
  const request = { approvalDescription: 'Run weather?', approvalId: approvalId('t/2/0/0/0') };
  expect(calls.map(({ content }) => content)).toEqual([
    call,
    { ...call, ...request, approvalStatus: 'pending_approval' },
    { ...call, ...request, approvalStatus: 'approved' },
  ]);
});

verifies('approval.depth', 'an approval below a composite is displayed as the tool call that would run', async () => {
  const flow: Script = { composite: 'flow', steps: [{ tool: 'look' }, { composite: 'inner', steps: [weather] }] };
  const sub: Script = { agent: 'sub', rounds: [{ calls: [{ id: 'f', name: 'flow', args: { a: 1 }, runs: flow }] }] };
  const script: Script = { agent: 'lead', rounds: [{ calls: [{ id: 's', name: 'sub', runs: sub }] }] };
  const answers = [
    { approved: true, by: 'bob' },
    { approved: false, by: 'bob' },
  ] as const;
  for (const answer of answers) {
    const scripted = scriptedSession({ gated: ['weather'], answer: () => answer });
    await scripted.run('t', script);
    const envelopes = conversationOf(SESSION, await scripted.stored());
    const agent = 't/2/0/0';
    const leaf = `${agent}/2/0/0/1/0`;
    const calls = ofType(envelopes, 'tool-call').map(({ generationId, content }) => [generationId, content]);
    expect(calls.slice(1)).toEqual([
      [agent, { toolCallId: 'f', toolName: 'flow', args: { a: 1 }, readOnly: false }],
      [
        agent,
        {
          ...{ toolCallId: leaf, toolName: 'weather', args: { step: 0 } },
          ...{ approvalStatus: answer.approved ? 'approved' : 'rejected', approvalDescription: 'Run weather?' },
          approvalId: approvalId(`${leaf}/0`),
        },
      ],
    ]);
    const ended = envelopes.find(
      ({ content }) => 'toolCallId' in content && content.toolCallId === leaf && !('args' in content),
    );
    const output = { result: { sky: 'clear' }, output: 'looking up… done' };
    expect(ended?.content).toMatchObject(answer.approved ? output : { isUserRejection: true });
  }
});

verifies('approval.depth', 'every approval of one call is displayed with its own arguments', () => {
  const toolCalls = [{ id: 'c', name: 'pay', input: '{"to":"both"}' }];
  const approvalRequested = (key: string, id: string, value: Entry['value'], tool = 'pay'): EntryDraft[] => [
    { type: 'effect.opened', key, kind: 'tool', name: tool, safety: 'once', value },
    { type: 'rondo.approval.requested', key: `${key}/0`, value: { id, tool, description: id, expiresAt: 1 } },
    { type: 'wait.opened', key: `${key}/1`, name: `approval ${id}` },
  ];
  const call = 't/2/0/0';
  const opened = entriesOf(
    callStarted('t', 'helper', { prompt: 'p' }),
    roundBegun('t/0'),
    modelRequested('t/1'),
    effectReturned('t/1', { text: '', toolCalls }),
    callStarted(call, 'pay', { to: 'both' }),
    ...approvalRequested(`${call}/0/0/0`, 'one', { to: 'ann' }),
    ...approvalRequested(`${call}/0/1/0`, 'two', { to: 'bob' }),
    ...approvalRequested(`${call}/0/2/0`, 'three', 'x', 'log'),
    { type: 'wait.settled', key: `${call}/0/0/0/1`, signalId: 'd', value: { approved: true, by: 'eve' } },
    { type: 'call.errored', key: call, error: { code: 'TIMEOUT', message: 'too long' } },
  );
  const pending = ofType(conversationOf('s', opened.slice(0, -2)), 'tool-call').map(({ content }) => content);
  expect(pending.map(({ toolCallId, args, approvalId: id }) => [toolCallId, args, id])).toEqual([
    ['c', { to: 'ann' }, 'one'],
    [call, { to: 'bob' }, 'two'],
    [call, 'x', 'three'],
  ]);
  const envelopes = conversationOf('s', opened);
  const statuses = ofType(envelopes, 'tool-call').map(({ content }) => content.approvalStatus);
  expect(statuses).toEqual(['approved', 'rejected', 'rejected']);
  expect(envelopes.at(-1)?.content).toEqual({ toolCallId: 'c', toolName: 'pay', error: 'too long' });
});

verifies('approval.depth', 'a request that a body records is not displayed as an approval', () => {
  const value = { id: 'x', tool: 'weather', description: 'Sign here', expiresAt: 1 };
  const entries = entriesOf(callStarted('t', 'helper', { prompt: 'p' }), roundBegun('t/0'), {
    type: 'rondo.approval.requested',
    key: 't/1',
    value,
  });
  expect(conversationOf('s', entries).map(({ type }) => type)).toEqual(['user-message']);
});
