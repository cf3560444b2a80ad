import { expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { ticks, within } from '../../../spec/support/kernel-probe.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { ManualClock } from '../../testing/manual-clock.js';

const HOUR = 3_600_000;
const JUMPS = [-HOUR, HOUR];
const never = (): Promise<never> => new Promise(() => {});

verifies(
  'time.monotonic',
  'the deadline of an agent and the timeout of its tools follow the monotonic clock',
  async () => {
    for (const spec of [{ stop: { deadlineMs: 1000 } }, { toolTimeoutMs: 1000, maxRounds: 1 }])
      for (const jump of JUMPS) {
        const clock = new ManualClock(1_000_000);
        const providers = [replyProvider([{ calls: [['hang', {}]] }, { text: 'never said' }])];
        const agent = agentDef('agent', { tools: ['hang'], ...spec });
        const host = hostOf([agent, tool('hang', 'builtin:hang')], { providers, tools: { hang: never }, clock });
        let hasEnded = false;
        const running = host.run({ loop: 'agent', input: { prompt: 'go' } }).finally(() => {
          hasEnded = true;
        });
        await ticks(20);
        clock.setWallClock(clock.now() + jump);
        await clock.advance(999);
        await ticks(20);
        expect(hasEnded, `ended early after a jump of ${jump} ms`).toBe(false);
        await clock.advance(1);
        const result = await within(2000, running);
        expect(result.status).toBe('stopped');
        expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
      }
  },
);

/**
 * Runs an agent with a deadline of 10 s whose tool is approved after 4 s, and returns its status. The wall clock jumps
 * before the approval. With `restarts`, another host with a new clock resumes the turn.
 */
async function statusAfterJump(jump: number, restarts: boolean): Promise<string> {
  const store = memoryStore();
  const first = new ManualClock(1_000_000);
  const replies = [{ calls: [['pay', {}]] as const }, { text: 'paid' }];
  const definitions = [
    agentDef('agent', { tools: ['pay'], approvals: { pay: 'ask' }, stop: { deadlineMs: 10_000 } }),
    tool('pay'),
  ];
  const providers = [replyProvider(replies)];
  const hostAt = (clock: ManualClock, seed: number) => hostOf(definitions, { store, clock, providers, seed });
  const host = hostAt(first, 1);
  const { turnId } = await host.run({ loop: 'agent', input: { prompt: 'go' } });
  await first.advance(4000);
  first.setWallClock(first.now() + jump);
  const later = restarts ? hostAt(new ManualClock(first.now()), 2) : host;
  const [approval] = await later.archive.approvals();
  await later.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  return (await later.resume(turnId)).status;
}

verifies('time.monotonic', 'an agent that waited for an approval keeps its deadline in the same process', async () => {
  for (const jump of [0, ...JUMPS]) expect(await statusAfterJump(jump, false), `after ${jump} ms`).toBe('ok');
});

verifies('time.restart', 'an agent that resumes in another process keeps its recorded deadline', async () => {
  expect(await statusAfterJump(0, true)).toBe('ok');
  expect(await statusAfterJump(-HOUR, true)).toBe('ok');
  expect(await statusAfterJump(HOUR, true)).toBe('stopped');
});

verifies(
  'time.stamps',
  'a turn never ends before it started, even if the wall clock was set back, in one process and across two',
  async () => {
    for (const restarts of [false, true]) {
      const store = memoryStore();
      const first = new ManualClock(10 * HOUR);
      const definitions = [agentDef('agent', { tools: ['pay'], approvals: { pay: 'ask' } }), tool('pay')];
      const providers = [replyProvider([{ calls: [['pay', {}]] }, { text: 'paid' }])];
      const hostAt = (clock: ManualClock, seed: number) => hostOf(definitions, { store, clock, providers, seed });
      const paused = await hostAt(first, 1).run({ loop: 'agent', input: { prompt: 'go' } });
      expect(paused.durationMs).toBeGreaterThanOrEqual(0);
      first.setWallClock(first.now() - HOUR);
      const host = hostAt(restarts ? new ManualClock(first.now()) : first, 2);
      const [approval] = await host.archive.approvals();
      await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
      const result = await host.resume(paused.turnId);
      const status = (await host.archive.turns()).find(({ turnId }) => turnId === paused.turnId);
      for (const { startedAt, endedAt = '', durationMs = -1 } of [result, status ?? result]) {
        expect(Date.parse(endedAt)).toBeGreaterThanOrEqual(Date.parse(startedAt));
        expect(durationMs).toBe(Date.parse(endedAt) - Date.parse(startedAt));
      }
      const times = result.trace.map(({ ts }) => Date.parse(ts));
      expect(times).toEqual([...times].sort((a, b) => a - b));
    }
  },
);
