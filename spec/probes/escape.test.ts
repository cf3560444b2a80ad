// Bodies that violate the rules of their scope: escaped scopes, forgotten steps, endless loops, reserved types.

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import {
  codeOf,
  deferred,
  duplicates,
  kernelFixture,
  run,
  tick,
  ticks,
  unhandled,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.scope', 'a branch scope that is used after its group leaves the run replayable', async () => {
  const fixture = kernelFixture();
  const body = async (s: Scope) => {
    let escaped: Scope | undefined;
    await s.all([
      async (a) => {
        escaped = a;
        await a.now();
      },
    ]);
    await escaped?.effect(fixture.effect('escaped', 'once')).catch(() => {});
    await s.wait('go');
    return 'fine';
  };
  const session = await fixture.open();
  await run(session, body);
  await session.signal({ id: '1', name: 'go' });
  expect(await codeOf(run(session, body))).toBe('nothing');
});

verifies('kernel.scope', 'a call scope that is used after its call writes nothing', async () => {
  const fixture = kernelFixture();
  const body = async (s: Scope) => {
    let escaped: Scope | undefined;
    await s.call(
      {
        name: 'c',
        body: (_: null, c) => {
          escaped = c;
          return 1;
        },
      },
      null,
    );
    if (escaped) await escaped.effect(fixture.effect('escaped', 'once')).catch(() => {});
    return s.wait('go');
  };
  await run(await fixture.open(), body);
  const all = await fixture.entries();
  const end = all.findIndex((e) => e.type === 'call.completed' && e.key === 't1/0');
  expect(
    all
      .slice(end + 1)
      .filter((e) => e.key.startsWith('t1/0/'))
      .map((e) => e.type),
  ).toEqual([]);
});

verifies('kernel.scope', 'a child that does not await a step ends the run with SCOPE_BUSY', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const hang = deferred<string>();
  const body = async (s: Scope) => {
    const code = await s
      .call(
        {
          name: 'c',
          body: async (_: null, c) => {
            void c.wait('x').catch(() => {});
            return 1;
          },
        },
        null,
      )
      .catch((e) => e.code);
    await s.effect(fixture.effect('slow', 'once', () => hang.promise));
    return code;
  };
  const running = run(session, body);
  await ticks(3);
  hang.resolve('done');
  expect(await within(1000, running)).toMatchObject({ status: 'error', error: { code: 'SCOPE_BUSY' } });
});

verifies('kernel.scope', 'a wait that is not awaited ends the run and consumes no signal', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const body = async (s: Scope) => {
    const code = await s
      .race([
        async (c) => {
          void c.wait('x').catch(() => {});
          return 1;
        },
      ])
      .catch((e) => e.code);
    return [code, await s.race([(r) => r.wait('x'), (r) => r.sleep(1000).then(() => 'nothing came')])];
  };
  const running = run(session, body, 't1', 'hold');
  await ticks(5);
  await session.signal({ id: '1', name: 'x', value: 'X' });
  await ticks(5);
  await fixture.clock.advance(5000);
  expect(await within(1000, running)).toMatchObject({ status: 'error', error: { code: 'SCOPE_BUSY' } });
});

verifies('kernel.scope', 'a parent scope is refused inside of a child or branch', async () => {
  const fixture = kernelFixture();
  const o = await run(await fixture.open(), async (s) => [
    await s.call({ name: 'c', body: () => s.now().catch((e) => e.code) }, null),
    await s.all([() => s.now().catch((e) => e.code)]),
  ]);
  expect(JSON.stringify(o)).toContain('SCOPE_BUSY');
});

verifies('kernel.scope', 'a body that returns while its branches run ends with SCOPE_BUSY', async () => {
  const fixture = kernelFixture();
  const hang = deferred<string>();
  const session = await fixture.open();
  const o = await within(
    1000,
    run(session, async (s) =>
      Promise.race([
        s.all([(a) => a.effect(fixture.effect('slow', 'once', () => hang.promise)), (b) => b.wait('q')]),
        tick().then(() => 'quick'),
      ]),
    ),
  );
  expect(o).toMatchObject({ status: 'error', error: { code: 'SCOPE_BUSY' } });
  hang.resolve('x');
  await ticks(3);
  await session.close();
  expect(duplicates(await fixture.entries())).toEqual([]);
  const all = await fixture.entries();
  const end = all.findIndex((e) => e.type === 'call.errored');
  expect(
    all
      .slice(end + 1)
      .map((e) => e.type)
      .filter((t) => !t.startsWith('effect.')),
  ).toEqual([]);
  expect(unhandled.map(String)).toEqual([]);
});

