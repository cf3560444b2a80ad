/** Each stop reason: a hosted loop stops with it, and nothing runs afterwards. */
import { expect } from 'vitest';
import { onlyPending } from '../../../spec/support/approval-fixture.js';
import { counter, type HostedFixture, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { ASKING, expectStopped, rewrite } from '../../../spec/support/hosted-stops.js';
import { verifies } from '../../../spec/verifies.js';
import type { HostedLoopDocument, HostedStopReason } from '../../protocol/hosted-loop.js';

const HOUR_MS = 3_600_000;

/** A loop that stops before its tenth turn, if anything but the maximum stops it. */
const ten = (more: Partial<HostedLoopDocument>): HostedLoopDocument =>
  counter({ ...more, stop: { maxTurns: 10, ...more.stop } });

async function worked(document: HostedLoopDocument, tools = {}): Promise<HostedFixture> {
  const fixture = hostedFixture({ tools });
  await fixture.start(document);
  await fixture.work();
  return fixture;
}

/** A loop whose first turn has ended, and whose second is not due. */
async function afterOneTurn(): Promise<HostedFixture> {
  const fixture = await worked(ten({ schedule: { everyMs: HOUR_MS } }));
  await fixture.clock.advance(HOUR_MS);
  return fixture;
}

/** How many times the tool runs, and how the loop comes to its stop. */
const cases: { readonly [R in HostedStopReason]: readonly [calls: number, run: () => Promise<HostedFixture>] } = {
  max_turns: [3, () => worked(counter())],
  budget: [2, () => worked(ten({ grant: { allowedTools: ['count'], limits: { turns: 2 } } }))],
  deadline: [
    2,
    async () => {
      const stop = { maxTurns: 10, deadline: new Date(START + 90 * 60_000).toISOString() };
      const fixture = await worked(ten({ schedule: { everyMs: HOUR_MS }, stop }));
      for (let hours = 0; hours < 4; hours++) {
        await fixture.clock.advance(HOUR_MS);
        await fixture.work();
      }
      return fixture;
    },
  ],
  approval: [
    0,
    async () => {
      const fixture = await worked(ten(ASKING));
      const [approval] = await fixture.host.archive.approvals();
      await fixture.host.answer({ id: approval?.id ?? '', approved: false, by: 'ada' });
      await fixture.work();
      return fixture;
    },
  ],
  confidence: [2, () => worked(ten({ stop: { maxTurns: 10, confidence: { path: '$.n', atLeast: 2 } } }))],
  terminal: [4, () => worked(ten({ stop: { maxTurns: 10, terminal: { path: '$.n', equals: 4 } } }))],
  no_progress: [
    0,
    () => worked(ten({ stop: { maxTurns: 10, noProgress: 2 } }), { count: async () => ({ same: true }) }),
  ],
  stale_projection: [
    1,
    async () => {
      const fixture = await afterOneTurn();
      await rewrite(fixture.store, 'hosted:counter:1', (entries) => {
        const sealed = entries.filter(({ type }) => type === 'rondo.receipt.sealed');
        const newer = sealed.map((entry) => {
          const receipt = entry.value as { sequence: number };
          return { ...entry, key: '#receipt/1', value: { ...receipt, sequence: 1, hash: 'newer' } };
        });
        return [...entries, ...newer];
      });
      await fixture.work();
      return fixture;
    },
  ],
  missing_receipt: [
    1,
    async () => {
      const fixture = await afterOneTurn();
      await fixture.store.journal.remove('hosted:counter:1');
      await fixture.work();
      return fixture;
    },
  ],
  turn_failed: [0, () => worked(ten({}), { count: () => Promise.reject(new Error('down')) })],
  refused: [0, () => worked(ten({ turn: { grant: { allowedTools: ['count', 'pay'] } } }))],
  stopped_by: [
    1,
    async () => {
      const fixture = await afterOneTurn();
      await fixture.host.hosted.stop('counter', { by: 'ada', reason: 'enough' });
      return fixture;
    },
  ],
};

for (const [reason, [calls, run]] of Object.entries(cases) as [HostedStopReason, (typeof cases)['budget']][])
  verifies('hosted.stops', `a loop that stops with ${reason} never runs again`, async () => {
    const fixture = await run();
    expect(fixture.inputs).toHaveLength(calls);
    await expectStopped(fixture, reason);
  });

verifies('hosted.stops', 'no turn of a hosted loop is forked, and its replay performs nothing', async () => {
  const fixture = hostedFixture();
  const { host, inputs, store } = fixture;
  await fixture.start(counter(ASKING));
  await fixture.work();
  const { turnId, sessionId } = await onlyPending(host);
  await host.hosted.stop('counter', { by: 'ada' });
  const sessions = await store.journal.list();
  for (const { seq } of await host.archive.entries(sessionId))
    await expect(host.fork(turnId, { at: seq })).rejects.toMatchObject({
      code: 'HOSTED_LOOP_CONFLICT',
      message: expect.stringMatching(/stop policy would not bound .*rondo replay.*another id/),
    });
  for (const against of ['then', 'now'] as const) await host.replay(turnId, against).catch(() => undefined);
  await fixture.work();
  expect(await store.journal.list()).toEqual(sessions);
  expect(await host.archive.approvals()).toEqual([]);
  expect(inputs).toEqual([]);
});
