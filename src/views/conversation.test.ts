import fc from 'fast-check';
import { expect } from 'vitest';
import { SESSION, Stage } from '../../spec/support/conversation-fixture.mjs';
import { approvalId, loudLayer, twiceLayer } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { LoopError } from '../base/errors.js';
import { Session } from '../kernel/session.js';
import type { Entry } from '../protocol/entry.js';
import { EVENT_TYPES, type EventEnvelope, type EventType } from '../protocol/events.js';
import { Conversation, conversationOf } from './conversation.js';

type Script = Parameters<Stage['run']>[1];
type Manners = ConstructorParameters<typeof Stage>[1];
type Draft = Omit<Entry, 'seq' | 'at'>;

const fail = (code: string, message: string, data?: Entry['value']) => new LoopError(code, message, data);

function stage(manners?: Manners): Stage {
  return new Stage({ open: Session.open, store: memoryStore(), fail }, manners);
}

/** What one turn of a script makes of a new session. */
async function told(script: Script, manners?: Manners, input?: Entry['value']): Promise<EventEnvelope[]> {
  const played = stage(manners);
  await played.run('t', script, input);
  return conversationOf(SESSION, await played.stored());
}

/** Entries by hand. */
function placed(...drafts: readonly Draft[]): Entry[] {
  return drafts.map((draft, seq) => ({ ...draft, seq, at: 1000 + seq }));
}

/** The envelopes in short: kind, generation and content. */
function short(envelopes: readonly EventEnvelope[]): readonly unknown[] {
  return envelopes.map(({ type, generationId, content }) => [type, generationId, content]);
}

function of<T extends EventType>(envelopes: readonly EventEnvelope[], kind: T) {
  return envelopes.filter((one): one is Extract<EventEnvelope, { type: T }> => one.type === kind);
}

/** A list as a client keeps it: what comes again under its id takes the place of the earlier. */
function merged(list: readonly EventEnvelope[], more: readonly EventEnvelope[]): EventEnvelope[] {
  const kept = [...list];
  for (const envelope of more) {
    const place = kept.findIndex(({ id }) => id === envelope.id);
    if (place === -1) kept.push(envelope);
    else kept[place] = envelope;
  }
  return kept;
}

/** Everything that was emitted, with the place of the entry that caused it. */
function emitted(entries: readonly Entry[]): { readonly envelope: EventEnvelope; readonly cause: number }[] {
  const all: { envelope: EventEnvelope; cause: number }[] = [];
  let cause = 0;
  const conversation = new Conversation(SESSION, (envelope) => all.push({ envelope, cause }));
  for (const entry of entries) {
    cause = entry.seq;
    conversation.apply(entry);
  }
  return all;
}

const weather = { tool: 'weather', result: { sky: 'clear' }, said: 'looking up… done' };
const started = (key: string, name: string, value?: Entry['value']): Draft => ({
  ...{ type: 'call.started', key, name },
  ...(value !== undefined && { value }),
});
const begun = (key: string): Draft => ({ type: 'rondo.round.begun', key, value: { round: 0, at: 0 } });
const model = (key: string): Draft => ({
  type: 'effect.requested',
  key,
  kind: 'model',
  name: 'm',
  safety: 'idempotent',
});
const returned = (key: string, value: Entry['value']): Draft => ({ type: 'effect.returned', key, value });

verifies(
  'looops.event.user-message',
  'a prompt, or a message that comes while the agent runs, is not seen',
  async () => {
    const played = stage();
    const script: Script = { agent: 'helper', rounds: [{ text: 'hi' }, { text: 'sure', hears: ['steer'] }] };
    await played.answer('queue', { text: 'for later' });
    await played.run('t', script, { prompt: 'hello' });
    await played.answer('steer', { text: 'too late' });
    await played.answer('gossip', { text: 'not a message' });
    const entries = await played.stored();
    expect(
      of(conversationOf(SESSION, entries), 'user-message').map((one) => [one.generationId, one.content.text]),
    ).toEqual([
      ['', 'for later'],
      ['t', 'hello'],
      ['t', 'heard as steer'],
      ['', 'too late'],
    ]);
    const [other] = await told({ agent: 'sorter', rounds: [{ text: 'ok' }] }, {}, { list: [3, 1] });
    expect(other?.content).toEqual({ text: '{"list":[3,1]}' });
  },
);

