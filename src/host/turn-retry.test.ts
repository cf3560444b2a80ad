import { expect } from 'vitest';
import { composite, hostOf, prompt, textProvider, tool } from '../../spec/support/host-fixture.js';
import { agentDef, replyProvider, type Scripted } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { defineLoop } from '../loops/define.js';
import type { TraceEvent } from '../protocol/trace.js';
import type { Host } from './host.js';

const step = (loopId: string): object => ({ loopId, inputMapping: '$.input' });

/** A composite of two tools, of which the second fails while `isDown`. */
function shop(store = memoryStore()) {
  const state = { isDown: true, reserved: 0, paid: 0 };
  const tools = {
    reserve: () => ++state.reserved,
    pay: () => {
      state.paid += 1;
      if (state.isDown) throw new Error('The bank is down.');
      return 'paid';
    },
  };
  const once = { tool: { implementation: 'builtin:pay', safety: 'once' as const } };
  const definitions = [
    tool('reserve', 'builtin:reserve'),
    tool('pay', 'builtin:pay', once),
    composite('order', [step('reserve'), step('pay')]),
  ];
  return { state, store, open: (seed = 1) => hostOf(definitions, { store, tools, seed }) };
}

verifies('turn.retry', 'host.retry: a failed turn continues in another process and keeps what succeeded', async () => {
  const { state, open } = shop();
  const failed = await open().run({ loop: 'order', input: {}, sessionId: 's' });
  expect(failed).toMatchObject({ status: 'error', error: { code: 'TOOL_FAILED' } });
  state.isDown = false;
  const host = open(2);
  const events: TraceEvent[] = [];
  const result = await host.retry(failed.turnId, { onEvent: (event) => events.push(event) });
  expect(result).toMatchObject({ status: 'ok', output: 'paid', turnId: failed.turnId });
  expect(state).toMatchObject({ reserved: 1, paid: 2 });
  expect(events).toEqual(result.trace);
  expect(await host.archive.trace(failed.turnId)).toEqual(result.trace);
  expect(result.trace.filter(({ type }) => type === 'call.errored')).toEqual([]);
  expect(result.trace.filter(({ type }) => type === 'child.completed')).toHaveLength(2);
  expect(result.trace.filter(({ type }) => /tool\.(?:invoked|returned)$/.test(type)).map(({ type }) => type)).toEqual([
    'call.tool.invoked',
    'call.tool.returned',
    'call.tool.invoked',
    'rondo.tool.invoked',
    'call.tool.returned',
  ]);
  expect(await host.archive.status(failed.turnId)).toMatchObject([{ status: 'ok' }]);
  expect(await host.replay(failed.turnId)).toMatchObject({ matches: true, calls: 3 });
  expect(await host.resume(failed.turnId)).toMatchObject({ status: 'ok', output: 'paid' });
});

verifies('turn.retry', 'host.retry: a turn that has not failed is refused', async () => {
  const { state, open } = shop();
  const host = open();
  const waiting = defineLoop({
    id: 'waiting',
    input: true as never,
    output: true as never,
    run: (_input, scope) => scope.wait('go') as never,
  });
  state.isDown = false;
  const done = await host.run({ loop: 'order', input: {} });
  const paused = await host.run({ loop: waiting, input: {} as never });
  const refusal = { code: 'RETRY_REFUSED' };
  await expect(host.retry(done.turnId)).rejects.toMatchObject(refusal);
  await expect(host.retry(paused.turnId)).rejects.toMatchObject(refusal);
  await host.cancel(paused.turnId, 'enough');
  await expect(host.retry(paused.turnId)).rejects.toMatchObject(refusal);
  await expect(host.retry('s.none')).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
  expect(state.paid).toBe(1);
});

verifies(
  'turn.retry',
  'host.retry: a turn that fails again can be retried again, and is listed as failed',
  async () => {
    const { state, open } = shop();
    const host = open();
    const { turnId } = await host.run({ loop: 'order', input: {} });
    expect((await host.retry(turnId)).status).toBe('error');
    expect(await host.archive.status(turnId)).toMatchObject([{ status: 'error', error: { code: 'TOOL_FAILED' } }]);
    expect((await host.resume(turnId)).status, 'resume performs nothing').toBe('error');
    expect(state.paid).toBe(2);
    state.isDown = false;
    expect((await host.retry(turnId)).status).toBe('ok');
    expect(state).toMatchObject({ reserved: 1, paid: 3 });
  },
);

verifies('turn.retry', 'host.retry: a prompt whose reply does not fit asks the model again', async () => {
  const replies = textProvider(['no number', 'none either', '7']);
  const ask = prompt('ask', 'How many?', { outputSchema: { type: 'number' }, backend: { id: 'replies', model: 'm' } });
  const host = hostOf([ask], { providers: [replies] });
  const failed = await host.run({ loop: 'ask', input: {} });
  expect(failed).toMatchObject({ status: 'error', error: { code: 'OUTPUT_VALIDATION_FAILED' } });
  expect(await host.retry(failed.turnId)).toMatchObject({ status: 'ok', output: 7 });
  expect(replies.requests).toHaveLength(3);
});

verifies(
  'turn.retry',
  'host.retry: an agent whose model failed keeps its tool calls and approvals, and its conversation continues',
  async () => {
    const store = memoryStore();
    let refunds = 0;
    const down: Scripted = () => {
      throw new Error('overloaded');
    };
    const replies: Scripted[] = [
      { calls: [['refund', { id: 1 }]] },
      down,
      { calls: [['refund', { id: 2 }]] },
      { text: 'Both refunded.' },
    ];
    const provider = replyProvider(replies);
    const agent = agentDef('support', { tools: ['refund'] }, { policy: { retry: { attempts: 1 } } });
    const refund = tool('refund', 'builtin:refund', { policy: { approval: 'ask' } });
    const open = (seed: number): Host =>
      hostOf([agent, refund], { store, providers: [provider], tools: { refund: () => ++refunds }, seed });
    const approveNext = async (host: Host): Promise<void> => {
      const [approval] = await host.archive.approvals('s');
      await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
    };
    const host = open(1);
    const { turnId } = await host.run({ loop: 'support', input: { prompt: 'Refund both.' }, sessionId: 's' });
    await approveNext(host);
    expect((await host.resume(turnId)).status).toBe('error');
    const later = open(2);
    expect((await later.retry(turnId)).status, 'the approval of the second call is not requested').toBe('paused');
    await approveNext(later);
    expect(await later.resume(turnId)).toMatchObject({ status: 'ok', output: { text: 'Both refunded.' } });
    expect(refunds).toBe(2);
    const kinds = (await later.archive.events('s')).map(({ type }) => type);
    expect(kinds).toEqual([
      'user-message',
      'tool-call',
      'tool-result',
      'tool-call',
      'tool-result',
      'assistant-message',
    ]);
  },
);
