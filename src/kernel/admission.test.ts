/** Admission and stops: a stop cannot be noticed by any body, and a refusal is recorded and repeated by a replay. */
import { expect } from 'vitest';
import { deferred, kernelFixture, lateWrites, tick, ticks } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError, NotPerformed } from '../base/errors.js';
import type { Effect, Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Admit, RunOutcome } from '../protocol/session.js';
import { leafLoop } from '../testing/random-programs.js';
import type { Session } from './session.js';

type Body = (scope: Scope) => Promise<unknown>;

const loop = (body: Body, name = 'main'): Loop<Json, Json> => ({
  name,
  body: (_, scope) => body(scope) as Promise<Json>,
});
const runMain = (session: Session, body: Body): Promise<RunOutcome> =>
  session.run('t1', loop(body), null, { timers: 'hold' });

/** A session that stops at the effect `limit`, until `isOpen`. */
async function stoppingSession() {
  const fixture = kernelFixture();
  const gate = { isOpen: false };
  const admit: Admit = (effect) => {
    if (effect.name === 'limit' && !gate.isOpen) session.stop('t1', { reason: 'effects', message: 'No effects left.' });
    return effect;
  };
  const session: Session = await fixture.open({ admit });
  return { ...fixture, session, gate, admit };
}

const noticed: string[] = [];
const note = (text: string) => (): never => {
  noticed.push(text);
  throw new Error(text);
};

type Shape = (limit: () => Effect, act: (name: string) => Effect) => Body;

/** Bodies that try to notice that an effect below them was stopped. */
const shapes: { readonly [name: string]: Shape } = {
  'try and catch': (limit) => async (scope) => {
    try {
      await scope.effect(limit());
      return 'done';
    } catch {
      return note('catch')();
    } finally {
      if (noticed.length > 0) note('finally')();
    }
  },
  'a promise with handlers': (limit) => (scope) =>
    scope
      .effect(limit())
      .catch(note('rejection'))
      .then(() => 'done'),
  'a leaf call': (limit) => (scope) =>
    scope
      .call(leafLoop(limit()), null)
      .catch(note('rejection'))
      .then(() => 'done'),
  'a nested call': (limit) => async (scope) => {
    const inner = loop((below) => below.effect(limit()), 'inner');
    await scope
      .call(
        loop((below) => below.call(inner, null).catch(note('inner')), 'outer'),
        null,
      )
      .catch(note('outer'));
    return 'done';
  },
  'a race against a timer': (limit) => async (scope) => {
    const branches = [(one: Scope) => one.effect(limit()), (other: Scope) => other.sleep(60_000)];
    await scope.race(branches).catch(note('race'));
    return 'done';
  },
  'a group with other branches': (limit, act) => async (scope) => {
    const branches = [act('first'), limit(), act('last')].map((effect) => (branch: Scope) => branch.effect(effect));
    await scope.all(branches).catch(note('all'));
    return 'done';
  },
};

for (const [name, shape] of Object.entries(shapes)) {
  verifies(
    'grant.budget',
    `a body with ${name} cannot notice a stop, and continues after it as if nothing happened`,
    async () => {
      const { session, effect, performed, gate, entries, open, admit } = await stoppingSession();
      const body = shape(
        () => effect('limit', 'idempotent'),
        (other) => effect(other, 'idempotent'),
      );
      const late = lateWrites(session);
      noticed.length = 0;
      expect(await runMain(session, body)).toEqual({
        status: 'stopped',
        stop: { reason: 'effects', message: 'No effects left.' },
      });
      await ticks(5);
      expect(performed, 'the effect at the limit was performed').not.toContain('limit');
      expect(late.filter((entry) => !entry.startsWith('call.stopped'))).toEqual([]);
      expect((await entries()).at(-1)).toMatchObject({ type: 'call.stopped', key: 't1', reason: 'effects' });
      gate.isOpen = true;
      await session.close();
      const again = await open({ admit });
      expect(await runMain(again, body)).toEqual({ status: 'ok', output: 'done' });
      expect(performed.filter((one) => one === 'limit')).toHaveLength(1);
      expect(new Set(performed).size, 'an effect was performed twice').toBe(performed.length);
      expect(noticed, 'a body noticed the stop').toEqual([]);
      const replay = await open({ replayOnly: true });
      expect(await runMain(replay, body)).toEqual({ status: 'ok', output: 'done' });
    },
  );
}

