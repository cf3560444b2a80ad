// Checks of leaf calls: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, strictEqual } from 'node:assert';
import type { Invariant } from '../../src/host-entry.js';
import type { Effect, Loop, Scope } from '../../src/index.js';
import { expandLeaves } from '../../src/journal/leaf-entries.js';
import type { Entry, Json } from '../../src/protocol/index.js';
import { run, sessionFixture, tick } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';

type LeafOptions = Partial<Pick<Loop<Json, Json>, 'input' | 'output'>> & { readonly outputMember?: string };

/** Returns a loop whose calls consist of an effect. */
function leafLoop(toEffect: (input: Json, scope: Scope) => Effect, options: LeafOptions = {}): Loop<Json, Json> {
  const { outputMember, ...rest } = options;
  const leaf = { effect: toEffect, outputMember };
  const outputOf = (result: unknown): Json =>
    (outputMember === undefined ? result : (result as { readonly [name: string]: Json })[outputMember]) as Json;
  return {
    name: 'leaf',
    leaf,
    ...rest,
    body: async (input, scope) => outputOf(await scope.effect(toEffect(input, scope))),
  };
}

const typesOf = (entries: readonly Entry[]): string[] => entries.map(({ type, key }) => `${type} ${key}`);

export const leafChecks = {
  'the effect of a leaf call cannot start steps of its scope': async (library) => {
    const fixture = sessionFixture(library);
    const loop = leafLoop((input, scope) => fixture.effect('read', 'pure', { input, perform: () => scope.now() }));
    const outcome = await run(await fixture.open(), (scope) => scope.call(loop, null));
    strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
  },
  'an invariant can refuse the effect of a leaf call': async (library) => {
    const fixture = sessionFixture(library);
    const view = { name: 'none', version: 1, initial: 0, apply: (state: number) => state };
    const check = (_: number, { type }: { readonly type: string }) =>
      type === 'effect.requested' ? { rule: 'no-effects', message: 'no effect is permitted' } : undefined;
    const invariant: Invariant<number> = { view, check };
    const session = await fixture.open({ invariants: [invariant as Invariant<never>] });
    const loop = leafLoop((input) => fixture.effect('pay', 'once', { input }));
    const outcome = await run(session, (scope) => scope.call(loop, null));
    strictEqual(outcome.status === 'error' && outcome.error.code, 'INVARIANT_VIOLATED');
    deepStrictEqual(fixture.performed, []);
  },
  'layers wrap the effect of a leaf call': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open({ layers: [async () => 'from the layer'] });
    const loop = leafLoop((input) => fixture.effect('pay', 'once', { input }));
    deepStrictEqual(await run(session, (scope) => scope.call(loop, null)), { status: 'ok', output: 'from the layer' });
    deepStrictEqual(fixture.performed, []);
  },
  'a leaf call whose input is changed by its validation performs the changed input': async (library) => {
    const fixture = sessionFixture(library);
    const perform: Effect['perform'] = (input) => input;
    const loop = leafLoop((input) => fixture.effect('read', 'pure', { input, perform }), {
      input: (value) => ({ parsed: value as Json }),
    });
    const outcome = await run(await fixture.open(), (scope) => scope.call(loop, 'a'));
    deepStrictEqual(outcome, { status: 'ok', output: { parsed: 'a' } });
    const intent = expandLeaves(await fixture.entries()).find(({ type }) => type === 'effect.requested');
    deepStrictEqual(intent?.value, { parsed: 'a' });
  },
  'the effect of a cancelled leaf call is recorded when it ends, and the call is not ended twice': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    let end = (): void => {};
    const perform = () => new Promise<string>((resolve) => (end = () => resolve('late')));
    const loop = leafLoop((input) => fixture.effect('pay', 'once', { input, perform }));
    const running = run(session, (scope) => scope.call(loop, null));
    await tick();
    await session.cancel('t1', 'enough');
    await running;
    end();
    await session.close();
    deepStrictEqual(typesOf(await fixture.entries()).slice(-4), [
      'cancel.requested t1',
      'call.errored t1/0',
      'call.errored t1',
      'effect.returned t1/0/0',
    ]);
  },
  'a cancel after the end of a leaf call does not change its outcome': async (library) => {
    for (let microtasks = 0; microtasks < 40; microtasks++) {
      const fixture = sessionFixture(library);
      const session = await fixture.open();
      const loop = leafLoop((input) => fixture.effect('read', 'pure', { input }));
      let seen = '';
      const running = run(session, async (scope) => {
        seen = await scope.call(loop, null).then(String, ({ code }) => String(code));
      });
      for (let i = 0; i < microtasks; i++) await undefined;
      await session.cancel('t1', 'enough');
      await running;
      const ends = (await fixture.entries()).filter(({ type, key }) => key === 't1/0' && type !== 'call.started');
      deepStrictEqual(
        ends.map(({ type }) => type),
        seen === '' ? [] : [seen === 'CANCELLED' ? 'call.errored' : 'call.completed'],
        `after ${microtasks} microtasks: ${seen}`,
      );
      await session.close();
    }
  },
  'a leaf call records everything that its effect returned': async (library) => {
    for (const result of [{ output: 'a', notes: ['b'] }, { output: 'a'.repeat(10_000) }, { output: 'a' }]) {
      const fixture = sessionFixture(library);
      const loop = leafLoop((input) => fixture.effect('read', 'pure', { input, perform: () => result }), {
        outputMember: 'output',
      });
      const outcome = await run(await fixture.open(), (scope) => scope.call(loop, null));
      deepStrictEqual(outcome, { status: 'ok', output: result.output });
      const stored = JSON.parse(JSON.stringify(await fixture.entries())) as Entry[];
      const returned = expandLeaves(stored).find(({ type }) => type === 'effect.returned');
      const { blob } = returned ?? {};
      const text = blob === undefined ? JSON.stringify(returned?.value) : await fixture.store.blobs.get('s', blob);
      strictEqual(text?.includes('"output"'), true);
      strictEqual(text?.includes('"notes"'), 'notes' in result);
    }
  },
  'the output of a leaf call is the one that its validation returns': async (library) => {
    const fixture = sessionFixture(library);
    const loop = leafLoop((input) => fixture.effect('read', 'pure', { input }), {
      output: (value) => ({ parsed: value as Json }),
    });
    const outcome = await run(await fixture.open(), (scope) => scope.call(loop, null));
    deepStrictEqual(outcome, { status: 'ok', output: { parsed: 'read done' } });
    const entries = expandLeaves(await fixture.entries());
    strictEqual(entries.find(({ type }) => type === 'effect.returned')?.value, 'read done');
  },
} satisfies { readonly [promise: string]: GuardCheck };
