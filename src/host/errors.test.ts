import { expect } from 'vitest';
import { hostOf } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import { firstLocationOf } from '../base/error-stack.js';
import { LoopError } from '../base/errors.js';
import { defineLoop } from '../loops/define.js';
import { Registry } from '../loops/registry.js';
import type { ResultError, TurnResult } from '../protocol/trace.js';
import { ManualClock } from '../testing/manual-clock.js';
import { Host, type HostOptions } from './host.js';

const ANY = true as never;

/** A loop that calls a tool which throws. */
function throwing(thrown: unknown) {
  const charge = defineLoop({
    id: 'charge',
    input: ANY,
    output: ANY,
    safety: 'idempotent',
    tool: () => {
      throw thrown;
    },
  });
  return defineLoop({ id: 'order', input: ANY, output: ANY, run: (input, scope) => scope.call(charge, input) });
}

const run = (thrown: unknown, options: Partial<HostOptions> = {}): Promise<TurnResult> =>
  hostWith(options).run({ loop: throwing(thrown), input: {} as never });

/** Returns the error of a failed turn. */
function errorOf(result: TurnResult | undefined): ResultError {
  if (result?.status !== 'error') throw new Error(`The turn has the status ${result?.status}.`);
  return result.error;
}

function hostWith(options: Partial<HostOptions>): Host {
  const defaults = { store: memoryStore(), clock: new ManualClock(1), ids: seededIds(1), registry: new Registry() };
  return new Host({ ...defaults, ...options });
}

function declined(): Error {
  return new TypeError('The card was declined.', { cause: new RangeError('too much') });
}

verifies('turn.errors', 'the error of a turn has the thrown error as its cause, outside of its JSON', async () => {
  const thrown = declined();
  const error = errorOf(await run(thrown));
  expect(error.cause).toBe(thrown);
  expect(JSON.stringify(error)).not.toContain('"cause"');
  expect(Object.keys(error)).toEqual(['code', 'message', 'details', 'stack']);
});

verifies('turn.errors', 'the stack begins in the code of the user, live and after a restart', async () => {
  const store = memoryStore();
  const live = await run(declined(), { store });
  const stack = errorOf(live).stack ?? '';
  expect(firstLocationOf(stack)).toMatch(/src\/host\/errors\.test\.ts:\d+:\d+$/);
  expect(stack).toMatch(/^TypeError: The card was declined\.\n {4}at declined /);
  expect(stack).toContain('Caused by: RangeError: too much\n    at declined ');
  expect(stack).not.toMatch(/src\/(?:kernel|loops|base)\/[\w-]+\.ts|node:internal/);
  const host = hostOf([], { store });
  expect(errorOf(await host.archive.result(live.turnId))).toEqual({ ...errorOf(live) });
  expect((await host.archive.status(live.turnId))[0]?.error?.stack).toBe(stack);
  expect(errorOf(await host.archive.result(live.turnId)).cause).toBeUndefined();
});

verifies(
  'turn.errors',
  'a body gets the cause of a call that failed, and only the stack when it is replayed',
  async () => {
    const thrown = declined();
    const seen: { cause: unknown; stack: string | undefined }[] = [];
    const inner = throwing(thrown);
    const outer = defineLoop({
      id: 'outer',
      input: ANY,
      output: ANY,
      run: async (input, scope) => {
        await scope
          .call(inner, input)
          .catch((error: LoopError) => seen.push({ cause: error.cause, stack: error.stack }));
        return scope.wait('go') as never;
      },
    });
    const host = hostWith({});
    const { turnId } = await host.run({ loop: outer, input: {} as never });
    await host.resume(turnId);
    expect(seen[0]?.cause).toBe(thrown);
    expect(seen[1]).toEqual({ cause: undefined, stack: seen[0]?.stack });
    expect(firstLocationOf(seen[1]?.stack ?? '')).toContain('errors.test.ts');
  },
);

verifies('turn.errors', 'the operator redacts or omits stacks, in the journal and in the result', async () => {
  const store = memoryStore();
  const options = { store, errorStacks: (stack: string) => stack.replaceAll('declined', '…') };
  const redacted = await run(declined(), options);
  const { turnId } = redacted;
  expect(errorOf(redacted).stack).toContain('The card was ….');
  const entries = await hostOf([], { store }).archive.entries(turnId.split('.')[0] ?? '');
  expect(entries.flatMap((entry) => entry.error?.stack ?? []).join()).not.toContain('declined');
  for (const errorStacks of [
    () => undefined,
    () => 5 as never,
    (): never => {
      throw new Error('no');
    },
  ]) {
    const omitted = errorOf(await run(declined(), { errorStacks }));
    expect(omitted).toMatchObject({ code: 'TOOL_FAILED', message: 'The card was declined.' });
    expect(omitted.stack).toBeUndefined();
    expect(omitted.cause).toBeInstanceOf(TypeError);
  }
});

verifies(
  'turn.errors',
  'errors whose properties cannot be read, and values that are not errors, end a turn like others',
  async () => {
    const trap = (name: string): unknown =>
      Object.defineProperty(new Error('a trap'), name, {
        get() {
          throw new Error('read');
        },
      });
    const endless = new Error('endless');
    endless.cause = endless;
    const { proxy, revoke } = Proxy.revocable(new Error('gone'), {});
    revoke();
    const values = [
      ...['stack', 'cause', 'name', 'message'].map(trap),
      endless,
      proxy,
      'text',
      null,
      undefined,
      { stack: 5 },
    ];
    for (const thrown of values) {
      const error = errorOf(await run(thrown));
      expect(error.code).toBe('TOOL_FAILED');
      expect(error.stack?.length ?? 0).toBeLessThanOrEqual(4000);
    }
  },
);

verifies('turn.errors', 'an outcome of the runtime has no stack, and a LoopError of the user has one', async () => {
  const strict = defineLoop({ id: 'strict', input: { type: 'number' } as const, output: ANY, run: () => 1 as never });
  const error = errorOf(await hostWith({}).run({ loop: strict, input: 'text' as never }));
  expect(error).toMatchObject({ code: 'INPUT_VALIDATION_FAILED' });
  expect(error.stack).toBeUndefined();
  const own = errorOf(await run(new LoopError('OUT_OF_STOCK', 'No lamp is left.')));
  expect(own).toMatchObject({ code: 'OUT_OF_STOCK' });
  expect(firstLocationOf(own.stack ?? '')).toContain('errors.test.ts');
});

verifies('turn.errors', 'a LoopError has the HTTP status of its code, and 500 for a code of the user', () => {
  expect(new LoopError('TURN_NOT_FOUND', 'x').httpStatus).toBe(404);
  expect(new LoopError('toString', 'x').httpStatus).toBe(500);
});
