// What a turn that waits shows, and when it stops holding its caller.

import { expect } from 'vitest';
import { z } from 'zod';
import { verifies } from '../../../spec/verifies.js';
import { createRondo, defineLoop, defineSignal, type Scope } from '../../index.js';

const ANY = { input: true, output: true } as const;
const paid = defineSignal('paid', z.object({ amount: z.number() }));
const loopOf = (run: (input: unknown, scope: Scope) => unknown) => defineLoop({ ...ANY, id: 'main', run });

verifies('turn.waits', 'a wait with a time limit of days pauses the turn, and both waits are shown', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  const main = loopOf((_, scope) => scope.race([(branch) => branch.wait(paid), (branch) => branch.sleep('3 days')]));
  const result = await rondo.run(main, null);
  if (result.status !== 'paused') throw new Error(`the caller was held: ${result.status}`);
  const waits = [{ kind: 'signal', name: 'paid' }, { kind: 'timer' }];
  expect(result.pending).toMatchObject(waits);
  const turn = rondo.turn(result.turnId, main);
  expect(await turn.status()).toMatchObject({ status: 'paused', pending: waits });
  expect(result.trace.filter(({ type }) => type === 'rondo.wait.opened')).toHaveLength(2);
  await turn.signal(paid, { amount: 5 });
  expect(await turn.output()).toEqual({ amount: 5 });
});

verifies('turn.waits', 'a turn that only sleeps pauses if the timer is due in more than ten seconds', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  const sleeper = (ms: number) => loopOf(async (_, scope) => scope.sleep(ms));
  expect(await rondo.run(sleeper(11_000), null)).toMatchObject({ status: 'paused', pending: [{ kind: 'timer' }] });
  expect(await rondo.run(sleeper(20), null)).toMatchObject({ status: 'ok' });
});

verifies(
  'turn.waits',
  'a wait is shown while another branch still works, and its effects are not in doubt',
  async () => {
    await using rondo = await createRondo({ store: 'memory:' });
    let finish = (): void => undefined;
    const working = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const main = loopOf((_, scope) =>
      scope.all([
        (branch) => branch.wait('go'),
        (branch) => branch.effect('work', () => working, { safety: 'once' }),
        (branch) => branch.sleep('3 days'),
      ]),
    );
    const turn = await rondo.start(main, null);
    const waits = [{ kind: 'signal', name: 'go' }, { kind: 'timer' }];
    await expect.poll(async () => (await turn.status()).pending).toMatchObject(waits);
    expect(await turn.status()).toMatchObject({ status: 'running' });
    finish();
    expect(await turn.result()).toMatchObject({ status: 'paused', pending: waits });
  },
);

verifies('turn.waits', 'a wait whose call has ended is not shown', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  const impatient = defineLoop({ ...ANY, id: 'impatient', policy: { timeoutMs: 10 }, run: (_, s) => s.wait('never') });
  const main = loopOf(async (_, scope) => {
    await scope.call(impatient, null).catch(() => undefined);
    return scope.wait('go');
  });
  const { turnId } = await rondo.run(main, null);
  expect((await rondo.turn(turnId).status()).pending).toMatchObject([{ name: 'go' }]);
});
