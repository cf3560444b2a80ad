/** The inbox of a hosted loop: what is accepted, once, and the turns that it causes. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { counter, type HostedFixture, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { appendTo } from '../../../spec/support/hosted-stops.js';
import { repetitions } from '../../../spec/support/repetitions.js';
import { verifies } from '../../../spec/verifies.js';
import type { HostedLoopDocument, HostedSignalDelivery } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import { HOSTED_RECEIVED } from '../../views/hosted-loop.js';

const HOUR_MS = 3_600_000;
const SIGNALS: NonNullable<HostedLoopDocument['signals']> = {
  go: { schema: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } } },
  any: { schema: true },
  checked: { schema: true, verify: { method: 'hmac-sha256', secret: 'env:TEST_SECRET' } },
};

async function listening(more: Partial<HostedLoopDocument> = {}): Promise<HostedFixture> {
  const fixture = hostedFixture();
  const next = { signal: 'optional:$.signal.payload' };
  await fixture.start(counter({ signals: SIGNALS, next, stop: { maxTurns: 50 }, ...more }));
  return fixture;
}

const send = ({ host }: HostedFixture, id: string, payload?: Json, name = 'any') => {
  const delivery: HostedSignalDelivery = { loop: 'counter', id, name, ...(payload !== undefined && { payload }) };
  return host.hosted.signal(delivery);
};

const causes = async ({ host }: HostedFixture) =>
  (await host.hosted.turns('counter')).map(({ cause, signal }) => signal ?? cause);

verifies(
  'hosted.signals',
  'a loop with signals and without a schedule runs one turn for each, oldest first',
  async () => {
    const fixture = await listening();
    expect(await fixture.work()).toEqual([]);
    expect(await fixture.host.hosted.status('counter')).toMatchObject({ status: 'waiting', reason: 'signal' });
    for (const id of ['c', 'a', 'b']) expect(await send(fixture, id, id)).toBe('accepted');
    expect((await fixture.host.hosted.status('counter')).signals).toBe(3);
    await fixture.restart().work();
    expect(await causes(fixture)).toEqual(['c', 'a', 'b']);
    expect(fixture.inputs).toEqual([{ signal: 'c' }, { signal: 'a' }, { signal: 'b' }]);
    expect((await fixture.host.hosted.status('counter')).signals).toBe(0);
    expect(await fixture.work()).toEqual([]);
  },
);

verifies('hosted.signals', 'the payload of a signal reaches its turn and no later one', async () => {
  const fixture = await listening({ schedule: { everyMs: HOUR_MS } });
  await fixture.work();
  await send(fixture, 'a', { secret: 1 });
  await fixture.work();
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  expect(fixture.inputs).toEqual([{ from: 0 }, { signal: { secret: 1 } }, {}]);
});

verifies('hosted.signals', 'a turn that a signal causes takes no due time from the schedule', async () => {
  const fixture = await listening({ schedule: { everyMs: HOUR_MS } });
  await fixture.work();
  for (let hour = 1; hour <= 3; hour++) {
    await fixture.clock.advance(HOUR_MS / 2);
    await send(fixture, `at-${hour}`);
    await fixture.work();
    await fixture.clock.advance(HOUR_MS / 2);
    await fixture.work();
  }
  expect(await causes(fixture)).toEqual(['schedule', 'at-1', 'schedule', 'at-2', 'schedule', 'at-3', 'schedule']);
  const due = (await fixture.host.hosted.turns('counter')).filter(({ cause }) => cause === 'schedule');
  expect(due.map(({ dueAt }) => (Date.parse(dueAt) - START) / HOUR_MS)).toEqual([0, 1, 2, 3]);
});

verifies(
  'hosted.signals',
  'what is due first comes first: a due time before a later signal, and after an earlier one',
  async () => {
    const fixture = await listening({ schedule: { everyMs: HOUR_MS } });
    await fixture.work();
    await fixture.clock.advance(HOUR_MS / 2);
    await send(fixture, 'early');
    await fixture.clock.advance(HOUR_MS);
    await send(fixture, 'late');
    await fixture.work();
    expect(await causes(fixture)).toEqual(['schedule', 'early', 'schedule', 'late']);
  },
);

verifies('hosted.signals', 'a delivery id is accepted once, also in another process and after its turn', async () => {
  const fixture = await listening();
  expect(await send(fixture, 'a', { n: 1 }, 'go')).toBe('accepted');
  expect(await send(fixture, 'a', { n: 1 }, 'go')).toBe('duplicate');
  expect(await send(fixture.restart(), 'a', { n: 1 }, 'go')).toBe('duplicate');
  await fixture.work();
  expect(await send(fixture, 'a', { n: 1 }, 'go')).toBe('duplicate');
  await expect(send(fixture, 'a', { n: 2 }, 'go')).rejects.toMatchObject({ code: 'SIGNAL_CONFLICT' });
  await fixture.work();
  expect(await causes(fixture)).toEqual(['a']);
});

verifies(
  'hosted.signals',
  'senders of different signals may use the same delivery id, and each causes its turn',
  async () => {
    const fixture = await listening({ next: { name: '$.signal.name' } });
    expect(await send(fixture, 'a', { n: 1 }, 'any')).toBe('accepted');
    expect(await send(fixture, 'a', { n: 1 }, 'go')).toBe('accepted');
    expect(await send(fixture, 'a', { n: 1 }, 'any')).toBe('duplicate');
    await fixture.work();
    expect(fixture.inputs).toEqual([{ name: 'any' }, { name: 'go' }]);
  },
);

verifies(
  'hosted.signals',
  'what is not declared, does not fit or is malformed is refused, and causes nothing',
  async () => {
    const fixture = await listening();
    const refused: readonly [code: string, id: string, payload: Json | undefined, name: string][] = [
      ['SIGNAL_REFUSED', 'a', null, 'other'],
      ['SIGNAL_REFUSED', 'a', null, 'constructor'],
      ['SIGNAL_REFUSED', 'a', null, '__proto__'],
      ['INPUT_VALIDATION_FAILED', 'a', {}, 'go'],
      ['INPUT_VALIDATION_FAILED', 'a', { n: 'one' }, 'go'],
      ['INPUT_VALIDATION_FAILED', 'a', undefined, 'go'],
      ['VALUE_INVALID', '', null, 'any'],
      ['VALUE_INVALID', 'with space', null, 'any'],
      ['VALUE_INVALID', 'x'.repeat(201), null, 'any'],
      ['VALUE_INVALID', 'a\n', null, 'any'],
      ['VALUE_INVALID', 'ä', null, 'any'],
      ['VALUE_INVALID', 'a', 'x'.repeat(64 * 1024), 'any'],
      ['VALUE_INVALID', 'a', Array.from({ length: 30_000 }, () => 1), 'any'],
    ];
    for (const [code, id, payload, name] of refused)
      await expect(send(fixture, id, payload, name), `${name} ${id.slice(0, 20)}`).rejects.toMatchObject({ code });
    for (const payload of [{ n: 1n }, () => 1, { n: Number.NaN }])
      await expect(send(fixture, 'a', payload as never), String(payload)).rejects.toThrow();
    expect(await send(fixture, 'a', 'x'.repeat(60 * 1024))).toBe('accepted');
    await fixture.work();
    expect(await causes(fixture)).toEqual(['a']);
  },
);

verifies('hosted.signals', 'a signal is authentic only by the declared method', async () => {
  const { host } = await listening();
  const delivery = { loop: 'counter', name: 'any', id: 'a', payload: null };
  await expect(host.hosted.signal(delivery, 'hmac-sha256')).rejects.toMatchObject({ code: 'SIGNAL_REFUSED' });
  expect(await host.hosted.signal({ ...delivery, name: 'checked' }, 'hmac-sha256')).toBe('accepted');
  expect(await host.hosted.signal({ ...delivery, name: 'checked', id: 'b' }, 'operator')).toBe('accepted');
});

verifies(
  'hosted.signals',
  'at most 1,000 signals wait; a repeated delivery is still known, and a turn makes room',
  async () => {
    const fixture = await listening();
    const received = (id: string) => ({
      type: HOSTED_RECEIVED,
      key: id,
      value: { id, name: 'any', payload: null, at: START, digest: 'd', method: 'operator', keepUntil: START },
    });
    const ids = Array.from({ length: 999 }, (_, index) => `s${index}`);
    await appendTo(fixture, ids.map(received));
    expect(await send(fixture, 'last')).toBe('accepted');
    await expect(send(fixture, 'more')).rejects.toMatchObject({ code: 'INBOX_FULL' });
    expect(await send(fixture, 'last')).toBe('duplicate');
    await fixture.step();
    expect(await send(fixture, 'more')).toBe('accepted');
    await expect(send(fixture, 'yet-more')).rejects.toMatchObject({ code: 'INBOX_FULL' });
  },
);

verifies('hosted.signals', 'an unknown loop receives nothing, and a paused one keeps what it receives', async () => {
  const fixture = await listening();
  const unknown = fixture.host.hosted.signal({ loop: 'other', name: 'any', id: 'a' });
  await expect(unknown).rejects.toMatchObject({ code: 'HOSTED_LOOP_NOT_FOUND' });
  await fixture.host.hosted.pause('counter', { by: 'ada' });
  expect(await send(fixture, 'a')).toBe('accepted');
  expect(await fixture.work()).toEqual([]);
  await fixture.host.hosted.resume('counter', { by: 'ada' });
  await fixture.work();
  expect(await causes(fixture)).toEqual(['a']);
});

verifies(
  'hosted.signals',
  'any order of deliveries, repeats and restarts causes one turn for each accepted id',
  async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ id: fc.constantFrom('a', 'b', 'c', 'd'), n: fc.integer({ min: 0, max: 1 }) }),
      },
      { weight: 2, arbitrary: fc.constantFrom('work', 'restart') },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        let fixture = await listening();
        const accepted = new Map<string, number>();
        for (const each of steps) {
          if (each === 'work') await fixture.step();
          else if (each === 'restart') fixture = fixture.restart();
          else if (typeof each === 'object') {
            const outcome = await send(fixture, each.id, { n: each.n }, 'go').catch(({ code }) => code);
            const known = accepted.get(each.id);
            expect(outcome).toBe(known === undefined ? 'accepted' : known === each.n ? 'duplicate' : 'SIGNAL_CONFLICT');
            if (known === undefined) accepted.set(each.id, each.n);
          }
        }
        await fixture.work();
        expect(await causes(fixture)).toEqual([...accepted.keys()]);
        expect(fixture.inputs).toHaveLength(accepted.size);
      }),
      { numRuns: repetitions(200) },
    );
  },
);