verifies('grant.budget', 'effects in flight at a stop end, and are recorded before the stop', async () => {
  const { session, effect, entries, performed, gate, open, admit } = await stoppingSession();
  const slow = deferred<string>();
  const body: Body = (scope) =>
    scope.all([
      (branch: Scope) => branch.effect(effect('slow', 'once', () => slow.promise)),
      async (branch: Scope) => {
        await branch.effect(effect('quick', 'once'));
        return branch.effect(effect('limit', 'once'));
      },
    ]);
  const running = runMain(session, body);
  await ticks(10);
  let isSettled = false;
  const settled = running.then(() => {
    isSettled = true;
  });
  await tick();
  expect(isSettled, 'the stop was reported while an effect was in flight').toBe(false);
  slow.resolve('late');
  await settled;
  expect(await running).toMatchObject({ status: 'stopped' });
  const types = (await entries()).map(({ type, key }) => `${type} ${key}`);
  expect(types.slice(-2)).toEqual(['effect.returned t1/0/0/0', 'call.stopped t1']);
  gate.isOpen = true;
  await session.close();
  const again = await open({ admit });
  expect(await runMain(again, body)).toEqual({ status: 'ok', output: ['late', 'limit done'] });
  expect(performed.sort()).toEqual(['limit', 'quick', 'slow']);
});

verifies('grant.budget', 'a stop from outside is not noticed either, and the first reason counts', async () => {
  const { session, entries, open } = await stoppingSession();
  const body: Body = async (scope) => {
    await scope.sleep(60_000).catch(note('sleep'));
    return 'done';
  };
  noticed.length = 0;
  const running = runMain(session, body);
  await ticks(3);
  expect(session.stop('t2', { reason: 'other', message: '' }), 'another root was stopped').toBe(false);
  expect(session.stop('t1', { reason: 'wallMs', message: 'late' })).toBe(true);
  expect(session.stop('t1', { reason: 'effects', message: 'later' })).toBe(false);
  expect(await running).toEqual({ status: 'stopped', stop: { reason: 'wallMs', message: 'late' } });
  expect((await entries()).filter(({ type }) => type === 'call.stopped')).toHaveLength(1);
  expect(noticed).toEqual([]);
  expect(session.stop('t1', { reason: 'effects', message: '' }), 'an ended run was stopped').toBe(false);
  await session.close();
  const again = await open();
  const resumed = again.run('t1', loop(body), null, { timers: 'pause' });
  expect(await resumed).toMatchObject({ status: 'paused', pending: [{ kind: 'timer' }] });
});

verifies('grant.budget', 'the interrupted effects of a run that is stopped meanwhile are not admitted', async () => {
  const { open, effect } = kernelFixture();
  const endless = (name: string) => effect(name, 'idempotent', () => new Promise<never>(() => {}));
  const body: Body = (scope) => scope.all(['limit', 'other'].map((name) => (branch) => branch.effect(endless(name))));
  void runMain(await open(), body);
  await ticks(10);
  const asked: string[] = [];
  const admit: Admit = (asking) => {
    asked.push(asking.name);
    session.stop('t1', { reason: 'effects', message: '' });
    return asking;
  };
  const session: Session = await open({ admit });
  expect(await runMain(session, body)).toMatchObject({ status: 'stopped' });
  await ticks(10);
  expect(asked, 'an effect that is not performed was paid').toEqual(['limit']);
});

verifies('grant.budget', 'a root that has ended cannot be stopped any more', async () => {
  const fixture = kernelFixture();
  const session: Session = await fixture.open({
    onEntry: ({ type, key }) => {
      if (type === 'call.completed' && key === 't1')
        queueMicrotask(() => session.stop('t1', { reason: 'late', message: '' }));
    },
  });
  expect(await runMain(session, async () => 'done')).toEqual({ status: 'ok', output: 'done' });
  expect(await fixture.types()).not.toContain('call.stopped t1');
});

