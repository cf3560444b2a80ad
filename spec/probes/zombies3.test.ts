import { expect, test } from 'vitest';
import type { Scope } from '../../src/kernel/scope.js';
import { codeOf, deferred, kit, lateWrites, run, ticks } from './kit.js';

const micro = async (n: number): Promise<void> => {
  for (let i = 0; i < n; i++) await undefined;
};

/** Branch A does `step` as branch B mismatches, `offset` microtasks apart; returns what is written after run() rejected. */
async function after(
  offset: number,
  lead: number,
  step: (a: Scope, k: ReturnType<typeof kit>) => Promise<unknown>,
  poke: (s: Awaited<ReturnType<ReturnType<typeof kit>['open']>>, k: ReturnType<typeof kit>) => Promise<unknown>,
) {
  const k = kit();
  let session = await k.open();
  await run(session, (s) => s.all([(a) => a.wait('a'), (b) => b.record('x.z', () => 2).then(() => b.wait('never'))]));
  await session.signal({ id: '1', name: 'a' });
  await session.signal({ id: 'k', name: 'kept', value: 'kept'.repeat(2000) });
  session = await k.open();
  const late = lateWrites(session);
  const held = deferred<void>();
  const changed = (s: Scope) =>
    s.all([
      async (a) => {
        await a.wait('a');
        await held.promise;
        await micro(lead);
        await step(a, k);
      },
      async (b) => {
        await ticks(1);
        await held.promise;
        await micro(offset);
        await b.now();
      },
    ]);
  const first = codeOf(run(session, changed));
  await ticks(3);
  held.resolve();
  expect(await first).toBe('REPLAY_MISMATCH');
  const performed = k.performed.length;
  await poke(session, k);
  await ticks(3);
  await session.signal({ id: 'flush', name: 'flush' });
  return { wrote: late, performed: k.performed.length - performed };
}

for (const [name, step, poke] of [
  [
    'wait',
    (a: Scope) => a.wait('later'),
    (s: never) => (s as { signal(x: object): Promise<unknown> }).signal({ id: 'n', name: 'later' }),
  ],
  ['kept', (a: Scope) => a.wait('kept'), async () => {}],
  ['sleep', (a: Scope) => a.sleep(50), async (_s: never, k: ReturnType<typeof kit>) => k.clock.advance(1000)],
  ['zero', (a: Scope) => a.sleep(0), async () => {}],
  ['effect', (a: Scope, k: ReturnType<typeof kit>) => a.effect(k.effect('pay', 'once')), async () => {}],
  ['race', (a: Scope) => a.race([(x) => x.now(), (x) => x.wait('q')]), async () => {}],
  ['call', (a: Scope) => a.call({ name: 'c', body: (_: null, s) => s.now() }, null), async () => {}],
] as const)
  test(`Z11 ${name} of a dead attempt`, async () => {
    const bad: string[] = [];
    for (let offset = 0; offset < 25; offset++)
      for (const lead of [0, 5]) {
        const r = await after(offset, lead, step as never, poke as never);
        if (r.performed > 0) bad.push(`${offset}-${lead} performed`);
        if (r.wrote.length > 0) bad.push(`${offset}-${lead}: ${r.wrote}`);
      }
    expect(bad).toEqual([]);
  });
