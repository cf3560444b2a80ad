import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { codeOf, deferred, duplicates, kit, run, tick, ticks, unhandled, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies(
  'kernel.scope',
  'E1 a branch scope used after its group: works live, mismatches for ever on replay',
  async () => {
    const k = kit();
    const body = async (s: Scope) => {
      let kept: Scope | undefined;
      await s.all([
        async (a) => {
          kept = a;
          await a.now();
        },
      ]);
      await kept?.effect(k.effect('escaped', 'once')).catch(() => {});
      await s.wait('go');
      return 'fine';
    };
    const session = await k.open();
    await run(session, body);
    await session.signal({ id: '1', name: 'go' });
    expect(await codeOf(run(session, body))).toBe('nothing');
  },
);

verifies(
  'kernel.scope',
  'E2 a call scope used after its call: an effect under a finished call, performed again by every replay',
  async () => {
    const k = kit();
    const body = async (s: Scope) => {
      let kept: Scope | undefined;
      await s.call(
        {
          name: 'c',
          body: (_: null, c) => {
            kept = c;
            return 1;
          },
        },
        null,
      );
      if (kept) await kept.effect(k.effect('escaped', 'once')).catch(() => {});
      return s.wait('go');
    };
    await run(await k.open(), body);
    const all = await k.entries();
    const end = all.findIndex((e) => e.type === 'call.completed' && e.key === 't1/0');
    expect(
      all
        .slice(end + 1)
        .filter((e) => e.key.startsWith('t1/0/'))
        .map((e) => e.type),
    ).toEqual([]);
  },
);

verifies(
  'kernel.scope',
  'E3 a child forgets a wait; the parent catches SCOPE_BUSY and goes on: false pause',
  async () => {
    const k = kit();
    const session = await k.open();
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
      await s.effect(k.effect('slow', 'once', () => hang.promise));
      return code;
    };
    const running = run(session, body);
    await ticks(3);
    hang.resolve('done');
    expect(await within(1000, running)).toMatchObject({ status: 'error', error: { code: 'SCOPE_BUSY' } });
  },
);

verifies('kernel.scope', 'E4 a forgotten wait swallows the signal that the body waits for later', async () => {
  const k = kit();
  const session = await k.open();
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
  await k.clock.advance(5000);
  expect(await within(1000, running)).toMatchObject({ status: 'error', error: { code: 'SCOPE_BUSY' } });
});

verifies('kernel.scope', 'E5 parent scope inside a child or branch is refused', async () => {
  const k = kit();
  const o = await run(await k.open(), async (s) => [
    await s.call({ name: 'c', body: () => s.now().catch((e) => e.code) }, null),
    await s.all([() => s.now().catch((e) => e.code)]),
  ]);
  expect(JSON.stringify(o)).toContain('SCOPE_BUSY');
});

verifies('kernel.scope', 'E6 all inside Promise.race, body returns while branches run', async () => {
  const k = kit();
  const hang = deferred<string>();
  const session = await k.open();
  const o = await within(
    1000,
    run(session, async (s) =>
      Promise.race([
        s.all([(a) => a.effect(k.effect('slow', 'once', () => hang.promise)), (b) => b.wait('q')]),
        tick().then(() => 'quick'),
      ]),
    ),
  );
  expect(o).toMatchObject({ status: 'error', error: { code: 'SCOPE_BUSY' } });
  hang.resolve('x');
  await ticks(3);
  await session.close();
  expect(duplicates(await k.entries())).toEqual([]);
  const all = await k.entries();
  const end = all.findIndex((e) => e.type === 'call.errored');
  expect(
    all
      .slice(end + 1)
      .map((e) => e.type)
      .filter((t) => !t.startsWith('effect.')),
  ).toEqual([]);
  expect(unhandled.map(String)).toEqual([]);
});

verifies('kernel.cancel', 'E7 a body that retries on every error spins for ever once it is cancelled', async () => {
  const k = kit();
  const session = await k.open();
  let turns = 0;
  const body = async (s: Scope) => {
    for (;;) {
      try {
        return await s.wait('x');
      } catch {
        if (++turns > 100_000) throw new Error('spun');
      }
    }
  };
  const running = run(session, body, 't1');
  await running;
  await session.cancel('t1', 'enough');
  await run(session, body);
  expect(turns).toBeLessThan(1000);
});

verifies('kernel.depth', 'E8 endless nesting through all is not bounded by maxDepth', async () => {
  const k = kit();
  let depth = 0;
  const nest = (s: Scope): Promise<unknown> => {
    depth += 1;
    if (depth > 300) throw new Error('went on');
    return s.all([nest]);
  };
  const o = await run(await k.open({ maxDepth: 50 }), nest);
  expect(o).toMatchObject({ status: 'error', error: { code: 'DEPTH_EXCEEDED' } });
});

verifies('kernel.once', "E9 records that use the kernel's own types", async () => {
  const bad: string[] = [];
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
    const k = kit();
    let made = 0;
    const body = async (s: Scope) => {
      const v = await s.record(type, () => {
        made += 1;
        return made;
      });
      await s.effect(k.effect('key', 'keyed'));
      await s.wait('go');
      return v;
    };
    const first = await run(await k.open(), body).catch((e) => ({ status: e.code }));
    if (first.status !== 'paused') continue; // refused: good
    const session = await k.open();
    const second = await codeOf(run(session, body));
    if (second !== 'nothing' || made > 1 || session.effectsInDoubt.length > 0)
      bad.push(`${type}: ${second}, made ${made}, doubts ${session.effectsInDoubt.length}`);
    const third = await run(await k.open(), async (s) => s.effect(k.effect('key2', 'keyed')), 't2').catch(
      (e) => e.code,
    );
    void third;
    if (new Set(k.keys.map((x) => x.split(':')[0])).size > 1)
      bad.push(`${type}: the session was born again: ${k.keys}`);
  }
  expect(bad).toEqual([]);
});

verifies('kernel.once', 'E10 a failing make() is made again on replay', async () => {
  const k = kit();
  let made = 0;
  const seen: unknown[] = [];
  const body = async (s: Scope) => {
    const v = await s
      .record('a.b', () => {
        if (made++ === 0) throw new Error('first time');
        return made;
      })
      .catch(() => 'failed');
    seen.push(v);
    await s.wait('go');
  };
  await run(await k.open(), body);
  await run(await k.open(), body).catch(() => {});
  expect(seen).toEqual(['failed', 'failed']);
});

verifies(
  'kernel.cancel',
  'E11 sync throws, undefined throws, catches CANCELLED and goes on, finally steps',
  async () => {
    const k = kit();
    const session = await k.open();
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
          await s.effect(k.effect('cleanup', 'once')).catch(() => {});
        }
        return 'fine';
      },
      'b',
      'hold',
    );
    await ticks(3);
    await session.cancel('b', 'x');
    expect(await within(1000, running)).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
    expect(k.performed).toEqual([]);
    expect(unhandled).toEqual([]);
  },
);

verifies('kernel.cancel', 'E12 an effect that cancels its own run and then never ends', async () => {
  const k = kit();
  const session = await k.open();
  const o = within(
    500,
    run(session, (s) =>
      s.effect(
        k.effect('suicide', 'pure', () => {
          void session.cancel('t1', 'self');
          return new Promise(() => {});
        }),
      ),
    ),
    'cancel inside perform does not release the body',
  );
  expect(await o).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
});
