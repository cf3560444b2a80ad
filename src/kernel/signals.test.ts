/** Signals that are addressed to a root, signals with a schema, and durations as text. */
import { expect } from 'vitest';
import { codeOf, kernelFixture, run, ticks } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import { SessionState } from '../journal/session-state.js';
import type { Scope, SignalType } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { traceOf } from '../views/trace.js';

/** A signal whose payload is a number of at least `min`; its waits return the double. */
function doubled(min = 0): SignalType<number> {
  const validate = (value: unknown): number => {
    if (typeof value === 'number' && value >= min) return value * 2;
    throw new LoopError('INPUT_VALIDATION_FAILED', `It is not a number of at least ${min}.`);
  };
  return { name: 'n', schema: { type: 'number' }, validate };
}

verifies(
  'kernel.signal.address',
  'an addressed signal is received by its root, whenever that root starts',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
    await session.signal({ id: '1', name: 'a', value: 'for t2', turn: 't2' });
    const body = (s: Scope) => s.wait('a');
    expect(await run(session, body, 't1')).toMatchObject({ status: 'paused' });
    const again = await fixture.open();
    expect(await run(again, body, 't1')).toMatchObject({ status: 'paused' });
    expect(await run(again, body, 't2')).toEqual({ status: 'ok', output: 'for t2' });
    await again.signal({ id: '2', name: 'a', value: 'for any' });
    expect(await run(again, body, 't1')).toEqual({ status: 'ok', output: 'for any' });
    const received = (await fixture.entries()).filter(({ type }) => type === 'signal.received');
    expect(received.map(({ turnId }) => turnId)).toEqual(['t2', undefined]);
  },
);

verifies(
  'kernel.signal.address',
  'addressed and unaddressed signals are received oldest first, also live',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
    const body = async (s: Scope) => {
      const all: unknown[] = [];
      for (let i = 0; i < 6; i++) all.push(await s.wait('a'));
      return all;
    };
    const send = (id: number, turn?: string) => session.signal({ id: `${id}`, name: 'a', value: id, turn });
    await send(1);
    await send(2, 't1');
    await send(3, 't2');
    await send(4);
    const running = run(
      session,
      async (s) => s.all([body, (branch) => branch.sleep(10).then(() => null)]),
      't1',
      'hold',
    );
    await ticks();
    for (const [id, turn] of [
      [5, 't2'],
      [6, 't1'],
      [7, undefined],
      [8, 't1'],
    ] as const)
      await send(id, turn);
    await ticks();
    await fixture.clock.advance(10);
    expect(await running).toMatchObject({ status: 'ok', output: [[1, 2, 4, 6, 7, 8], null] });
  },
);

verifies(
  'kernel.signal.address',
  'a signal that a losing branch returns is still received by its root only',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
    await session.signal({ id: '1', name: 'a', value: 1, turn: 't1' });
    await session.signal({ id: '2', name: 'go', turn: 't1' });
    const body = async (s: Scope) => {
      await s.race([async (r) => [await r.wait('a'), await r.wait('never')], (r) => r.wait('go')]);
      await s.wait('continue');
      return s.wait('a');
    };
    expect(await run(session, body)).toMatchObject({ status: 'paused' });
    expect(await run(session, (s) => s.wait('a'), 't2')).toMatchObject({ status: 'paused' });
    const again = await fixture.open();
    await again.signal({ id: '3', name: 'continue' });
    expect(await run(again, body)).toEqual({ status: 'ok', output: 1 });
  },
);

verifies('kernel.signal', 'two signals that a losing branch returns reach two waits', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  for (const id of ['1', '2']) await session.signal({ id, name: 'a', value: id });
  const body = (s: Scope) =>
    s.all([
      (b) =>
        b.race([
          async (r) => [await r.wait('a'), await r.wait('a'), await r.wait('never')],
          (r) => r.sleep(10).then(() => null),
        ]),
      (b) => b.sleep(5).then(() => b.wait('a')),
      (b) => b.sleep(5).then(() => b.wait('a')),
    ]);
  const running = run(session, body, 't1', 'hold');
  for (let i = 0; i < 3; i++) {
    await ticks();
    await fixture.clock.advance(5);
  }
  expect(await running).toEqual({ status: 'ok', output: [null, '1', '2'] });
});