verifies('looops.event.user-message', 'a message that is no text breaks the view', () => {
  const odd = [undefined, null, 7, 'plain', ['a'], { text: 5 }];
  const entries = placed(...odd.map((value, i) => ({ type: 'signal.received', key: `d${i}`, name: 'steer', value })));
  const texts = conversationOf('s', entries).map(({ content }) => content);
  const expected = ['', 'null', '7', '"plain"', '["a"]', '{"text":5}'];
  expect(texts).toEqual(expected.map((text) => ({ text })));
});

verifies('looops.event.assistant-message', 'an empty reply becomes an empty message', async () => {
  const envelopes = await told({ agent: 'helper', rounds: [{ text: '' }, { text: 'Good day.' }] });
  expect(short(envelopes)).toEqual([
    ['user-message', 't', { text: 'hello' }],
    ['assistant-message', 't', { text: 'Good day.' }],
  ]);
  const entries = envelopes.map(({ id, sessionId, createdAt }) => ({ id, sessionId, createdAt }));
  expect(entries[0]).toEqual({ id: '2.0', sessionId: 's', createdAt: '2026-01-01T00:00:00.003Z' });
});

verifies('looops.event.assistant-message', 'an attempt that a policy threw away is shown as the answer', async () => {
  const script: Script = { agent: 'helper', rounds: [{ text: 'Good day.' }] };
  const passedOn = await told(script, { model: twiceLayer });
  expect(of(passedOn, 'assistant-message').map(({ content }) => content.text)).toEqual(['Good day.']);
  const changed = await told(script, { model: loudLayer });
  expect(of(changed, 'assistant-message').map(({ content }) => content.text)).toEqual(['GOOD DAY.']);
});

verifies(
  'looops.event.reasoning',
  'thinking comes after what was thought about, or without how long it took',
  async () => {
    const script: Script = {
      agent: 'helper',
      rounds: [
        { reasoning: 'hm', reasoningMs: 40 },
        { reasoning: 'oh', text: 'a' },
      ],
    };
    expect(short(await told(script)).slice(1)).toEqual([
      ['reasoning', 't', { text: 'hm', durationMs: 40 }],
      ['reasoning', 't', { text: 'oh' }],
      ['assistant-message', 't', { text: 'a' }],
    ]);
  },
);

verifies(
  'looops.event.tool-call',
  'arguments that do not parse, or could not be journaled, break the view or are lost',
  async () => {
    const hostile = ['{"city":', '['.repeat(600) + ']'.repeat(600), '{"__proto__":{"admin":true}}', '1e999'];
    const calls = hostile.map((input, i) => ({ id: `c${i}`, name: 'nope', input, refused: 'INPUT_VALIDATION_FAILED' }));
    const none = { id: 'none', name: 'nope', input: '' };
    const fine = { id: 'fine', name: 'weather', args: { city: 'Bern' }, runs: weather };
    const envelopes = await told({ agent: 'helper', rounds: [{ calls: [...calls, none, fine] }] });
    expect(of(envelopes, 'tool-call').map(({ content }) => content.args)).toEqual([...hostile, {}, { city: 'Bern' }]);
    expect(of(envelopes, 'tool-call').at(-1)?.content).toEqual({
      ...{ toolCallId: 'fine', toolName: 'weather', args: { city: 'Bern' }, readOnly: false },
    });
    expect(JSON.stringify(envelopes)).toContain('Bern');
  },
);

