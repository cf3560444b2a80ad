// Checks of values, views and versions; see kernel-checks.ts.

import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import type { RunOutcome, Store } from '../../src/host-entry.js';
import type { Scope } from '../../src/index.js';
import { codeOf, loop, run, sessionFixture } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';

export const valueChecks = {
  'a later change to a value does not change the journal': async (library) => {
    const fixture = sessionFixture(library);
    const shared = { list: [1] };
    await run(await fixture.open(), async (scope) => {
      await scope.record('list.seen', () => shared);
      shared.list.push(2);
      return null;
    });
    const recorded = (await fixture.entries()).find(({ type }) => type === 'list.seen');
    deepStrictEqual(recorded?.value, { list: [1] });
  },
  'a value that is not JSON is refused': async (library) => {
    const fixture = sessionFixture(library);
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    const deep = JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`);
    const invalidValues = [new Date(0), Number.NaN, 10n, () => 1, Symbol('x'), new Map(), cyclic, deep, [undefined]];
    for (const [index, value] of invalidValues.entries()) {
      const session = await fixture.open();
      const outcome = await session.run(`t${index}`, { name: 'bad', body: async () => ({ inside: value }) }, null);
      strictEqual(outcome.status === 'error' && outcome.error.code, 'VALUE_INVALID', String(index));
    }
  },
  'the key __proto__ is refused': async (library) => {
    const fixture = sessionFixture(library);
    const outcome = await run(await fixture.open(), async () => JSON.parse('{"a":{"__proto__":{"polluted":true}}}'));
    strictEqual(outcome.status === 'error' && outcome.error.code, 'VALUE_INVALID');
    ok(outcome.status === 'error' && outcome.error.message.includes('["a"]: the key "__proto__"'));
    strictEqual('polluted' in {}, false);
  },
  'unbounded recursion is refused': async (library) => {
    const fixture = sessionFixture(library);
    const endless = {
      name: 'endless',
      body: async (_: unknown, scope: Scope): Promise<unknown> => scope.call(endless, null),
    };
    const outcome = await (await fixture.open({ maxDepth: 50 })).run('t1', endless, null);
    strictEqual(outcome.status === 'error' && outcome.error.code, 'DEPTH_EXCEEDED');
    strictEqual((await fixture.entries()).filter(({ type }) => type === 'call.started').length, 51);
  },
  'a large value that was altered in the store is refused': async (library) => {
    const fixture = sessionFixture(library);
    const body = async (scope: Scope) => {
      const text = await scope.effect(fixture.effect('big', 'once', { perform: () => 'x'.repeat(10_000) }));
      await scope.wait('go');
      return text;
    };
    await run(await fixture.open(), body);
    const blob = (await fixture.entries()).find(({ type }) => type === 'effect.returned')?.blob ?? '';
    await fixture.store.blobs.put('s', blob, JSON.stringify('forged'));
    strictEqual(await codeOf(run(await fixture.open(), body)), 'STORE_DAMAGED');
  },
  'an entry that violates an invariant is not written': async (library) => {
    const fixture = sessionFixture(library);
    const spent = {
      name: 'spent',
      version: 1,
      initial: 0,
      apply: (n: number, e: { type: string }) => (e.type === 'coin.spent' ? n + 1 : n),
    };
    const cap = {
      view: spent,
      check: (n: number, draft: { type: string }) =>
        draft.type === 'coin.spent' && n >= 2 ? { rule: 'cap', message: 'at most two coins can be spent' } : undefined,
    };
    const session = await fixture.open({ invariants: [cap as never] });
    const outcome = await run(session, async (scope) => {
      for (let i = 0; i < 3; i++) await scope.record('coin.spent', () => i);
    });
    strictEqual(outcome.status === 'error' && outcome.error.code, 'INVARIANT_VIOLATED');
    strictEqual((await fixture.entries()).filter(({ type }) => type === 'coin.spent').length, 2);
  },
  'an entry of a newer version is refused': async (library) => {
    const fixture = sessionFixture(library);
    await run(
      await fixture.open({ upcasts: { 'call.started': { current: 2, from: { 1: (entry) => entry } } } }),
      async () => 1,
    );
    strictEqual(await codeOf(fixture.open()), 'ENTRY_TOO_NEW');
  },
  'a snapshot that does not match the journal is ignored': async (library) => {
    const fixture = sessionFixture(library);
    await run(await fixture.open(), async () => 'true');
    const state = { session: { incarnationId: 'x', roots: [], inbox: [], delivered: [] }, views: {} };
    await fixture.store.snapshots.save('s', { nextSeq: 3, tailDigest: 'digest of another journal', state });
    deepStrictEqual(await run(await fixture.open(), async () => 'false'), {
      status: 'ok',
      output: 'true',
    } satisfies RunOutcome);
  },
  'the cost of snapshots stays bounded as a session grows': async (library) => {
    const fixture = sessionFixture(library);
    let savedChars = 0;
    const save: Store['snapshots']['save'] = async (_, { state }) => {
      savedChars += JSON.stringify(state).length;
    };
    const session = await fixture.open({
      store: { ...fixture.store, snapshots: { ...fixture.store.snapshots, save } },
    });
    let entries = 0;
    for (let root = 0; root < 60; root++) {
      for (let n = 0; n < 500; n++) entries += Number(await session.signal({ id: `${root} ${n}`, name: 'x' }));
      await session.run(
        `t${root}`,
        loop(async () => null),
        null,
      );
    }
    ok(savedChars > 0 && savedChars < 200 * entries, `${savedChars} characters of snapshots for ${entries} entries`);
  },
  'an effect receives the arguments that were journaled': async (library) => {
    const fixture = sessionFixture(library);
    const input = { amount: 5 };
    let paid: unknown;
    const pay = fixture.effect('pay', 'once', { input, perform: (received) => (paid = received) });
    await run(await fixture.open(), (scope) => {
      const paying = scope.effect(pay);
      input.amount = 500;
      return paying;
    });
    const intent = (await fixture.entries()).find(({ type }) => type === 'effect.requested');
    deepStrictEqual(paid, intent?.value);
  },
  'a replay repeats the refusal of an invariant': async (library) => {
    const fixture = sessionFixture(library);
    let allowed = false;
    const any = { name: 'any', version: 1, initial: 0, apply: (n: number) => n };
    const rule = {
      view: any,
      check: (_: number, { type }: { type: string }) =>
        type === 'coin.spent' && !allowed ? { rule: 'none', message: 'nothing may be spent' } : undefined,
    };
    const body = async (scope: Scope) => {
      const spent = await scope.record('coin.spent', () => 'spent').catch(() => 'refused');
      await scope.wait('go');
      return spent;
    };
    await run(await fixture.open({ invariants: [rule as never] }), body);
    allowed = true;
    const session = await fixture.open({ invariants: [rule as never] });
    await session.signal({ id: '1', name: 'go' });
    deepStrictEqual(await run(session, body), { status: 'ok', output: 'refused' });
  },
} as const satisfies Record<string, GuardCheck>;
