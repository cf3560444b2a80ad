/** Attempts that ended because the code asked for something else than the journal holds, and what is left of them. */

import { expect } from 'vitest';
import type { Session, SessionOptions } from '../../src/kernel/session.js';
import type { Scope } from '../../src/protocol/body.js';
import {
  codeOf,
  deferred,
  duplicates,
  gatedStore,
  type Kit,
  kit,
  lateWrites,
  micro,
  run,
  slowBlobs,
  tick,
  ticks,
  unhandled,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

type Body = (scope: Scope) => Promise<unknown>;

/** The program that was recorded: the first branch, and one that wrote something down before it waits. */
const right = (first: Body) => (s: Scope) => s.all([first, (b) => b.record('x.y', () => 1).then(() => b.wait('b'))]);

/** The changed one: its second branch asks for the time, which the journal does not hold. */
const wrong = (first: Body, when: () => Promise<unknown>) => (s: Scope) =>
  s.all([
    first,
    async (b) => {
      await when();
      return b.now();
    },
  ]);

const waitsThen =
  (next: Body): Body =>
  async (a) => {
    await a.wait('a');
    return next(a);
  };

/** A session whose journal holds the right program with its first branch at `wait a`, and the signal for it. */
async function recorded(k: Kit, options?: Partial<SessionOptions>, value?: unknown): Promise<Session> {
  const session = await k.open();
  await run(session, right(waitsThen((a) => a.wait('never'))));
  await session.signal({ id: '1', name: 'a', value });
  await session.close();
  return k.open(options);
}

/** Runs the wrong program until it has met the journal. */
async function mismatched(session: Session, first: Body, timers?: 'hold'): Promise<void> {
  const held = deferred<void>();
  const running = codeOf(
    run(
      session,
      wrong(first, () => held.promise),
      't1',
      timers,
    ),
  );
  await ticks(3);
  held.resolve();
  expect(await running).toBe('REPLAY_MISMATCH');
}

verifies('kernel.replay', 'Z2 an effect of the dead attempt passes its barrier and is performed', async () => {
  const gate = gatedStore();
  const k = kit(gate.store);
  gate.release();
  const session = await recorded(k);
  gate.shut();
  await mismatched(
    session,
    waitsThen((a) => a.effect(k.effect('pay', 'keyed'))),
  );
  gate.release();
  await ticks(5);
  expect(k.performed).toEqual([]);
});

verifies('kernel.replay', 'Z3 an effect in flight is recorded by the dead attempt and by the next one', async () => {
  const k = kit();
  const session = await recorded(k);
  const gates = [deferred<string>(), deferred<string>()];
  let n = 0;
  const slow = waitsThen((a) => a.effect(k.effect('slow', 'idempotent', () => gates[n++]?.promise)));
  await mismatched(session, slow);
  const second = run(session, right(slow));
  await ticks(3);
  gates[0]?.resolve('one');
  await ticks(3);
  gates[1]?.resolve('two');
  await second;
  expect(duplicates(await k.entries())).toEqual([]);
});

verifies('kernel.replay', 'Z4 a timer of the dead attempt fires and is written', async () => {
  const gate = gatedStore();
  const k = kit(gate.store);
  gate.release();
  const session = await recorded(k);
  gate.shut();
  await mismatched(
    session,
    waitsThen((a) => a.sleep(50)),
    'hold',
  );
  gate.release();
  await ticks(3);
  await k.clock.advance(1000);
  await ticks(3);
  await session.signal({ id: 'flush', name: 'flush' });
  expect((await k.types()).filter((type) => type.startsWith('timer.fired'))).toEqual([]);
});

verifies('kernel.replay', 'Z5 a child call is completed by the dead attempt and by the next one', async () => {
  const k = kit();
  const session = await recorded(k);
  const foreign = [deferred<void>(), deferred<void>()];
  let n = 0;
  const child = { name: 'child', body: async () => void (await foreign[n++]?.promise) };
  const calls = waitsThen((a) => a.call(child, null));
  await mismatched(session, calls);
  const second = run(session, right(calls));
  await ticks(3);
  foreign[0]?.resolve();
  await ticks(3);
  foreign[1]?.resolve();
  await second;
  expect(duplicates(await k.entries())).toEqual([]);
});

verifies('kernel.replay', 'Z10 an effect that ends while the next run loads is performed again', async () => {
  for (let offset = 0; offset < 25; offset++) {
    const k = kit();
    const session = await recorded(k);
    const gate = deferred<string>();
    const slow = waitsThen((a) =>
      a.effect(k.effect('slow', 'idempotent', () => (k.performed.length === 1 ? gate.promise : 'again'))),
    );
    await mismatched(session, slow);
    const second = run(session, right(slow));
    await micro(offset);
    gate.resolve('one');
    await second;
    expect(k.performed, `${offset}`).toHaveLength(1);
    expect(duplicates(await k.entries()), `${offset}`).toEqual([]);
  }
});

/** The first branch does `step` as the second one mismatches, so many microtasks apart; what comes of it afterwards. */
async function afterwards(
  offset: number,
  lead: number,
  step: (a: Scope, k: Kit) => Promise<unknown>,
  poke: (session: Session, k: Kit) => Promise<unknown>,
): Promise<{ readonly written: readonly string[]; readonly performed: number }> {
  const k = kit();
  const early = await k.open();
  await early.signal({ id: 'k', name: 'kept', value: 'kept'.repeat(2000) });
  const session = await recorded(k);
  const written = lateWrites(session);
  const held = deferred<void>();
  const first = waitsThen(async (a) => {
    await held.promise;
    await micro(lead);
    await step(a, k);
  });
  const when = async (): Promise<void> => {
    await held.promise;
    await micro(offset);
  };
  const running = codeOf(run(session, wrong(first, when)));
  await ticks(3);
  held.resolve();
  expect(await running).toBe('REPLAY_MISMATCH');
  const performed = k.performed.length;
  await poke(session, k);
  await ticks(3);
  await session.signal({ id: 'flush', name: 'flush' });
  return { written, performed: k.performed.length - performed };
}

type Case = readonly [
  name: string,
  step: (a: Scope, k: Kit) => Promise<unknown>,
  poke?: (session: Session, k: Kit) => Promise<unknown>,
];

const steps: readonly Case[] = [
  ['wait', (a) => a.wait('later'), (session) => session.signal({ id: 'n', name: 'later' })],
  ['wait for what is kept', (a) => a.wait('kept')],
  ['sleep', (a) => a.sleep(50), (_, k) => k.clock.advance(1000)],
  ['sleep of nothing', (a) => a.sleep(0)],
  ['effect', (a, k) => a.effect(k.effect('pay', 'once'))],
  ['race', (a) => a.race([(x) => x.now(), (x) => x.wait('q')])],
  ['call', (a) => a.call({ name: 'c', body: (_: null, s) => s.now() }, null)],
];

for (const [name, step, poke = async () => {}] of steps) {
  verifies('kernel.replay', `Z11 a ${name} of the dead attempt is done or written, some microtasks apart`, async () => {
    for (let offset = 0; offset < 25; offset++) {
      for (const lead of [0, 5]) {
        const late = await afterwards(offset, lead, step, poke);
        expect(late, `${offset} ${lead}`).toEqual({ written: [], performed: 0 });
      }
    }
  });
}

verifies('kernel.signal', 'F6 a large signal that was being read when the attempt died is lost', async () => {
  const k = kit();
  const session = await recorded(k, { store: slowBlobs(k.store) }, 'x'.repeat(9000));
  const first = waitsThen((a) => a.wait('never'));
  expect(await codeOf(run(session, wrong(first, tick)))).toBe('REPLAY_MISMATCH');
  await ticks(6);
  const outcome = await run(session, right(first));
  expect(outcome).toMatchObject({ status: 'paused', pending: [{ name: 'b' }, { name: 'never' }] });
});

verifies('kernel.signal', 'F10 a signal that comes around a mismatch fails, or is gone', async () => {
  for (let offset = 0; offset < 30; offset++) {
    const k = kit();
    const early = await k.open();
    await run(
      early,
      right((a) => a.wait('a')),
    );
    const session = await k.open();
    const held = deferred<void>();
    const first: Body = async (a) => {
      await held.promise;
      return a.wait('a');
    };
    const running = codeOf(
      run(
        session,
        wrong(first, () => held.promise),
      ),
    );
    await ticks(2);
    held.resolve();
    await micro(offset);
    expect(await codeOf(session.signal({ id: 'z', name: 'a', value: 1 })), `${offset}`).toBe('nothing');
    expect(await running).toBe('REPLAY_MISMATCH');
    const again = await run(
      session,
      right((a) => a.wait('a')),
    );
    expect(again, `${offset}`).toMatchObject({ status: 'paused', pending: [{ name: 'b' }] });
  }
  expect(unhandled.map(String)).toEqual([]);
});
