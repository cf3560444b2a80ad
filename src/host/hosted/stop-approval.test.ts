/** Approvals, deadlines and stops of hosted loops while a turn is open. */
import { expect } from 'vitest';
import { gate, onlyPending, ticks } from '../../../spec/support/approval-fixture.js';
import { sequence, tool } from '../../../spec/support/host-fixture.js';
import { counter, type HostedFixture, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { ASKING, appendTo, expectGoesOn, expectStopped } from '../../../spec/support/hosted-stops.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import type { ToolFunction } from '../../loops/tool-implementation.js';
import type { HostedLoopDocument, StopPolicy } from '../../protocol/hosted-loop.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { HOSTED_STOPPED } from '../../views/hosted-loop.js';

const HOUR_MS = 3_600_000;
const EVERY_HOUR = { schedule: { everyMs: HOUR_MS } } as const;
const ANY = { grant: { allowedTools: ['*'], limits: {} } } as const;
const DEADLINE = new Date(START + HOUR_MS / 2).toISOString();

/** A loop whose first turn waits for an approval. */
async function waiting(stop: Partial<StopPolicy> = {}, more: Partial<HostedLoopDocument> = {}): Promise<HostedFixture> {
  const fixture = hostedFixture();
  await fixture.start(counter({ ...ASKING, ...EVERY_HOUR, ...more, stop: { maxTurns: 10, ...stop } }));
  await fixture.work();
  return fixture;
}

async function answer(fixture: HostedFixture, approved: boolean): Promise<void> {
  const { id } = await onlyPending(fixture.host);
  await fixture.host.answer({ id, approved, by: 'ada' });
  await fixture.work();
}

const endOfFirst = async ({ host }: HostedFixture) => (await host.hosted.turns('counter'))[0];

verifies('hosted.stops', 'a turn waits for an approval, and goes on with it', async () => {
  const fixture = await waiting();
  expect(await fixture.host.hosted.status('counter')).toMatchObject({
    status: 'waiting',
    reason: 'approval',
    turns: 1,
  });
  await answer(fixture, true);
  expect(fixture.inputs).toHaveLength(1);
  await expectGoesOn(fixture, 1);
});

verifies('hosted.stops', 'an approval that expires stops the loop as a denied one does', async () => {
  const fixture = await waiting();
  await fixture.clock.advance(400 * 24 * HOUR_MS);
  await fixture.work();
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'approval');
});

verifies('hosted.stops', 'with "pending", a turn that needs an approval is cancelled and stops the loop', async () => {
  const fixture = await waiting({ approval: 'pending' });
  const { id } = (await fixture.host.archive.approvals())[0] ?? { id: 'gone' };
  expect(await endOfFirst(fixture)).toMatchObject({ status: 'cancelled' });
  await fixture.host.answer({ id, approved: true, by: 'ada' }).catch(() => undefined);
  await fixture.work();
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'approval');
});

verifies('hosted.stops', 'with "pending", a turn that needs no approval does not stop the loop', async () => {
  const fixture = hostedFixture();
  await fixture.start(counter({ ...EVERY_HOUR, stop: { maxTurns: 10, approval: 'pending' } }));
  await fixture.work();
  expect(fixture.inputs).toHaveLength(1);
  await expectGoesOn(fixture, 1);
});

verifies('hosted.stops', 'with "ignore", a denied approval fails its turn, which a retry may follow', async () => {
  const fixture = await waiting({ approval: 'ignore' }, { retry: { maxFailures: 2, delayMs: HOUR_MS } });
  await answer(fixture, false);
  expect(await endOfFirst(fixture)).toMatchObject({ status: 'error', code: 'APPROVAL_DENIED' });
  await expectGoesOn(fixture, 1);
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  await answer(fixture, false);
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'turn_failed');
});

verifies(
  'hosted.stops',
  'with "ignore", a turn that succeeds although an approval was denied is followed by others',
  async () => {
    const provider = replyProvider([{ calls: [['count', {}]] }, { text: 'Done without it.' }]);
    const fixture = hostedFixture({ definitions: [agentDef('agent', { tools: ['count'] })], providers: [provider] });
    const asking = { ...EVERY_HOUR, ...ASKING, loop: 'agent', input: { prompt: 'Go.' } };
    await fixture.start(counter({ ...asking, stop: { maxTurns: 10, approval: 'ignore' } }));
    await fixture.work();
    await answer(fixture, false);
    expect(await endOfFirst(fixture)).toMatchObject({ status: 'ok' });
    await expectGoesOn(fixture, 1);
  },
);

verifies(
  'hosted.stops',
  'a deadline stops a loop whose turn waits for an approval, and the turn is cancelled',
  async () => {
    const fixture = await waiting({ deadline: DEADLINE });
    const approval = await onlyPending(fixture.host);
    await fixture.clock.advance(HOUR_MS / 2);
    await fixture.work();
    expect(await endOfFirst(fixture)).toMatchObject({ status: 'cancelled' });
    await fixture.host.answer({ id: approval.id, approved: true, by: 'ada' }).catch(() => undefined);
    await fixture.work();
    expect(fixture.inputs).toEqual([]);
    await expectStopped(fixture, 'deadline');
  },
);

