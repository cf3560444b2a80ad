import { expect } from 'vitest';
import { z } from 'zod';
import { hostOf } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { defineLoop } from '../loops/define.js';
import { defineSignal } from '../loops/define-signal.js';
import type { Scope } from '../protocol/body.js';
import { ManualClock } from '../testing/manual-clock.js';
import type { SignalRequest } from './host.js';

const paid = defineSignal('paid', z.object({ amount: z.number() }));
const loopOf = (id: string, run: (input: unknown, scope: Scope) => Promise<unknown>) =>
  defineLoop({ id, input: true, output: true, run });
const order = loopOf('order', async (_input, scope) => ({ paid: (await scope.wait(paid)).amount }));
/** Runs until its timer fires, and then waits. */
const later = loopOf('later', async (_input, scope) => {
  await scope.sleep('1 hour');
  return scope.wait('go');
});

verifies('host.signal', 'a paused turn receives a signal and continues when it is resumed', async () => {
  const host = hostOf([order]);
  const { turnId, status } = await host.run({ loop: 'order', input: {} });
  expect(status).toBe('paused');
  expect(await host.signal({ turnId, name: paid, payload: { amount: 5 } })).toBe(true);
  expect(await host.resume(turnId)).toMatchObject({ status: 'ok', output: { paid: 5 } });
});

verifies('host.signal', 'a running turn receives a signal, also one that it does not wait for yet', async () => {
  const clock = new ManualClock(1000);
  const host = hostOf([later], { clock });
  let turnId = '';
  const running = host.run({ loop: 'later', input: {} }, { timers: 'hold', onTurn: (id) => (turnId = id) });
  await expect.poll(async () => (await host.archive.turns())[0]?.status).toBe('running');
  expect(await host.signal({ turnId, name: 'go', payload: 'early' })).toBe(true);
  await clock.advance(3_600_000);
  expect(await running).toMatchObject({ status: 'ok', output: 'early' });
});

verifies('host.signal', 'a turn that is being started receives a signal while it runs', async () => {
  const host = hostOf([
    loopOf('holds', (_input, scope) => scope.race([(s) => s.wait('go'), (s) => s.sleep('1 hour').then(() => 'late')])),
  ]);
  let turnId = '';
  const running = host.run({ loop: 'holds', input: {}, key: 'k' }, { onTurn: (id) => (turnId = id) });
  while (turnId === '') await undefined;
  expect(await host.signal({ turnId, name: 'go', payload: 'at once' })).toBe(true);
  expect(await running).toMatchObject({ status: 'ok', output: 'at once' });
});

verifies('host.signal', 'a delivery id is accepted once for each turn, and only with the same content', async () => {
  const host = hostOf([order]);
  const turns = [];
  for (let i = 0; i < 2; i++) turns.push(await host.run({ loop: 'order', input: {}, sessionId: 's' }));
  for (const { turnId } of turns) {
    const request = { turnId, name: 'paid', payload: { amount: 5 }, id: 'event-1' };
    expect(await host.signal(request)).toBe(true);
    expect(await host.signal(request)).toBe(false);
    await expect(host.signal({ ...request, payload: { amount: 6 } })).rejects.toMatchObject({
      code: 'SIGNAL_CONFLICT',
    });
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok', output: { paid: 5 } });
    expect(await host.signal(request), 'a repetition after the end').toBe(false);
  }
});

verifies('host.signal', 'a signal to a session is received by the turn that waits for it', async () => {
  const host = hostOf([order]);
  const first = await host.run({ loop: 'order', input: {}, sessionId: 's' });
  const second = await host.run({ loop: 'order', input: {}, sessionId: 's' });
  await host.signal({ turnId: second.turnId, name: 'paid', payload: { amount: 2 } });
  await host.signal({ sessionId: 's', name: 'paid', payload: { amount: 1 } });
  expect(await host.resume(first.turnId)).toMatchObject({ output: { paid: 1 } });
  expect(await host.resume(second.turnId)).toMatchObject({ output: { paid: 2 } });
  await host.signal({ sessionId: 's', name: 'paid', payload: { amount: 3 } });
  expect(await host.run({ loop: 'order', input: {}, sessionId: 's' })).toMatchObject({ output: { paid: 3 } });
});

verifies('host.signal', 'a payload that does not fit is refused, or discarded by the wait', async () => {
  const host = hostOf([order]);
  const { turnId } = await host.run({ loop: 'order', input: {} });
  const payload = { amount: 'five' } as unknown as { amount: number };
  await expect(host.signal({ turnId, name: paid, payload })).rejects.toMatchObject({ code: 'INPUT_VALIDATION_FAILED' });
  expect(await host.signal({ turnId, name: 'paid', payload })).toBe(true);
  const paused = await host.resume(turnId);
  expect(paused).toMatchObject({ status: 'paused' });
  const warnings = paused.trace.filter(({ type }) => type === 'log').map(({ payload: log }) => log);
  expect(warnings).toEqual([{ level: 'warn', message: expect.stringContaining('does not fit its schema: /amount') }]);
  await host.signal({ turnId, name: paid, payload: { amount: 5 } });
  expect(await host.resume(turnId)).toMatchObject({ status: 'ok', output: { paid: 5 } });
  expect(await host.replay(turnId)).toMatchObject({ matches: true });
});

verifies('host.signal', 'a signal to an unknown or ended turn is refused, and creates nothing', async () => {
  const store = memoryStore();
  const host = hostOf([order, loopOf('quick', async () => 'done')], { store });
  const { turnId } = await host.run({ loop: 'quick', input: {} });
  await expect(host.signal({ turnId, name: 'paid' })).rejects.toMatchObject({ code: 'TURN_ENDED', data: { turnId } });
  const unknown = [{ turnId: 'other.1' }, { turnId: 'nothing' }, { turnId: '' }, { sessionId: 'other' }];
  for (const address of unknown)
    await expect(host.signal({ ...address, name: 'paid' })).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
  expect((await store.journal.list()).map(({ session }) => session)).toEqual([turnId.split('.')[0]]);
});

verifies('host.signal', 'a malformed request is refused before anything is recorded', async () => {
  const host = hostOf([order]);
  const { turnId, sessionId } = await host.run({ loop: 'order', input: {} });
  const requests: object[] = [
    { name: 'paid' },
    { turnId, sessionId, name: 'paid' },
    { turnId, name: '' },
    { turnId },
    { turnId, name: 'paid', id: '' },
    { turnId, name: 'paid', value: 1 },
    ...['steer', 'queue', 'approval 1'].map((name) => ({ turnId, name })),
  ];
  for (const request of requests)
    await expect(host.signal(request as SignalRequest), JSON.stringify(request)).rejects.toThrow(TypeError);
  for (const payload of [() => 1, Number.NaN, { at: 5n }])
    await expect(host.signal({ turnId, name: 'paid', payload })).rejects.toMatchObject({ code: 'VALUE_INVALID' });
  const types = (await host.archive.entries(sessionId)).map(({ type }) => type);
  expect(types).not.toContain('signal.received');
});
