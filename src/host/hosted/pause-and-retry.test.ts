/** Pauses, resumes and retries of hosted loops, and turns that are cancelled. */
import { expect } from 'vitest';
import { onlyPending } from '../../../spec/support/approval-fixture.js';
import { counter, type HostedFixture, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { ASKING, appendTo, expectGoesOn, expectStopped } from '../../../spec/support/hosted-stops.js';
import { verifies } from '../../../spec/verifies.js';
import type { ToolFunction } from '../../loops/tool-implementation.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import { HOSTED_ENDED, HOSTED_STOPPED } from '../../views/hosted-loop.js';

const HOUR_MS = 3_600_000;
const EVERY_HOUR: Partial<HostedLoopDocument> = { schedule: { everyMs: HOUR_MS }, stop: { maxTurns: 10 } };
const BY = { by: 'ada' };

async function started(
  more: Partial<HostedLoopDocument>,
  tools: { readonly [name: string]: ToolFunction } = {},
): Promise<HostedFixture> {
  const fixture = hostedFixture({ tools });
  await fixture.start(counter({ ...EVERY_HOUR, ...more }));
  return fixture;
}

const statusOf = ({ host }: HostedFixture) => host.hosted.status('counter');
const dueTimes = async ({ host }: HostedFixture) =>
  (await host.hosted.turns('counter')).map(({ dueAt }) => (Date.parse(dueAt) - START) / HOUR_MS);

/** Pauses a loop after its first turn, passes three due times, and resumes it. */
async function pausedForThreeHours(catchUp: NonNullable<HostedLoopDocument['catchUp']>): Promise<HostedFixture> {
  const fixture = await started({ catchUp });
  await fixture.work();
  await fixture.host.hosted.pause('counter', BY);
  for (let hour = 0; hour < 3; hour++) {
    await fixture.clock.advance(HOUR_MS);
    for (const each of [fixture, fixture.restart()]) expect(await each.work()).toEqual([]);
    await fixture.step();
  }
  expect(fixture.inputs).toHaveLength(1);
  expect(await statusOf(fixture)).toMatchObject({ status: 'paused', message: 'Paused by ada.', turns: 1 });
  await fixture.clock.advance(HOUR_MS / 4);
  await fixture.host.hosted.resume('counter', BY);
  await fixture.restart().work();
  return fixture;
}

verifies(
  'hosted.control',
  'a paused loop starts nothing; with catch-up "one", one turn follows the pause',
  async () => {
    expect(await dueTimes(await pausedForThreeHours('one'))).toEqual([0, 1]);
  },
);

verifies('hosted.control', 'with catch-up "all", a turn follows the pause for each due time', async () => {
  expect(await dueTimes(await pausedForThreeHours('all'))).toEqual([0, 1, 2, 3]);
});

verifies('hosted.control', 'with catch-up "none", what was due in the pause is dropped', async () => {
  const fixture = await pausedForThreeHours('none');
  expect(await dueTimes(fixture)).toEqual([0]);
  await fixture.clock.advance(HOUR_MS * 0.75);
  await fixture.work();
  expect(await dueTimes(fixture)).toEqual([0, 4]);
});

verifies('hosted.control', 'a turn that waits for an approval is not continued while its loop is paused', async () => {
  const fixture = await started(ASKING);
  await fixture.work();
  await fixture.host.hosted.pause('counter', BY);
  const { id, turnId } = await onlyPending(fixture.host);
  await fixture.host.answer({ id, approved: true, by: 'ada' });
  for (const each of [fixture, fixture.restart()]) {
    await each.work();
    await each.step();
    await expect(each.host.resume(turnId)).rejects.toMatchObject({ code: 'HOSTED_LOOP_CONFLICT' });
  }
  expect(fixture.inputs).toEqual([]);
  await fixture.host.hosted.resume('counter', BY);
  await fixture.restart().work();
  expect(fixture.inputs).toHaveLength(1);
  await expectGoesOn(fixture, 1);
});

verifies('hosted.control', 'a resumed loop whose turn still waits goes on waiting', async () => {
  const fixture = await started(ASKING);
  await fixture.work();
  await fixture.host.hosted.pause('counter', BY);
  await fixture.host.hosted.resume('counter', BY);
  await fixture.work();
  expect(await statusOf(fixture)).toMatchObject({ status: 'waiting', reason: 'approval' });
  expect(fixture.inputs).toEqual([]);
});

verifies('hosted.control', 'a turn that runs goes on when its loop is paused, and none follows it', async () => {
  const loop: { fixture?: HostedFixture } = {};
  const count: ToolFunction = async () => {
    await loop.fixture?.host.hosted.pause('counter', BY);
    return { n: 1 };
  };
  loop.fixture = hostedFixture({ tools: { count } });
  await loop.fixture.start(counter());
  expect(await loop.fixture.work()).toMatchObject([{ status: 'ok' }]);
  expect(await statusOf(loop.fixture)).toMatchObject({ status: 'paused', turns: 1 });
});

verifies('hosted.control', 'a paused loop stops at its deadline and at a stop, and stays paused twice', async () => {
  const paused = async () => {
    const fixture = await started({ stop: { maxTurns: 10, deadline: new Date(START + HOUR_MS).toISOString() } });
    await fixture.work();
    const first = await fixture.host.hosted.pause('counter', BY);
    expect(await fixture.host.hosted.pause('counter', { by: 'eve' })).toEqual(first);
    return fixture;
  };
  const late = await paused();
  await late.clock.advance(HOUR_MS);
  await late.work();
  await expectStopped(late, 'deadline');
  const stopped = await paused();
  await stopped.host.hosted.stop('counter', BY);
  await expectStopped(stopped, 'stopped_by');
});

verifies('hosted.control', 'a stopped loop cannot be paused or resumed, and an unknown one has no status', async () => {
  const fixture = await started({});
  await fixture.host.hosted.stop('counter', BY);
  const { hosted } = fixture.host;
  for (const verb of ['pause', 'resume'] as const)
    await expect(hosted[verb]('counter', BY)).rejects.toMatchObject({ code: 'HOSTED_LOOP_CONFLICT' });
  for (const verb of ['pause', 'resume', 'stop'] as const)
    await expect(hosted[verb]('other', BY)).rejects.toMatchObject({ code: 'HOSTED_LOOP_NOT_FOUND' });
});

verifies('hosted.control', 'a loop has one content, also if it is started again or elsewhere', async () => {
  const fixture = await started({});
  await fixture.work();
  const same = await fixture.restart().host.hosted.start(counter(EVERY_HOUR), { by: 'eve' });
  expect(same.turns).toBe(1);
  const other = fixture.restart().host.hosted.start(counter({ ...EVERY_HOUR, input: { from: 9 } }), { by: 'eve' });
  await expect(other).rejects.toMatchObject({ code: 'HOSTED_LOOP_CONFLICT' });
});

verifies('hosted.stops', 'failed turns are retried after the delay, and a success starts the count again', async () => {
  const outcomes = [false, true, false, false, false];
  const calls: number[] = [];
  const fixture: HostedFixture = await started(
    { schedule: { everyMs: 24 * HOUR_MS }, retry: { maxFailures: 3, delayMs: 1000 } },
    {
      count: async () => {
        calls.push(fixture.clock.now() - START);
        if (outcomes.shift() !== true) throw new Error('down');
        return { n: calls.length };
      },
    },
  );
  await fixture.work();
  expect(await statusOf(fixture)).toMatchObject({ status: 'waiting', reason: 'retry', turns: 1 });
  await fixture.clock.advance(999);
  expect(await fixture.work(), 'a retry before its delay').toEqual([]);
  await fixture.clock.advance(1);
  await fixture.work();
  await expectGoesOn(fixture, 2);
  await fixture.clock.advance(24 * HOUR_MS - 1000);
  for (let seconds = 0; seconds < 4; seconds++) {
    await fixture.work();
    await fixture.clock.advance(1000);
  }
  const day = 24 * HOUR_MS;
  expect(calls).toEqual([0, 1000, day, day + 1000, day + 2000]);
  expect(await statusOf(fixture)).toMatchObject({ message: expect.stringContaining('3 turns failed') });
  await expectStopped(fixture, 'turn_failed');
});

verifies('hosted.stops', 'a retry counts against the maximum of turns', async () => {
  const fails: ToolFunction = () => Promise.reject(new Error('down'));
  const fixture = await started({ stop: { maxTurns: 2 }, retry: { maxFailures: 9 } }, { count: fails });
  await fixture.work();
  expect((await statusOf(fixture)).turns).toBe(2);
  await expectStopped(fixture, 'max_turns');
});

verifies('hosted.stops', 'a signal does not start a turn before the delay of a retry', async () => {
  const fails: ToolFunction = () => Promise.reject(new Error('down'));
  const more = { signals: { go: { schema: true } }, retry: { maxFailures: 9, delayMs: 1000 } };
  const fixture = await started(more, { count: fails });
  await fixture.work();
  await fixture.host.hosted.signal({ loop: 'counter', name: 'go', id: '1' });
  await fixture.work();
  expect((await statusOf(fixture)).turns).toBe(1);
});

verifies('hosted.stops', 'a turn that is cancelled counts as failed', async () => {
  for (const [retry, reason] of [
    [undefined, 'turn_failed'],
    [{ maxFailures: 2, delayMs: HOUR_MS }, undefined],
  ] as const) {
    const fixture = await started({ ...ASKING, ...(retry && { retry }) });
    await fixture.work();
    const { turnId } = await onlyPending(fixture.host);
    expect(await fixture.host.cancel(turnId, 'not now')).toBe(true);
    const [turn] = await fixture.host.hosted.turns('counter');
    expect(turn).toMatchObject({ status: 'cancelled' });
    if (reason === undefined) await expectGoesOn(fixture, 1);
    else await expectStopped(fixture, reason);
  }
});

verifies('hosted.stops', 'failed turns and outputs that repeat are no progress; a new output is', async () => {
  const outputs = ['a', 'b', 'b', undefined, 'c', 'c', undefined, 'd'];
  const fixture = await started(
    { schedule: { delayMs: 0 }, stop: { maxTurns: 20, noProgress: 3 }, retry: { maxFailures: 5 } },
    {
      count: async () => {
        const output = outputs.shift();
        if (output === undefined) throw new Error('down');
        return { output };
      },
    },
  );
  await fixture.work();
  // b, a failure; c, a failure, then d is new: the exhausted list fails three times in a row.
  expect(outputs).toEqual([]);
  expect((await statusOf(fixture)).turns).toBe(11);
  await expectStopped(fixture, 'no_progress');
});

verifies('hosted.stops', 'a retry runs with the input and the signal of the turn that failed', async () => {
  let failures = 1;
  const inputs: unknown[] = [];
  const flaky: ToolFunction = async (input) => {
    inputs.push(input);
    if (failures-- > 0) throw new Error('down');
    return {};
  };
  const signals = { go: { schema: true } };
  const fixture = hostedFixture({ tools: { count: flaky } });
  await fixture.start(counter({ signals, next: { n: '$.signal.payload' }, retry: { maxFailures: 3 } }));
  await fixture.host.hosted.signal({ loop: 'counter', name: 'go', payload: 7, id: 'a' });
  await fixture.work();
  expect(inputs).toEqual([{ n: 7 }, { n: 7 }]);
  const turns = await fixture.host.hosted.turns('counter');
  expect(turns.map(({ cause, signal, status }) => [cause, signal, status])).toEqual([
    ['signal', 'a', 'error'],
    ['retry', 'a', 'ok'],
  ]);
  await expectGoesOn(fixture, 2);
});

verifies('hosted.stops', 'a failed turn between two equal outputs is no progress', async () => {
  let calls = 0;
  const flaky: ToolFunction = async () => {
    calls += 1;
    if (calls % 2 === 0) throw new Error('down');
    return { n: 1 };
  };
  const more = { schedule: { delayMs: 0 }, stop: { maxTurns: 12, noProgress: 2 }, retry: { maxFailures: 2 } };
  const fixture = await started(more, { count: flaky });
  await fixture.work();
  expect((await statusOf(fixture)).turns).toBe(3);
  await expectStopped(fixture, 'no_progress');
});

verifies(
  'hosted.control',
  'a turn that ends after its loop was stopped elsewhere plans and hands off nothing',
  async () => {
    const count: ToolFunction = async () => {
      // Another process, whose entry this one does not know when its turn ends.
      await appendTo(fixture, [
        { type: HOSTED_STOPPED, key: 'stop', value: { reason: 'stopped_by', message: 'Stopped by eve.', at: START } },
      ]);
      return { n: 1 };
    };
    const handoffs = [{ target: 'other', input: '$.last.output', reason: 'Continue.' }];
    const fixture: HostedFixture = await started({ handoffs }, { count });
    await fixture.step();
    const [turn] = await fixture.host.hosted.turns('counter');
    expect(turn).toMatchObject({ status: 'ok', next: { stopped: 'stopped_by' } });
    expect(turn?.handoffs).toBeUndefined();
    const types: string[] = [];
    for await (const batch of fixture.store.journal.read('rondo:hosted:counter', 0))
      types.push(...batch.map(({ type }) => type));
    expect(types.slice(-2)).toEqual([HOSTED_STOPPED, HOSTED_ENDED]);
  },
);
