// Attempts that ended with REPLAY_MISMATCH: their remaining effects, timers and calls change nothing.

import { expect } from 'vitest';
import type { SessionOptions } from '../../src/journal/session-options.js';
import type { Session } from '../../src/kernel/session.js';
import type { Scope } from '../../src/protocol/body.js';
import {
  codeOf,
  deferred,
  duplicates,
  gatedStore,
  type KernelFixture,
  kernelFixture,
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

/** The recorded program: the given branch, and one that records a fact before it waits. */
const recordedProgram = (first: Body) => (s: Scope) =>
  s.all([first, (b) => b.record('x.y', () => 1).then(() => b.wait('b'))]);

/** The changed program: its second branch requests the time, which the journal does not contain. */
const changedProgram = (first: Body, when: () => Promise<unknown>) => (s: Scope) =>
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

/** Opens a session whose journal contains the recorded program at `wait a`, and the signal `a`. */
async function recordedSession(
  fixture: KernelFixture,
  options?: Partial<SessionOptions>,
  value?: unknown,
): Promise<Session> {
  const session = await fixture.open();
  await run(session, recordedProgram(waitsThen((a) => a.wait('never'))));
  await session.signal({ id: '1', name: 'a', value });
  await session.close();
  return fixture.open(options);
}

/** Runs the changed program until the mismatch. */
async function runToMismatch(session: Session, first: Body, timers?: 'hold'): Promise<void> {
  const blocker = deferred<void>();
  const running = codeOf(
    run(
      session,
      changedProgram(first, () => blocker.promise),
      't1',
      timers,
    ),
  );
  await ticks(3);
  blocker.resolve();
  expect(await running).toBe('REPLAY_MISMATCH');
}

verifies('kernel.replay', 'an effect of the ended attempt is not performed', async () => {
  const gate = gatedStore();
  const fixture = kernelFixture(gate.store);
  gate.release();
  const session = await recordedSession(fixture);
  gate.shut();
  await runToMismatch(
    session,
    waitsThen((a) => a.effect(fixture.effect('pay', 'keyed'))),
  );
  gate.release();
  await ticks(5);
  expect(fixture.performed).toEqual([]);
});

verifies('kernel.replay', 'an effect in flight is recorded once, not by both attempts', async () => {
  const fixture = kernelFixture();
  const session = await recordedSession(fixture);
  const gates = [deferred<string>(), deferred<string>()];
  let n = 0;
  const slow = waitsThen((a) => a.effect(fixture.effect('slow', 'idempotent', () => gates[n++]?.promise)));
  await runToMismatch(session, slow);
  const second = run(session, recordedProgram(slow));
  await ticks(3);
  gates[0]?.resolve('one');
  await ticks(3);
  gates[1]?.resolve('two');
  await second;
  expect(duplicates(await fixture.entries())).toEqual([]);
});

verifies('kernel.replay', 'a timer of the ended attempt writes nothing', async () => {
  const gate = gatedStore();
  const fixture = kernelFixture(gate.store);
  gate.release();
  const session = await recordedSession(fixture);
  gate.shut();
  await runToMismatch(
    session,
    waitsThen((a) => a.sleep(50)),
    'hold',
  );
  gate.release();
  await ticks(3);
  await fixture.clock.advance(1000);
  await ticks(3);
  await session.signal({ id: 'flush', name: 'flush' });
  expect((await fixture.types()).filter((type) => type.startsWith('timer.fired'))).toEqual([]);
});

verifies('kernel.replay', 'a child call is completed once, not by both attempts', async () => {
  const fixture = kernelFixture();
  const session = await recordedSession(fixture);
  const childResults = [deferred<void>(), deferred<void>()];
  let n = 0;
  const child = { name: 'child', body: async () => void (await childResults[n++]?.promise) };
  const calls = waitsThen((a) => a.call(child, null));
  await runToMismatch(session, calls);
  const second = run(session, recordedProgram(calls));
  await ticks(3);
  childResults[0]?.resolve();
  await ticks(3);
  childResults[1]?.resolve();
  await second;
  expect(duplicates(await fixture.entries())).toEqual([]);
});

verifies('kernel.replay', 'an effect that ends during the load of the next run is not performed again', async () => {
  for (let offset = 0; offset < 25; offset++) {
    const fixture = kernelFixture();
    const session = await recordedSession(fixture);
    const gate = deferred<string>();
    const slow = waitsThen((a) =>
      a.effect(fixture.effect('slow', 'idempotent', () => (fixture.performed.length === 1 ? gate.promise : 'again'))),
    );
    await runToMismatch(session, slow);
    const second = run(session, recordedProgram(slow));
    await micro(offset);
    gate.resolve('one');
    await second;
    expect(fixture.performed, `${offset}`).toHaveLength(1);
    expect(duplicates(await fixture.entries()), `${offset}`).toEqual([]);
  }
});

/** Runs `step` in the first branch some microtasks before or after the mismatch. Returns its later writes and effects. */
async function effectsAfterMismatch(
  offset: number,
  lead: number,
  step: (a: Scope, fixture: KernelFixture) => Promise<unknown>,
  trigger: (session: Session, fixture: KernelFixture) => Promise<unknown>,
): Promise<{ readonly written: readonly string[]; readonly performed: number }> {
  const fixture = kernelFixture();
  const early = await fixture.open();
  await early.signal({ id: 'k', name: 'kept', value: 'kept'.repeat(2000) });
  const session = await recordedSession(fixture);
  const written = lateWrites(session);
  const blocker = deferred<void>();
  const first = waitsThen(async (a) => {
    await blocker.promise;
    await micro(lead);
    await step(a, fixture);
  });
  const when = async (): Promise<void> => {
    await blocker.promise;
    await micro(offset);
  };
  const running = codeOf(run(session, changedProgram(first, when)));
  await ticks(3);
  blocker.resolve();
  expect(await running).toBe('REPLAY_MISMATCH');
  const performed = fixture.performed.length;
  await trigger(session, fixture);
  await ticks(3);
  await session.signal({ id: 'flush', name: 'flush' });
  return { written, performed: fixture.performed.length - performed };
}

type Case = readonly [
  name: string,
  step: (a: Scope, fixture: KernelFixture) => Promise<unknown>,
  trigger?: (session: Session, fixture: KernelFixture) => Promise<unknown>,
];

const steps: readonly Case[] = [
  ['wait', (a) => a.wait('later'), (session) => session.signal({ id: 'n', name: 'later' })],
  ['wait for a stored signal', (a) => a.wait('kept')],
  ['sleep', (a) => a.sleep(50), (_, fixture) => fixture.clock.advance(1000)],
  ['sleep of 0 ms', (a) => a.sleep(0)],
  ['effect', (a, fixture) => a.effect(fixture.effect('pay', 'once'))],
  ['race', (a) => a.race([(x) => x.now(), (x) => x.wait('q')])],
  ['call', (a) => a.call({ name: 'c', body: (_: null, s) => s.now() }, null)],
];

for (const [name, step, trigger = async () => {}] of steps) {
  verifies('kernel.replay', `a ${name} of the ended attempt is neither performed nor written`, async () => {
    for (let offset = 0; offset < 25; offset++) {
      for (const lead of [0, 5]) {
        const late = await effectsAfterMismatch(offset, lead, step, trigger);
        expect(late, `${offset} ${lead}`).toEqual({ written: [], performed: 0 });
      }
    }
  });
}

verifies(
  'kernel.signal',
  'a large signal that was being read at the mismatch is delivered to the next attempt',
  async () => {
    const fixture = kernelFixture();
    const session = await recordedSession(fixture, { store: slowBlobs(fixture.store) }, 'x'.repeat(9000));
    const first = waitsThen((a) => a.wait('never'));
    expect(await codeOf(run(session, changedProgram(first, tick)))).toBe('REPLAY_MISMATCH');
    await ticks(6);
    const outcome = await run(session, recordedProgram(first));
    expect(outcome).toMatchObject({ status: 'paused', pending: [{ name: 'b' }, { name: 'never' }] });
  },
);

verifies('kernel.signal', 'a signal that arrives around a mismatch is accepted and delivered', async () => {
  for (let offset = 0; offset < 30; offset++) {
    const fixture = kernelFixture();
    const early = await fixture.open();
    await run(
      early,
      recordedProgram((a) => a.wait('a')),
    );
    const session = await fixture.open();
    const blocker = deferred<void>();
    const first: Body = async (a) => {
      await blocker.promise;
      return a.wait('a');
    };
    const running = codeOf(
      run(
        session,
        changedProgram(first, () => blocker.promise),
      ),
    );
    await ticks(2);
    blocker.resolve();
    await micro(offset);
    expect(await codeOf(session.signal({ id: 'z', name: 'a', value: 1 })), `${offset}`).toBe('nothing');
    expect(await running).toBe('REPLAY_MISMATCH');
    const again = await run(
      session,
      recordedProgram((a) => a.wait('a')),
    );
    expect(again, `${offset}`).toMatchObject({ status: 'paused', pending: [{ name: 'b' }] });
  }
  expect(unhandled.map(String)).toEqual([]);
});