verifies(
  'kernel.signal.address',
  'a delivery is repeated only with the same address, and never to an ended root',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
    const signal = { id: '1', name: 'a', value: 1, turn: 't1' };
    expect(await session.signal(signal)).toBe(true);
    expect(await session.signal(signal)).toBe(false);
    expect(await codeOf(session.signal({ ...signal, turn: 't2' }))).toBe('SIGNAL_CONFLICT');
    expect(await codeOf(session.signal({ id: '1', name: 'a', value: 1 }))).toBe('SIGNAL_CONFLICT');
    await expect(session.signal({ ...signal, id: '2', turn: 'no/root' })).rejects.toThrow(TypeError);
    expect(await run(session, (s) => s.wait('a'))).toEqual({ status: 'ok', output: 1 });
    const again = await fixture.open();
    expect(await again.signal(signal)).toBe(false);
    await expect(again.signal({ ...signal, id: '2' })).rejects.toThrow('The turn t1 has ended');
    expect(await codeOf(again.signal({ ...signal, id: '2' }))).toBe('TURN_ENDED');
  },
);

verifies('kernel.snapshot', 'a snapshot keeps the addresses of signals, and drops those of completed roots', () => {
  const state = new SessionState();
  const entries: Partial<Entry>[] = [
    { type: 'signal.received', key: 'a', name: 'x', turnId: 't1' },
    { type: 'signal.received', key: 'b', name: 'x', turnId: 't2' },
    { type: 'signal.received', key: 'c', name: 'x' },
    { type: 'signal.received', key: 'd', name: 'x', turnId: 't3' },
    ...['t1', 't2'].map((key) => ({ type: 'call.started', key })),
    { type: 'call.completed', key: 't1' },
    { type: 'call.errored', key: 't2' },
  ];
  for (const [seq, entry] of entries.entries()) state.apply({ seq, at: 0, ...entry } as Entry);
  const saved = JSON.parse(JSON.stringify(state.save())) as Json;
  for (const restored of [state, SessionState.parse(saved, (entry) => entry)]) {
    const oldest = ['t1', 't2', 't3', 't4'].map((root) => restored.oldestSignal('x', root)?.key);
    expect(oldest).toEqual(['c', 'b', 'c', 'c']);
    restored.apply({ seq: 9, at: 0, type: 'wait.settled', key: 't4/0', signalId: 'c' });
    expect(restored.oldestSignal('x', 't4')).toBeUndefined();
    expect(restored.oldestSignal('x', 't3')?.key).toBe('d');
  }
});

verifies('kernel.signal.type', 'a wait returns the parsed payload, and the same on replay', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const body = async (s: Scope) => [await s.wait(doubled()), await s.wait('end')];
  await session.signal({ id: '1', name: 'n', value: 21 });
  expect(await run(session, body)).toMatchObject({ status: 'paused' });
  const again = await fixture.open();
  await again.signal({ id: '2', name: 'end', value: null });
  expect(await run(again, body)).toEqual({ status: 'ok', output: [42, null] });
  const settled = (await fixture.entries()).find(({ type }) => type === 'wait.settled');
  expect(settled?.value, 'the journal does not hold the payload as it was sent').toBe(21);
});

verifies('kernel.signal.type', 'invalid payloads are discarded once, with a warning in the trace', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const body = async (s: Scope) => [await s.wait(doubled()), await s.wait('end')];
  await session.signal({ id: 'early', name: 'n', value: 'x'.repeat(9000) });
  const running = run(session, (s) => s.all([body, (b) => b.sleep(10).then(() => null)]), 't1', 'hold');
  await ticks();
  await session.signal({ id: 'live', name: 'n', value: null });
  await ticks();
  await fixture.clock.advance(10);
  expect(await running).toMatchObject({ status: 'paused', pending: [{ kind: 'signal', name: 'n' }] });
  const again = await fixture.open();
  await again.signal({ id: 'valid', name: 'n', value: 4 });
  await again.signal({ id: 'end', name: 'end', value: null });
  expect(await run(again, (s) => s.all([body, (b) => b.sleep(10).then(() => null)]))).toMatchObject({
    output: [[8, null], null],
  });
  const entries = await fixture.entries();
  const discarded = entries.filter(({ type }) => type === 'signal.discarded');
  expect(discarded.map(({ key, waitKey }) => [key, waitKey])).toEqual([
    ['early', 't1/0/0/0'],
    ['live', 't1/0/0/0'],
  ]);
  const logs = traceOf('t1', entries).filter(({ type }) => type === 'log');
  expect(logs.map(({ payload }) => payload)).toEqual(
    ['early', 'live'].map((id) => ({
      level: 'warn',
      message: `Signal "n" (delivery "${id}") was discarded: It is not a number of at least 0.`,
    })),
  );
});