verifies('kernel.cancel', 'a body that retries on every error ends after a cancel', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  let iterations = 0;
  const body = async (s: Scope) => {
    for (;;) {
      try {
        return await s.wait('x');
      } catch {
        if (++iterations > 100_000) throw new Error('endless loop');
      }
    }
  };
  const running = run(session, body, 't1');
  await running;
  await session.cancel('t1', 'enough');
  await run(session, body);
  expect(iterations).toBeLessThan(1000);
});

verifies('kernel.depth', 'nesting through all is bounded by maxDepth', async () => {
  const fixture = kernelFixture();
  let depth = 0;
  const nest = (s: Scope): Promise<unknown> => {
    depth += 1;
    if (depth > 300) throw new Error('unbounded');
    return s.all([nest]);
  };
  const o = await run(await fixture.open({ maxDepth: 50 }), nest);
  expect(o).toMatchObject({ status: 'error', error: { code: 'DEPTH_EXCEEDED' } });
});

verifies('kernel.once', "a record with one of the kernel's own entry types does not corrupt the session", async () => {
  const failures: string[] = [];
  for (const type of [
    'session.opened',
    'signal.received',
    'effect.requested',
    'effect.resolved',
    'cancel.requested',
    'call.started',
    'timer.set',
    'wait.settled',
    'group.opened',
    'effect.returned',
    'call.completed',
  ]) {
    const fixture = kernelFixture();
    let made = 0;
    const body = async (s: Scope) => {
      const v = await s.record(type, () => {
        made += 1;
        return made;
      });
      await s.effect(fixture.effect('key', 'keyed'));
      await s.wait('go');
      return v;
    };
    const first = await run(await fixture.open(), body).catch((e) => ({ status: e.code }));
    if (first.status !== 'paused') continue; // The record was refused.
    const session = await fixture.open();
    const second = await codeOf(run(session, body));
    if (second !== 'nothing' || made > 1 || session.effectsInDoubt.length > 0)
      failures.push(`${type}: ${second}, made ${made}, doubts ${session.effectsInDoubt.length}`);
    const third = await run(await fixture.open(), async (s) => s.effect(fixture.effect('key2', 'keyed')), 't2').catch(
      (e) => e.code,
    );
    void third;
    if (new Set(fixture.keys.map((x) => x.split(':')[0])).size > 1)
      failures.push(`${type}: the session got a new incarnation: ${fixture.keys}`);
  }
  expect(failures).toEqual([]);
});

verifies('kernel.once', 'the failure of a record is recorded, and repeated on replay', async () => {
  const fixture = kernelFixture();
  let made = 0;
  const results: unknown[] = [];
  const body = async (s: Scope) => {
    const v = await s
      .record('a.b', () => {
        if (made++ === 0) throw new Error('first time');
        return made;
      })
      .catch(() => 'failed');
    results.push(v);
    await s.wait('go');
  };
  await run(await fixture.open(), body);
  await run(await fixture.open(), body).catch(() => {});
  expect(results).toEqual(['failed', 'failed']);
});

verifies('kernel.cancel', 'a thrown undefined and a body that ignores its cancel both end the run', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  expect(
    await run(
      session,
      () => {
        throw undefined;
      },
      'a',
    ),
  ).toMatchObject({ status: 'error', error: { code: 'EXECUTION_FAILED' } });
  const running = run(
    session,
    async (s) => {
      try {
        await s.sleep(1000);
      } catch {
        await s.effect(fixture.effect('cleanup', 'once')).catch(() => {});
      }
      return 'fine';
    },
    'b',
    'hold',
  );
  await ticks(3);
  await session.cancel('b', 'x');
  expect(await within(1000, running)).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(fixture.performed).toEqual([]);
  expect(unhandled).toEqual([]);
});

verifies('kernel.cancel', 'an effect that cancels its own run and never ends does not block the run', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const o = within(
    500,
    run(session, (s) =>
      s.effect(
        fixture.effect('self-cancelling', 'pure', () => {
          void session.cancel('t1', 'self');
          return new Promise(() => {});
        }),
      ),
    ),
    'cancel inside perform does not release the body',
  );
  expect(await o).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
});