const refuse: Admit = (effect) => {
  if (effect.name === 'forbidden') throw new LoopError('TOOL_NOT_ADMITTED', 'It is not permitted.');
  return effect;
};

for (const isLeaf of [false, true]) {
  verifies(
    'grant.tools',
    `a refusal ${isLeaf ? 'of a leaf call ' : ''}is recorded once and repeated by every replay`,
    async () => {
      const { open, effect, performed, entries } = kernelFixture();
      const forbidden = effect('forbidden', 'once');
      const caught: string[] = [];
      const body: Body = async (scope) => {
        const attempt = isLeaf ? scope.call(leafLoop(forbidden), null) : scope.effect(forbidden);
        await attempt.catch((error: LoopError) => caught.push(error.code));
        return scope.wait('go');
      };
      const session = await open({ admit: refuse });
      await session.run('t1', loop(body), null, { timers: 'pause' });
      await session.close();
      const refused = (await entries()).filter(({ type }) => type === 'step.refused');
      expect(refused).toMatchObject([
        { name: 'effect.requested', kind: 'forbidden', error: { code: 'TOOL_NOT_ADMITTED' } },
      ]);
      // A later process that would admit it still repeats the recorded refusal.
      const again = await open();
      await again.signal({ id: 'go', name: 'go', value: 1 });
      expect(await again.run('t1', loop(body), null)).toEqual({ status: 'ok', output: 1 });
      expect(caught).toEqual(['TOOL_NOT_ADMITTED', 'TOOL_NOT_ADMITTED']);
      expect((await entries()).filter(({ type }) => type === 'step.refused')).toHaveLength(1);
      expect(performed, 'a refused effect was performed').toEqual([]);
    },
  );
}

verifies('grant.tools', 'an interrupted effect that is no longer admitted is not repeated', async () => {
  const { open, effect, performed, types } = kernelFixture();
  const body: Body = (scope) => scope.effect(effect('forbidden', 'idempotent', () => new Promise(() => {})));
  const session = await open();
  runMain(session, body).catch(() => undefined);
  await ticks(5);
  expect(performed).toEqual(['forbidden']);
  const again = await open({ admit: refuse });
  expect(await runMain(again, body)).toMatchObject({ status: 'error', error: { code: 'TOOL_NOT_ADMITTED' } });
  expect(performed, 'it was performed again').toEqual(['forbidden']);
  expect(await types()).toContain('effect.failed t1/0');
});

verifies('grant.tools', 'each attempt that a layer makes is admitted', async () => {
  const { open, effect, performed } = kernelFixture();
  let admitted = 0;
  const session = await open({
    layers: [
      async (_effect, _scope, next) => {
        await next().catch(() => undefined);
        return next();
      },
    ],
    admit: (one) => {
      admitted += 1;
      if (admitted > 1) throw new LoopError('TOOL_NOT_ADMITTED', 'Only one attempt is permitted.');
      return one;
    },
  });
  const outcome = await runMain(session, (scope) => scope.effect(effect('act', 'once')));
  expect(outcome).toMatchObject({ status: 'error', error: { code: 'TOOL_NOT_ADMITTED' } });
  expect(performed).toEqual(['act']);
  expect(admitted).toBe(2);
});

verifies('grant.budget', 'an effect that was not performed because its run stopped has no recorded end', async () => {
  const { open, effect, entries, performed } = kernelFixture();
  let isStopped = false;
  const session: Session = await open({
    admit: (one) => ({
      ...one,
      perform: (input, context) => {
        if (isStopped) return one.perform(input, context);
        isStopped = true;
        session.stop('t1', { reason: 'effects', message: 'used up elsewhere' });
        throw new NotPerformed();
      },
    }),
  });
  const body: Body = (scope) => scope.effect(effect('act', 'idempotent'));
  expect(await runMain(session, body)).toMatchObject({ status: 'stopped' });
  expect((await entries()).map(({ type }) => type)).toEqual([
    'session.opened',
    'call.started',
    'effect.requested',
    'call.stopped',
  ]);
  expect(await runMain(session, body)).toEqual({ status: 'ok', output: 'act done' });
  expect(performed).toEqual(['act']);
});