verifies('kernel.signal.type', 'a refusal by another copy of the package discards the payload too', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const validate = (value: unknown): number => {
    if (value === 1) return value;
    throw Object.assign(new Error('It is not one.'), { code: 'INPUT_VALIDATION_FAILED' });
  };
  for (const value of [0, 1]) await session.signal({ id: `${value}`, name: 'n', value });
  expect(await run(session, (s) => s.wait({ ...doubled(), validate }))).toEqual({ status: 'ok', output: 1 });
});

verifies('kernel.signal.type', 'a discarded signal does not return when its branch loses a race', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await session.signal({ id: '1', name: 'n', value: 'wrong' });
  await session.signal({ id: '2', name: 'go' });
  const outcome = await run(session, async (s) => {
    await s.race([(r) => r.wait(doubled()), (r) => r.wait('go')]);
    return s.wait('n');
  });
  expect(outcome).toMatchObject({ status: 'paused' });
});

verifies('kernel.signal.type', 'a recorded payload that the schema refuses now stops the replay', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await session.signal({ id: '1', name: 'n', value: 3 });
  const body = (min: number) => async (s: Scope) => [await s.wait(doubled(min)), await s.wait('end')];
  await run(session, body(0));
  expect(await codeOf(run(await fixture.open(), body(10)))).toBe('REPLAY_MISMATCH');
  const restored = await fixture.open();
  await restored.signal({ id: '2', name: 'end', value: null });
  expect(await run(restored, body(0))).toEqual({ status: 'ok', output: [6, null] });
});

verifies('kernel.signal.type', 'a schema that fails is an error of the body and consumes no signal', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const broken: SignalType = {
    ...doubled(),
    validate: () => {
      throw new TypeError('a bug');
    },
  };
  const running = run(session, (s) => s.race([(r) => r.wait(broken), (r) => r.sleep(10)]), 't1', 'hold');
  await ticks();
  expect(await session.signal({ id: '1', name: 'n', value: 3 }), 'the sender got the error').toBe(true);
  expect(await running).toMatchObject({ status: 'error', error: { message: 'a bug' } });
  expect(await run(session, (s) => s.wait(doubled()), 't2')).toEqual({ status: 'ok', output: 6 });
});

verifies('kernel.race', 'a race of a wait and a sleep is a wait with a timeout', async () => {
  const body = async (s: Scope) => (await s.race([(r) => r.wait(doubled()), (r) => r.sleep('3 days')])) ?? 'too late';
  for (const isInTime of [true, false]) {
    const fixture = kernelFixture();
    expect(await run(await fixture.open(), body)).toMatchObject({ status: 'paused' });
    await fixture.clock.advance(isInTime ? 1000 : 3 * 86_400_000);
    const session = await fixture.open();
    if (isInTime) await session.signal({ id: '1', name: 'n', value: 1, turn: 't1' });
    expect(await run(session, body)).toEqual({ status: 'ok', output: isInTime ? 2 : 'too late' });
    expect(await run(await fixture.open(), body)).toEqual({ status: 'ok', output: isInTime ? 2 : 'too late' });
  }
});

verifies(
  'kernel.timer',
  'a duration as text is recorded in milliseconds, and nonsense is an error of the step',
  async () => {
    const fixture = kernelFixture();
    const outcome = await run(await fixture.open(), (s) => s.sleep('1 hour 30 minutes'));
    expect(outcome).toMatchObject({ status: 'paused', pending: [{ kind: 'timer', until: 1000 + 5_400_000 }] });
    const timer = (await fixture.entries()).find(({ type }) => type === 'timer.set');
    expect(timer?.value).toBe(5_400_000);
    const again = await fixture.open();
    expect(await run(again, (s) => s.sleep(5_400_000))).toMatchObject({ status: 'paused' });
    const wrong = await run(again, (s) => s.sleep('soon'), 't2');
    expect(wrong).toMatchObject({ status: 'error', error: { code: 'VALUE_INVALID' } });
  },
);