verifies('looops.event.tool-result', 'what a tool streamed is gone once it is done', async () => {
  const call = { id: 'c1', name: 'weather', args: {}, runs: weather };
  const quiet = { id: 'c2', name: 'quiet', args: {}, runs: { tool: 'quiet' } };
  for (const gated of [[], ['weather']]) {
    const envelopes = await told({ agent: 'helper', rounds: [{ calls: [call, quiet] }] }, { gated });
    const results = of(envelopes, 'tool-result').map(({ content }) => content);
    expect(results).toHaveLength(2);
    expect(results).toContainEqual({
      ...{ toolCallId: 'c1', toolName: 'weather' },
      ...{ result: { sky: 'clear' }, output: 'looking up… done' },
    });
    expect(results).toContainEqual({ toolCallId: 'c2', toolName: 'quiet', result: null });
  }
});

verifies(
  'looops.event.tool-error',
  'a failure looks like a rejection by the user, or the other way round',
  async () => {
    const broken = { tool: 'broken', fails: { code: 'TOOL_FAILED', message: 'no disk' } };
    const expired = { tool: 'expired', fails: { code: 'APPROVAL_DENIED', message: 'nobody answered' } };
    const lying = { tool: 'lying', fails: { code: 'TOOL_FAILED', message: 'x', data: { rejected: true } } };
    const calls = [
      { id: 'c1', name: 'broken', runs: broken },
      { id: 'c2', name: 'weather', runs: weather },
      { id: 'c3', name: 'nope' },
      { id: 'c4', name: 'expired', runs: expired },
      { id: 'c5', name: 'lying', runs: lying },
    ];
    const manners = { gated: ['weather'], answer: () => ({ approved: false, by: 'bob' }) };
    const envelopes = await told({ agent: 'helper', rounds: [{ calls }] }, manners);
    const errors = of(envelopes, 'tool-error').map(({ content }) => content);
    const sorted = errors.sort((a, b) => (a.toolCallId < b.toolCallId ? -1 : 1));
    expect(sorted).toEqual([
      { toolCallId: 'c1', toolName: 'broken', error: 'no disk' },
      { toolCallId: 'c2', toolName: 'weather', error: 'bob did not approve.', isUserRejection: true },
      { toolCallId: 'c3', toolName: 'nope', error: 'There is no nope.' },
      { toolCallId: 'c4', toolName: 'expired', error: 'nobody answered' },
      { toolCallId: 'c5', toolName: 'lying', error: 'x' },
    ]);
  },
);

verifies('looops.event.trigger', 'a turn that a timer began looks as if a person had written', async () => {
  const script: Script = { agent: 'helper', rounds: [{ text: 'ok' }] };
  const both = await told(script, {}, { trigger: { name: 'nightly', payload: { n: 1 } }, prompt: 'clean up' });
  expect(short(both).slice(0, 2)).toEqual([
    ['trigger', 't', { triggerName: 'nightly', payload: { n: 1 } }],
    ['user-message', 't', { text: 'clean up' }],
  ]);
  const alone = await told(script, {}, { trigger: { name: 'webhook' } });
  expect(short(alone).slice(0, -1)).toEqual([['trigger', 't', { triggerName: 'webhook' }]]);
  const none = await told(script, {}, { trigger: 5 });
  expect(none[0]?.type).toBe('user-message');
});

const scout: Script = { agent: 'scout', rounds: [{ text: 'Looking.' }, { text: 'Found it.' }] };
const lead: Script = {
  agent: 'lead',
  rounds: [
    {
      calls: [
        { id: 'c0', name: 'weather', runs: weather },
        { id: 'c1', name: 'scout', args: { prompt: 'go' }, runs: scout },
      ],
    },
    { text: 'Done.' },
  ],
};

verifies('looops.event.loop-triggered', 'a child begins and nobody knows who sent it', async () => {
  const envelopes = await told(lead);
  expect(short(of(envelopes, 'loop-triggered'))).toEqual([
    ['loop-triggered', 't/2/1/0', { triggeredBy: 'lead', parentGenerationId: 't', instructions: 'go' }],
  ]);
  const inSteps = await told({ composite: 'flow', steps: [scout] });
  const expected = { triggeredBy: 'flow', parentGenerationId: 't', instructions: '{"step":0}' };
  expect(short(inSteps)[0]).toEqual(['loop-triggered', 't/0', expected]);
});

