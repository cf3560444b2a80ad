import { expect } from 'vitest';
import { counter, hostedFixture } from '../../../spec/support/hosted-fixture.js';
import { stoppedWhileStarting } from '../../../spec/support/hosted-stops.js';
import { verifies } from '../../../spec/verifies.js';

verifies('hosted.control', 'a stop reaches a turn that is requested and has not started', async () => {
  const { host, calls } = await stoppedWhileStarting();
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'stopped', reason: 'stopped_by', turns: 1 });
  const [only, ...others] = await host.hosted.turns('counter');
  expect([only?.status, others, calls <= 1]).toEqual(['cancelled', [], true]);
});

verifies('hosted.handoff', 'the last turn of a loop hands off, although the loop has stopped', async () => {
  const { host, work, start, inputs } = hostedFixture();
  const stop = { maxTurns: 1 };
  await start(counter({ id: 'target', acceptsHandoffsFrom: ['sender'], stop }));
  const rule = { target: 'target', input: { seen: '$.last.output.n' }, reason: 'done' };
  await start(counter({ id: 'sender', handoffs: [rule], stop }));
  await work();
  expect((await host.hosted.status('sender')).reason).toBe('max_turns');
  expect(inputs).toEqual([{ from: 0 }, { seen: 1 }]);
  const [turn] = await host.hosted.turns('target');
  expect(turn).toMatchObject({ cause: 'handoff', status: 'ok' });
});