verifies('hosted.stops', 'an approval that is given before the deadline and seen after it runs nothing', async () => {
  const fixture = await waiting({ deadline: DEADLINE });
  const { id } = await onlyPending(fixture.host);
  await fixture.host.answer({ id, approved: true, by: 'ada' });
  await fixture.clock.advance(HOUR_MS / 2);
  await fixture.work();
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'deadline');
});

verifies('hosted.stops', 'a deadline that passes while a turn runs lets nothing more of it start', async () => {
  const clock = new ManualClock(START);
  const slow: ToolFunction = async () => {
    await clock.advance(HOUR_MS);
    return {};
  };
  const definitions = [tool('slow', 'builtin:slow'), sequence('slowly', 'slow', 'count')];
  const fixture = hostedFixture({ clock, tools: { slow }, definitions });
  await fixture.start(counter({ ...ANY, loop: 'slowly', stop: { maxTurns: 10, deadline: DEADLINE } }));
  await fixture.work();
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'deadline');
});

verifies('hosted.stops', 'a deadline before the next due time stops the loop at the deadline', async () => {
  const fixture = hostedFixture();
  await fixture.start(counter({ ...EVERY_HOUR, stop: { maxTurns: 10, deadline: DEADLINE } }));
  await fixture.work();
  await fixture.clock.advance(HOUR_MS / 2 - 1);
  await fixture.work();
  await expectGoesOn(fixture, 1);
  await fixture.clock.advance(1);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(1);
  await expectStopped(fixture, 'deadline');
});

verifies('hosted.stops', 'the grant of a loop ends at its deadline, also if the file says a later time', async () => {
  for (const expiresAt of [undefined, new Date(START + 9 * HOUR_MS).toISOString()]) {
    const fixture = hostedFixture();
    const grant = { allowedTools: ['count'], limits: {}, ...(expiresAt && { expiresAt }) };
    await fixture.start(counter({ grant, stop: { maxTurns: 1, deadline: DEADLINE } }));
    await fixture.work();
    const { entries } = await fixture.host.archive.get((await endOfFirst(fixture))?.turnId ?? '');
    const opened = entries.find(({ type }) => type === 'rondo.turn.opened');
    expect(opened?.value).toMatchObject({ grant: { expiresAt: DEADLINE } });
  }
});

verifies('hosted.stops', 'a grant that ends before the deadline stops the loop', async () => {
  const fixture = hostedFixture();
  const grant = { allowedTools: ['count'], limits: {}, expiresAt: DEADLINE };
  await fixture.start(counter({ ...EVERY_HOUR, grant, stop: { maxTurns: 10 } }));
  await fixture.work();
  await fixture.clock.advance(HOUR_MS);
  await fixture.work();
  expect(fixture.inputs).toHaveLength(1);
  await expectStopped(fixture, 'deadline');
});

verifies('hosted.control', 'stopping a loop cancels its turn that waits', async () => {
  const fixture = await waiting();
  const status = await fixture.host.hosted.stop('counter', { by: 'ada', reason: 'enough' });
  expect(status).toMatchObject({ status: 'stopped', message: 'Stopped by ada: enough' });
  expect(await endOfFirst(fixture)).toMatchObject({ status: 'cancelled' });
  await expectStopped(fixture, 'stopped_by');
});

verifies('hosted.control', 'stopping a loop cancels its turn that runs', async () => {
  const { passed, open } = gate();
  let begun = 0;
  const count: ToolFunction = async (_, { signal }) => {
    begun += 1;
    await Promise.race([passed, new Promise((resolve) => signal.addEventListener('abort', resolve))]);
    return {};
  };
  const fixture = hostedFixture({ tools: { count } });
  await fixture.start(counter());
  const working = fixture.work();
  while (begun === 0) await ticks(1);
  await fixture.host.hosted.stop('counter', { by: 'ada' });
  open();
  await working;
  expect(begun).toBe(1);
  expect(await endOfFirst(fixture)).toMatchObject({ status: 'cancelled' });
  await expectStopped(fixture, 'stopped_by');
});

verifies(
  'hosted.control',
  'a process that ends after it recorded a stop leaves the open turn to be cancelled',
  async () => {
    const fixture = await waiting();
    const { work, host } = fixture.restart();
    const value = { reason: 'stopped_by', message: '', at: START };
    await appendTo(fixture, [{ type: HOSTED_STOPPED, key: 'stop', value }]);
    expect(await host.hosted.status('counter')).toMatchObject({ status: 'stopped', turnId: expect.any(String) });
    await work();
    expect(await endOfFirst(fixture)).toMatchObject({ status: 'cancelled' });
    await expectStopped(fixture, 'stopped_by');
  },
);