verifies('looops.event.other-agent-message', 'a child speaks with the voice of the assistant', async () => {
  const envelopes = await told(lead);
  expect(short(of(envelopes, 'other-agent-message'))).toEqual([
    ['other-agent-message', 't/2/1/0', { text: 'Looking.', agent: 'scout' }],
    ['other-agent-message', 't/2/1/0', { text: 'Found it.', agent: 'scout' }],
  ]);
  expect(of(envelopes, 'assistant-message').map(({ content }) => content.text)).toEqual(['Done.']);
});

verifies(
  'looops.event.child-generation',
  'the summary of a child comes after its result, or of another child',
  async () => {
    const envelopes = await told(lead);
    const [summed] = of(envelopes, 'child-generation');
    expect(summed).toMatchObject({
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
    expect(summed?.content.summary).toBe('Found it.');
    expect(summed?.content.durationMs).toBeGreaterThan(0);
    const after = envelopes.indexOf(summed as EventEnvelope);
    expect(envelopes[after + 1]).toMatchObject({
      type: 'tool-result',
      content: { toolCallId: 'c1', result: { text: 'Found it.' } },
    });
  },
);

verifies('looops.event.child-generation', 'a child in a flow, or one that failed, is not summed up', async () => {
  const lost: Script = {
    agent: 'lost',
    rounds: [{ text: `${'x'.repeat(499)}😀 and more` }],
    fails: { code: 'BACKEND_FAILED', message: 'down' },
  };
  const flow: Script = { composite: 'flow', steps: [scout, lost] };
  const envelopes = await told({ agent: 'lead', rounds: [{ calls: [{ id: 'c', name: 'flow', runs: flow }] }] });
  const base = { index: 0, total: 1, parentGenerationId: 't' };
  expect(of(envelopes, 'child-generation').map(({ content: { durationMs: _, ...content } }) => content)).toEqual([
    { ...base, item: 'scout', childGenerationId: 't/2/0/0/0', status: 'ok', summary: 'Found it.' },
    { ...base, item: 'lost', childGenerationId: 't/2/0/0/1', status: 'error', summary: 'x'.repeat(499) },
  ]);
  expect(of(envelopes, 'tool-error')).toHaveLength(1);
});

verifies('looops.event.child-generation', 'a child that lost a race is never heard of again', async () => {
  const slow: Script = {
    agent: 'slow',
    rounds: [{ text: 'wait', calls: [{ id: 'w', name: 'weather', runs: weather }] }],
  };
  const flow: Script = { composite: 'flow', race: true, steps: [slow, { tool: 'fast', result: 1 }] };
  const script: Script = { agent: 'lead', rounds: [{ calls: [{ id: 'c', name: 'flow', runs: flow }] }] };
  const played = stage({ gated: ['weather'] });
  await played.run('t', script);
  const entries = await played.stored();
  expect(entries.filter(({ key, type }) => key.startsWith('t/2/0/0/0/0/0') && type === 'call.errored')).toEqual([]);
  const envelopes = conversationOf(SESSION, entries);
  expect(of(envelopes, 'loop-triggered').length).toBe(of(envelopes, 'child-generation').length);
  expect(of(envelopes, 'child-generation').map(({ content }) => content.status)).toEqual(['error']);
});

/** An agent that has begun, and whose reply asked for tools. */
const talking = (key: string, name: string, ...tools: readonly string[]): Draft[] => [
  started(key, name, { prompt: name }),
  begun(`${key}/0`),
  model(`${key}/1`),
  returned(`${key}/1`, {
    text: name,
    toolCalls: tools.map((tool, i) => ({ id: `${name}-${i}`, name: tool, input: '{}' })),
  }),
];

verifies(
  'looops.event.child-generation',
  'a child that was left behind goes on speaking, or is never summed up',
  () => {
    const lost = 't/2/0/0/0/0/0';
    const running = [...talking('t', 'lead', 'flow'), started('t/2/0/0', 'flow'), ...talking(lost, 'slow', 'look')];
    const inFlight = [started(`${lost}/2/0/0`, 'look'), model(`${lost}/3`)];
    const late = returned(`${lost}/3`, { text: 'too late' });
    const endings: readonly Draft[] = [
      { type: 'race.won', key: 't/2/0/0/0', winnerIndex: 1 },
      { type: 'call.errored', key: 't/2/0/0', error: { code: 'SCOPE_BUSY', message: 'm' } },
    ];
    for (const ending of endings) {
      const entries = placed(...running, ...inFlight, ending, late);
      const [from] = entries.filter(({ type }) => type === ending.type);
      const after = conversationOf('s', entries).filter(({ id }) => Number(id.split('.')[0]) >= (from?.seq ?? 0));
      expect(after.slice(0, 2)).toMatchObject([
        { type: 'tool-error', generationId: lost, content: { toolCallId: 'slow-0' } },
        { type: 'child-generation', content: { childGenerationId: lost, status: 'error', summary: 'slow' } },
      ]);
      expect(after.filter(({ type }) => type === 'other-agent-message')).toEqual([]);
    }
    const won = placed(...running, ...inFlight, { type: 'race.won', key: 't/2/0/0/0', winnerIndex: 0 }, late);
    expect(conversationOf('s', won).at(-1)).toMatchObject({
      type: 'other-agent-message',
      content: { text: 'too late' },
    });
  },
);

verifies('looops.event.child-generation', 'a child that no tool call began takes the place of one that did', () => {
  const sub = 't/2/1/0';
  const entries = placed(
    ...[...talking('t', 'lead', 'a', 'sub'), ...talking(sub, 'sub', 'look'), ...talking(`${sub}/2`, 'direct')],
    ...[`${sub}/2`, sub].map((key) => ({ type: 'call.completed', key, value: {} })),
  );
  const places = of(conversationOf('s', entries), 'child-generation').map(({ content }) => [
    content.index,
    content.total,
  ]);
  expect(places).toEqual([
    [0, 1],
    [1, 2],
  ]);
});

verifies('looops.event.tool-result', 'another step beside the tool is told as its result', () => {
  const beside = ['t/2/0/1', 't/2/0/0/0', 't/2/0', 't/3/x/0', 't/3/9/0'];
  for (const key of beside) {
    const entries = placed(...talking('t', 'lead', 'a'), started(key, 'x'), { type: 'call.completed', key, value: 1 });
    expect(of(conversationOf('s', entries), 'tool-result')).toEqual([]);
  }
});

verifies('looops.event.user-abort', 'a stop by the user looks like a failure, or leaves a question open', async () => {
  const played = stage({ gated: ['weather'] });
  const script: Script = { agent: 'helper', rounds: [{ calls: [{ id: 'c', name: 'weather', runs: weather }] }] };
  await played.step('t', script);
  await (await played.session()).cancel('t', 'enough');
  await played.step('t', script);
  const envelopes = conversationOf(SESSION, await played.stored());
  expect(of(envelopes, 'user-abort').map(({ content }) => content)).toEqual([{ generationId: 't' }]);
  expect(of(envelopes, 'generation-failure')).toEqual([]);
  expect(of(envelopes, 'tool-call').map(({ content }) => [content.approvalStatus, content.approvalId])).toEqual([
    ['rejected', undefined],
  ]);
  const plain = placed(started('t', 'flow'), { type: 'cancel.requested', key: 't', reason: 'x' });
  expect(conversationOf('s', plain)).toEqual([]);
});

verifies('looops.event.generation-failure', 'a turn that stopped short looks finished', async () => {
  const fails = { code: 'BUDGET_EXHAUSTED', message: 'Twenty rounds are enough.', data: { reason: 'rounds' } };
  const envelopes = await told({ agent: 'helper', rounds: [{ text: 'hm' }], fails });
  expect(short(envelopes).at(-1)).toEqual([
    'generation-failure',
    't',
    { error: 'BUDGET_EXHAUSTED: Twenty rounds are enough.' },
  ]);
  const error = { code: 'INPUT_VALIDATION_FAILED', message: 'no' };
  expect(conversationOf('s', placed(started('t', 'x'), { type: 'call.errored', key: 't', error }))).toEqual([]);
});

verifies('approval.depth', 'a call that waits for an answer looks as if it ran, or hides what would run', async () => {
  const played = stage({ gated: ['weather'] });
  const script: Script = {
    agent: 'helper',
    rounds: [{ calls: [{ id: 'c', name: 'weather', args: { city: 'Bern' }, runs: weather }] }],
  };
  await played.run('t', script);
  const all = emitted(await played.stored());
  const calls = all.map(({ envelope }) => envelope).filter(({ type }) => type === 'tool-call');
  expect(new Set(calls.map(({ id }) => id)).size).toBe(1);
  const plain = { toolCallId: 'c', toolName: 'weather', args: { city: 'Bern' }, readOnly: false };
  const asked = { approvalDescription: 'Run weather?', approvalId: approvalId('t/2/0/0/0') };
  expect(calls.map(({ content }) => content)).toEqual([
    plain,
    { ...plain, ...asked, approvalStatus: 'pending_approval' },
    { ...plain, approvalDescription: 'Run weather?', approvalStatus: 'approved' },
  ]);
});

verifies('approval.depth', 'a person approves a flow and never sees the one action that is dangerous', async () => {
  const flow: Script = { composite: 'flow', steps: [{ tool: 'look' }, { composite: 'inner', steps: [weather] }] };
  const sub: Script = { agent: 'sub', rounds: [{ calls: [{ id: 'f', name: 'flow', args: { a: 1 }, runs: flow }] }] };
  const script: Script = { agent: 'lead', rounds: [{ calls: [{ id: 's', name: 'sub', runs: sub }] }] };
  const answers = [
    { approved: true, by: 'bob' },
    { approved: false, by: 'bob' },
  ] as const;
  for (const answer of answers) {
    const played = stage({ gated: ['weather'], answer: () => answer });
    await played.run('t', script);
    const envelopes = conversationOf(SESSION, await played.stored());
    const agent = 't/2/0/0';
    const leaf = `${agent}/2/0/0/1/0`;
    const calls = of(envelopes, 'tool-call').map(({ generationId, content }) => [generationId, content]);
    expect(calls.slice(1)).toEqual([
      [agent, { toolCallId: 'f', toolName: 'flow', args: { a: 1 }, readOnly: false }],
      [
        agent,
        {
          ...{ toolCallId: leaf, toolName: 'weather', args: { step: 0 } },
          ...{ approvalStatus: answer.approved ? 'approved' : 'rejected', approvalDescription: 'Run weather?' },
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

verifies('approval.depth', 'of two questions that one call asks, the second hides the first', () => {
  const toolCalls = [{ id: 'c', name: 'pay', input: '{"to":"both"}' }];
  const asks = (key: string, id: string, value: Entry['value'], tool = 'pay'): Draft[] => [
    { type: 'effect.opened', key, kind: 'tool', name: tool, safety: 'once', value },
    { type: 'rondo.approval.requested', key: `${key}/0`, value: { id, tool, description: id, expiresAt: 1 } },
    { type: 'wait.opened', key: `${key}/1`, name: `approval ${id}` },
  ];
  const call = 't/2/0/0';
  const opened = placed(
    started('t', 'helper', { prompt: 'p' }),
    begun('t/0'),
    model('t/1'),
    returned('t/1', { text: '', toolCalls }),
    started(call, 'pay', { to: 'both' }),
    ...asks(`${call}/0/0/0`, 'one', { to: 'ann' }),
    ...asks(`${call}/0/1/0`, 'two', { to: 'bob' }),
    ...asks(`${call}/0/2/0`, 'three', 'x', 'log'),
    { type: 'wait.settled', key: `${call}/0/0/0/1`, signalId: 'd', value: { approved: true, by: 'eve' } },
    { type: 'call.errored', key: call, error: { code: 'TIMEOUT', message: 'too long' } },
  );
  const pending = of(conversationOf('s', opened.slice(0, -2)), 'tool-call').map(({ content }) => content);
  expect(pending.map(({ toolCallId, args, approvalId: id }) => [toolCallId, args, id])).toEqual([
    ['c', { to: 'ann' }, 'one'],
    [call, { to: 'bob' }, 'two'],
    [call, 'x', 'three'],
  ]);
  const envelopes = conversationOf('s', opened);
  const statuses = of(envelopes, 'tool-call').map(({ content }) => content.approvalStatus);
  expect(statuses).toEqual(['approved', 'rejected', 'rejected']);
  expect(envelopes.at(-1)?.content).toEqual({ toolCallId: 'c', toolName: 'pay', error: 'too long' });
});

verifies('approval.depth', 'a record that a body makes up puts a question before a person', () => {
  const value = { id: 'x', tool: 'weather', description: 'Sign here', expiresAt: 1 };
  const entries = placed(started('t', 'helper', { prompt: 'p' }), begun('t/0'), {
    type: 'rondo.approval.requested',
    key: 't/1',
    value,
  });
  expect(conversationOf('s', entries).map(({ type }) => type)).toEqual(['user-message']);
});

verifies('agent.stream', 'replies of other kinds of effects, or late ones, become messages', () => {
  const entries = placed(
    started('t', 'helper', { prompt: 'p' }),
    begun('t/0'),
    { ...model('t/1'), kind: 'tool' },
    returned('t/1', { text: 'not the model' }),
    { ...model('t/2'), type: 'effect.opened' },
    model('t/2/0'),
    model('t/2/1'),
    returned('t/2/1', { text: 'second' }),
    returned('t/2/0', { text: 'late first' }),
    { type: 'effect.settled', key: 't/2', attemptKey: 't/2/1' },
    returned('t/2/0', { text: 'later still' }),
    { ...model('t/3'), safety: 'once' },
    { ...model('t/3~1'), safety: 'once' },
    returned('t/3', { text: 'after a decision' }),
    { ...model('t/4'), type: 'effect.opened' },
    { type: 'effect.settled', key: 't/4', error: { code: 'BACKEND_FAILED', message: 'm' } },
    { type: 'call.completed', key: 't', value: {} },
    returned('t/5', { text: 'after the end' }),
  );
  const texts = of(conversationOf('s', entries), 'assistant-message').map(({ content }) => content.text);
  expect(texts).toEqual(['second', 'after a decision']);
});

verifies('agent.stream', 'the view remembers every call of a session for ever', async () => {
  const played = stage({ gated: ['weather'] });
  for (let i = 0; i < 5; i++) await played.run(`t${i}`, lead);
  const seen: EventEnvelope[] = [];
  const conversation = new Conversation(SESSION, (envelope) => seen.push(envelope));
  const size = (): number =>
    JSON.stringify(conversation, (_, value) => (value instanceof Map ? [...value] : value)).length;
  const empty = size();
  for (const entry of await played.stored()) conversation.apply(entry);
  expect(seen.length).toBeGreaterThan(50);
  expect(size()).toBe(empty);
});

/** Scripts of agents with all that can happen to them, a few levels deep. */
const scripts = fc.letrec<{ tool: Script; flow: Script; agent: Script; any: Script }>((tie) => ({
  tool: fc
    .record({
      tool: fc.constantFrom('weather', 'quiet', 'gated-a', 'gated-b'),
      result: fc
        .jsonValue({ maxDepth: 1 })
        .map((value) => JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'p'))),
    })
    .chain((tool) =>
      fc.constantFrom<Script>(
        tool,
        { ...tool, said: 'so so' },
        { ...tool, fails: { code: 'TOOL_FAILED', message: 'm' } },
      ),
    ),
  flow: fc.record({
    composite: fc.constant('flow'),
    steps: fc.array(tie('any'), { minLength: 1, maxLength: 2 }),
    race: fc.boolean(),
  }),
  agent: fc
    .record({
      agent: fc.constantFrom('lead', 'scout'),
      rounds: fc.array(
        fc.record({
          text: fc.constantFrom('', 'some words', 'more'),
          reasoning: fc.constantFrom('', 'thinking'),
          calls: fc
            .array(tie('any'), { maxLength: 3 })
            .map((all) =>
              all.map((runs, i) => ({ id: `c${i}`, name: nameOf(runs), args: { i }, ...(i === 2 ? {} : { runs }) })),
            ),
          hears: fc.subarray(['steer', 'queue']),
        }),
        { minLength: 1, maxLength: 2 },
      ),
    })
    .chain((agent) =>
      fc.constantFrom<Script>(agent, agent, { ...agent, fails: { code: 'BUDGET_EXHAUSTED', message: 'm' } }),
    ),
  any: fc.oneof({ maxDepth: 3, depthIdentifier: 'script' }, tie('tool'), tie('flow'), tie('agent')),
}));

function nameOf(script: Script): string {
  if ('tool' in script) return script.tool;
  return 'agent' in script ? script.agent : script.composite;
}

/** Plays scripts in one session; now and then somebody stops a turn that waits. */
async function playAll(all: readonly Script[], stop: boolean): Promise<Stage> {
  const answer = (id: string) => ({ approved: id.length % 3 !== 0, by: 'bob', at: 1 });
  const played = stage({ gated: ['gated-a', 'gated-b'], model: twiceLayer, answer });
  for (const [i, script] of all.entries()) {
    if (stop && i === 0 && (await played.step('t0', script)).status === 'paused')
      await (await played.session()).cancel('t0', 'enough');
    await played.run(`t${i}`, script);
  }
  return played;
}

verifies(
  'agent.reconnect',
  'a client that comes back misses an event or has one twice',
  async () => {
    const kinds = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(scripts.agent, { minLength: 1, maxLength: 2 }),
        fc.boolean(),
        fc.nat(),
        async (all, stop, at) => {
          const played = await playAll(all, stop);
          const entries = await played.stored();
          const whole = conversationOf(SESSION, entries);
          for (const { type } of whole) kinds.add(type);
          const live = emitted(played.live).map(({ envelope }) => envelope);
          expect(merged([], live)).toEqual(whole);
          const cut = at % (entries.length + 1);
          const rest = emitted(entries).filter(({ cause }) => cause >= cut);
          const before = conversationOf(SESSION, entries.slice(0, cut));
          expect(
            merged(
              before,
              rest.map(({ envelope }) => envelope),
            ),
          ).toEqual(whole);
          sound(whole);
        },
      ),
      { numRuns: 150 },
    );
    expect([...kinds].sort()).toEqual(EVENT_TYPES.filter((kind) => kind !== 'trigger').sort());
  },
  120_000,
);

/** What holds of every session whose turns have ended. */
function sound(envelopes: readonly EventEnvelope[]): void {
  const places = envelopes.map(({ id }) => id.split('.').map(Number) as [number, number]);
  for (let i = 1; i < places.length; i++) {
    const [[a, b], [c, d]] = [places[i - 1] ?? [0, 0], places[i] ?? [0, 0]];
    expect(a < c || (a === c && b < d)).toBe(true);
  }
  const calls = of(envelopes, 'tool-call').map(({ generationId, content }) => `${generationId} ${content.toolCallId}`);
  const ends = [...of(envelopes, 'tool-result'), ...of(envelopes, 'tool-error')];
  const ended = ends.map(({ generationId, content }) => `${generationId} ${content.toolCallId}`);
  for (const one of ended) expect(calls).toContain(one);
  for (const { content } of of(envelopes, 'tool-call')) {
    expect(content.approvalStatus).not.toBe('pending_approval');
    expect(content.approvalId).toBeUndefined();
  }
  expect(of(envelopes, 'loop-triggered')).toHaveLength(of(envelopes, 'child-generation').length);
}
