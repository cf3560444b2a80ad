import { expect } from 'vitest';
import { duplicates, type KernelFixture, kernelFixture, run } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import type { Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { RunOutcome } from '../protocol/session.js';
import { failurePathOf } from '../views/failure-path.js';

/** A fixture whose effects fail while their name is in `broken`. */
interface Outage {
  readonly k: KernelFixture;
  readonly broken: Set<string>;
  /** Performs an effect. */
  act(scope: Scope, name: string, safety?: Safety): Promise<unknown>;
  /** Runs the body in a new session. */
  run(body: (scope: Scope) => unknown): Promise<RunOutcome>;
  /** Reopens the root at its failure and runs the body again. */
  retry(body: (scope: Scope) => unknown): Promise<RunOutcome>;
  performed(): readonly string[];
}

function outage(...names: readonly string[]): Outage {
  const k = kernelFixture();
  const broken = new Set(names);
  const perform = (name: string) => (): string => {
    if (broken.has(name)) throw new Error(`${name} is down`);
    return `${name} done`;
  };
  return {
    k,
    broken,
    act: (scope, name, safety = 'keyed') => scope.effect(k.effect(name, safety, perform(name))),
    run: async (body) => run(await k.open(), body),
    retry: async (body) => {
      const session = await k.open();
      await session.reopen('t1', failurePathOf('t1', await k.entries()));
      await session.close();
      return run(await k.open(), body);
    },
    performed: () => k.performed,
  };
}

const ok = (output: unknown): RunOutcome => ({ status: 'ok', output });

verifies('turn.retry', 'a retried root continues at the failed effect and keeps what succeeded', async () => {
  const o = outage('b');
  const child = { name: 'child', body: (_: null, scope: Scope) => o.act(scope, 'b') };
  const body = async (s: Scope): Promise<unknown> => [
    await o.act(s, 'a'),
    await s.call(child, null),
    await o.act(s, 'c'),
  ];
  expect((await o.run(body)).status).toBe('error');
  expect((await o.retry(body)).status).toBe('error');
  o.broken.clear();
  expect(await o.retry(body)).toEqual(ok(['a done', 'b done', 'c done']));
  expect(o.performed()).toEqual(['a', 'b', 'b', 'b', 'c']);
  expect(new Set(o.k.keys).size, 'an attempt has another idempotency key').toBe(3);
  expect(await o.run(body), 'the end is not recorded').toEqual(ok(['a done', 'b done', 'c done']));
  const types = await o.k.types();
  expect(types.filter((type) => type.startsWith('effect.requested t1/1/0'))).toEqual(
    ['', '~1', '~2'].map((suffix) => `effect.requested t1/1/0${suffix}`),
  );
});

verifies('turn.retry', 'a failed once effect is performed again by a retry, and only by it', async () => {
  const o = outage('pay');
  const body = (s: Scope): Promise<unknown> => o.act(s, 'pay', 'once');
  await o.run(body);
  o.broken.clear();
  expect((await o.run(body)).status).toBe('error');
  expect(await o.retry(body)).toEqual(ok('pay done'));
  expect(o.performed()).toEqual(['pay', 'pay']);
});

verifies('turn.retry', 'an effect in doubt that was resolved as failed is in doubt again', async () => {
  const o = outage();
  const body = (s: Scope): Promise<unknown> => o.act(s, 'pay', 'once');
  const lost = await o.k.open();
  const key = 't1/0';
  void lost.run(
    't1',
    { name: 'main', body: (_: null, s: Scope) => s.effect(o.k.effect('pay', 'once', () => new Promise(() => {}))) },
    null,
  );
  await new Promise((resolve) => setImmediate(resolve));
  const session = await o.k.open();
  expect((await run(session, body)).status).toBe('paused');
  await session.resolveEffect(key, 'fail', 'ada');
  expect((await run(session, body)).status).toBe('error');
  await session.close();
  expect(await o.retry(body)).toMatchObject({ status: 'paused', pending: [{ kind: 'doubt', key }] });
  const later = await o.k.open();
  expect(later.effectsInDoubt).toMatchObject([{ key }]);
  await later.resolveEffect(key, 'retry', 'ada');
  expect(await run(later, body)).toEqual(ok('pay done'));
  expect(o.performed()).toEqual(['pay', 'pay']);
});

verifies('turn.retry', 'every failed branch of a group continues, and the others are not repeated', async () => {
  const o = outage('b', 'd');
  const body = (s: Scope): Promise<unknown> =>
    s.all(
      ['a', 'b', 'c', 'd'].map((name) => async (branch: Scope) => [
        await o.act(branch, `${name}0`),
        await o.act(branch, name),
      ]),
    );
  expect((await o.run(body)).status).toBe('error');
  o.broken.clear();
  expect((await o.retry(body)).status).toBe('ok');
  expect([...o.performed()].sort()).toEqual(['a', 'a0', 'b', 'b', 'b0', 'c', 'c0', 'd', 'd', 'd0']);
});

verifies('turn.retry', 'a failure that the body caught is kept', async () => {
  const o = outage('optional', 'b');
  const body = async (s: Scope): Promise<unknown> => {
    const optional = await o.act(s, 'optional').catch(() => 'none');
    return [optional, await o.act(s, 'b')];
  };
  await o.run(body);
  o.broken.clear();
  expect(await o.retry(body)).toEqual(ok(['none', 'b done']));
  expect(o.performed()).toEqual(['optional', 'b', 'b']);
});

verifies('turn.retry', 'a wrapped error leads to the step that caused it', async () => {
  const o = outage('b');
  const body = async (s: Scope): Promise<unknown> => {
    await o.act(s, 'a');
    try {
      return await o.act(s, 'b');
    } catch (cause) {
      throw new Error('The order failed.', { cause });
    }
  };
  await o.run(body);
  o.broken.clear();
  expect(await o.retry(body)).toEqual(ok('b done'));
  expect(o.performed()).toEqual(['a', 'b', 'b']);
});

verifies(
  'turn.retry',
  'steps that the body took after the failure are not repeated, and others take their place',
  async () => {
    const o = outage('b');
    const body = async (s: Scope): Promise<unknown> => {
      await o.act(s, 'lock');
      try {
        await o.act(s, 'b');
        await s.log('info', 'b is done');
        return await o.act(s, 'c');
      } catch (thrown) {
        await s.log('error', 'b failed');
        await o.act(s, 'alert');
        throw thrown;
      } finally {
        await o.act(s, 'unlock');
      }
    };
    await o.run(body);
    await o.retry(body);
    expect(o.performed()).toEqual(['lock', 'b', 'alert', 'unlock', 'b']);
    o.broken.clear();
    o.broken.add('c');
    expect((await o.retry(body)).status).toBe('error');
    o.broken.clear();
    expect(await o.retry(body)).toEqual(ok('c done'));
    expect(o.performed().slice(5)).toEqual(['b', 'c', 'alert', 'unlock', 'c', 'unlock']);
    expect(await o.run(body)).toEqual(ok('c done'));
    const entries = await o.k.entries();
    expect(
      duplicates(entries.filter(({ type }) => !/^(?:call\.errored|effect\.failed|call\.reopened)$/.test(type))),
    ).toEqual([]);
    expect(
      entries.filter(({ type }) => type === 'log.written').map(({ value }) => (value as { message: string }).message),
    ).toEqual(['b failed', 'b is done', 'b failed']);
  },
);

verifies('turn.retry', 'a body that collects errors does not repeat the items that succeeded', async () => {
  const o = outage('a', 'c');
  const body = async (s: Scope): Promise<unknown> => {
    let failure: unknown;
    for (const name of ['a', 'b', 'c', 'd']) await o.act(s, name).catch((thrown) => (failure ??= thrown));
    if (failure !== undefined) throw failure;
    return 'all';
  };
  await o.run(body);
  o.broken.clear();
  expect((await o.retry(body)).status, 'the failure of c is recorded').toBe('error');
  expect(await o.retry(body)).toEqual(ok('all'));
  expect(o.performed()).toEqual(['a', 'b', 'c', 'd', 'a', 'c']);
});

verifies('turn.retry', 'the winner of a race continues, and after a timeout the others do', async () => {
  const o = outage('work');
  const late = async (s: Scope): Promise<never> => {
    await s.sleep(1000);
    throw new Error('too late');
  };
  const body = (s: Scope): Promise<unknown> =>
    s.race([async (b) => [await o.act(b, 'first'), await b.wait('go'), await o.act(b, 'work')], late]);
  expect((await o.run(body)).status).toBe('paused');
  await o.k.clock.advance(2000);
  expect(await o.run(body)).toMatchObject({ status: 'error', error: { message: 'too late' } });
  expect((await o.retry(body)).status).toBe('paused');
  await (await o.k.open()).signal({ id: '1', name: 'go', value: 'now' });
  expect(await o.run(body)).toMatchObject({ status: 'error', error: { message: 'work is down' } });
  o.broken.clear();
  expect(await o.retry(body)).toEqual(ok(['first done', 'now', 'work done']));
  expect(o.performed()).toEqual(['first', 'work', 'work']);
});

verifies('turn.retry', 'a record that failed is made again, and a fixed body continues after its mistake', async () => {
  const o = outage();
  let isFixed = false;
  const body = async (s: Scope): Promise<unknown> => {
    await o.act(s, 'a');
    const fact = await s.record('shop.fact', () => {
      if (isFixed) return 1;
      throw new Error('no fact');
    });
    return fact;
  };
  await o.run(body);
  isFixed = true;
  expect(await o.retry(body)).toEqual(ok(1));
  const mistaken = outage();
  const other = async (s: Scope): Promise<unknown> => {
    await mistaken.act(s, 'a');
    if (isFixed) throw new TypeError('x is not a function');
    return mistaken.act(s, 'b');
  };
  await mistaken.run(other);
  isFixed = false;
  expect(await mistaken.retry(other)).toEqual(ok('b done'));
  expect(mistaken.performed()).toEqual(['a', 'b']);
});

verifies('turn.retry', 'a reopened root is due until it has ended again', async () => {
  const o = outage('b');
  const body = (s: Scope): Promise<unknown> => o.act(s, 'b');
  const due = async (): Promise<unknown> =>
    (await o.k.store.dueTurns.list(Number.MAX_SAFE_INTEGER, 10)).map(({ turn }) => turn);
  await o.run(body);
  expect(await due()).toEqual([]);
  const session = await o.k.open();
  await session.reopen('t1', ['t1', 't1/0']);
  await session.close();
  expect(await due(), 'nobody would continue it after a crash').toEqual(['t1']);
  o.broken.clear();
  expect(await o.run(body)).toEqual(ok('b done'));
  expect(await due()).toEqual([]);
});

verifies('turn.retry', 'only a root that ended and was not cancelled is reopened', async () => {
  const o = outage('b');
  const session = await o.k.open();
  await expect(session.reopen('t1', ['t1'])).rejects.toMatchObject({ code: 'RETRY_REFUSED' });
  await run(session, (s) => s.wait('x'));
  await expect(session.reopen('t1', ['t1'])).rejects.toMatchObject({ code: 'RETRY_REFUSED' });
  await session.cancel('t1', 'enough');
  await run(session, (s) => s.wait('x'));
  await expect(session.reopen('t1', ['t1'])).rejects.toMatchObject({ code: 'RETRY_REFUSED' });
});
