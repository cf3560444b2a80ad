import { expect } from 'vitest';
import { composite, hostOf, tool, typesOf } from '../../spec/support/host-fixture.js';
import { tick, ticks, within } from '../../spec/support/kernel-probe.js';
import { errorOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import type { Scope } from '../protocol/body.js';
import { ManualClock } from '../testing/manual-clock.js';
import { defineLoop } from './define.js';

const HOUR = 3_600_000;
const policy = { timeoutMs: 1000 };
const step = (loopId: string) => ({ loopId, inputMapping: '$.input' });

const never = (): Promise<never> => new Promise(() => {});
const code = (id: string, body: (input: unknown, scope: Scope) => unknown, more: object = {}) =>
  defineLoop({ id, input: true, output: true, run: body as () => never, ...more });

/** Calls that are still running when they time out, by what they are waiting for. */
const stuck: readonly [blocker: string, definitions: readonly unknown[]][] = [
  ['a tool that never ends', [tool('hang', 'builtin:never'), composite('x', [step('hang')], { policy })]],
  ['a sleep', [code('nap', (_, scope) => scope.sleep(HOUR)), composite('x', [step('nap')], { policy })]],
  ['a signal', [code('wait', (_, scope) => scope.wait('go')), composite('x', [step('wait')], { policy })]],
  [
    'an approval',
    [tool('pay', 'builtin:echo', { policy: { approval: 'ask' } }), composite('x', [step('pay')], { policy })],
  ],
  [
    'a composite in a composite',
    [tool('hang', 'builtin:never'), composite('in', [step('hang')]), composite('x', [step('in')], { policy })],
  ],
  ['a sleep in its own code', [code('x', (_, scope) => scope.sleep(HOUR), { policy })]],
  ['a promise that never settles', [code('x', never, { policy })]],
];

for (const [blocker, definitions] of stuck) {
  verifies(
    'policy.call',
    `a call that waits for ${blocker} fails with TIMEOUT exactly when its time is over`,
    async () => {
      for (const jump of [0, -HOUR, HOUR]) {
        const clock = new ManualClock(1_000_000);
        const host = hostOf(definitions, { clock, tools: { never } });
        let hasEnded = false;
        const running = host.run({ loop: 'x', input: {} }).finally(() => {
          hasEnded = true;
        });
        await ticks(20);
        clock.setWallClock(clock.now() + jump);
        await clock.advance(999);
        await ticks(20);
        expect(hasEnded, 'the call ended before its timeout').toBe(false);
        await clock.advance(1);
        const result = await within(2000, running);
        expect(errorOf(result)).toMatchObject({ code: 'TIMEOUT', details: { timeoutMs: 1000, retryable: true } });
        expect(typesOf(result.trace, result.callId).at(-1)).toBe('call.errored');
        expect([result.durationMs, Date.parse(result.endedAt) >= Date.parse(result.startedAt)]).toEqual(
          jump > 0 ? [1000 + jump, true] : [1000, true],
        );
      }
    },
  );
}

verifies('policy.call', 'a call that ends in time returns its output and leaves no timer behind', async () => {
  const clock = new ManualClock(1_000_000);
  const steps = composite('x', [step('echo'), { loopId: 'echo', inputMapping: '$.steps[0].output' }], { policy });
  const host = hostOf([tool('echo'), steps, code('y', () => ({ n: 2 }), { policy })], { clock });
  expect(await host.run({ loop: 'x', input: { n: 1 } })).toMatchObject({ status: 'ok', output: { n: 1 } });
  expect(await host.run({ loop: 'y', input: {} })).toMatchObject({ status: 'ok', output: { n: 2 } });
  await tick();
  expect(clock.nextWakeAt).toBeUndefined();
});

verifies('policy.call', 'a failed step fails a call with a timeout exactly as one without', async () => {
  const definitions = [
    tool('fail', 'builtin:fail'),
    composite('x', [step('fail')], { policy }),
    composite('z', [step('fail')]),
  ];
  const host = hostOf(definitions);
  const [bounded, unbounded] = [await host.run({ loop: 'x', input: {} }), await host.run({ loop: 'z', input: {} })];
  expect(errorOf(bounded)?.code).toBe(errorOf(unbounded)?.code);
  expect(errorOf(bounded)?.message).toBe(errorOf(unbounded)?.message);
  const { failedStep } = (errorOf(bounded)?.details ?? {}) as { failedStep?: { callId: string } };
  expect(bounded.trace.some(({ callId }) => callId === failedStep?.callId)).toBe(true);
});

verifies('policy.call', 'the timeout of a call continues across a restart, by the wall clock', async () => {
  for (const [jump, remainingMs] of [
    [0, 600],
    [-HOUR, 1000],
    [HOUR, 0],
  ] as const) {
    const store = memoryStore();
    const definitions = [tool('hang', 'builtin:never'), composite('x', [step('hang')], { policy })];
    const first = new ManualClock(1_000_000);
    let turnId = '';
    const onTurn = (id: string): void => {
      turnId = id;
    };
    void hostOf(definitions, { store, clock: first, tools: { never } }).run({ loop: 'x', input: {} }, { onTurn });
    await ticks(20);
    const clock = new ManualClock(1_000_400 + jump);
    const resumed = hostOf(definitions, { store, clock, tools: { never }, seed: 2 }).resume(turnId);
    await ticks(20);
    expect(clock.nextWakeAt === undefined ? 0 : clock.nextWakeAt - clock.now()).toBe(remainingMs);
    await clock.advance(remainingMs);
    expect(errorOf(await within(2000, resumed))?.code).toBe('TIMEOUT');
  }
});
