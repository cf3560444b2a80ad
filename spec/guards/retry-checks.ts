// Checks of retries, of the stacks of errors, and of steps that are not awaited; see kernel-checks.ts.

import { deepStrictEqual, rejects, strictEqual } from 'node:assert';
import type { Scope } from '../../src/index.js';
import { crash, run, sessionFixture, tick } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';
import type { Library } from './library.js';

/** Checks that a body which does not await a step ends with SCOPE_BUSY. */
async function assertBusy(library: Library, body: (scope: Scope) => Promise<unknown>): Promise<void> {
  const outcome = await run(await sessionFixture(library).open(), body);
  strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
}

/** Starts a step without awaiting it and returns. */
const forgetting =
  (step: (scope: Scope) => Promise<unknown>) =>
  async (scope: Scope): Promise<string> => {
    step(scope).catch(() => {});
    return 'done';
  };

export const retryChecks = {
  'an outcome that repeating cannot change is not retried': async ({ LoopError, isRetryableError }) => {
    strictEqual(isRetryableError(new LoopError('APPROVAL_DENIED', 'no')), false);
    strictEqual(isRetryableError(new LoopError('TOOL_FAILED', 'down')), true);
  },
  'the operator can omit stacks': async (library) => {
    const session = await sessionFixture(library).open({ errorStacks: () => undefined });
    const outcome = await run(session, () => Promise.reject(new Error('with a stack')));
    strictEqual(outcome.status === 'error' && outcome.error.stack, undefined);
  },
  'a retry does not repeat an effect that was resolved as failed': async (library) => {
    const fixture = sessionFixture(library);
    const body = (scope: Scope) => scope.effect(fixture.effect('pay', 'once'));
    await crash(fixture, { appendNumber: 2, when: 'before' }, body);
    const session = await fixture.open();
    await run(session, body);
    await session.resolveEffect('t1/0', 'fail', 'ada');
    await run(session, body);
    await session.reopen('t1', ['t1', 't1/0']);
    strictEqual((await run(session, body)).status, 'paused');
    deepStrictEqual(fixture.performed, ['pay']);
  },
  'a root that has not ended is not reopened': async (library) => {
    const session = await sessionFixture(library).open();
    await run(session, (scope) => scope.wait('x'));
    await rejects(session.reopen('t1', ['t1']));
  },
  'a quick record that is not awaited is noticed': (library) =>
    assertBusy(
      library,
      forgetting((scope) => scope.record('shop.fact', () => 1)),
    ),
  'a quick call that is not awaited is noticed': (library) =>
    assertBusy(
      library,
      forgetting((scope) => scope.call({ name: 'quick', body: () => 1 }, null)),
    ),
  'a refused step that is not awaited is noticed': (library) =>
    assertBusy(
      library,
      forgetting((scope) => scope.sleep(-1)),
    ),
  'a refused call that is not awaited is noticed': (library) =>
    assertBusy(
      library,
      forgetting((scope) => scope.call({ name: 5 as never, body: () => 1 }, null)),
    ),
  'a record that nothing awaits is noticed, however long the body goes on': (library) =>
    assertBusy(library, async (scope) => {
      void scope.log('info', 'forgotten');
      for (let i = 0; i < 5; i++) await tick();
      return 'done';
    }),
} as const satisfies Record<string, GuardCheck>;
