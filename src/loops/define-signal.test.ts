import { expect, expectTypeOf } from 'vitest';
import { z } from 'zod';
import { verifies } from '../../spec/verifies.js';
import type { SignalRequest } from '../host/host.js';
import type { Scope, SignalType } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import { defineSignal } from './define-signal.js';

verifies('kernel.signal.type', 'a signal validates its payload with a Standard Schema or a JSON Schema', () => {
  const paid = defineSignal('paid', z.object({ amount: z.coerce.number(), at: z.string().default('now') }));
  expect(paid.name).toBe('paid');
  expect(paid.schema).toMatchObject({ type: 'object' });
  expect(paid.validate({ amount: '5' })).toEqual({ amount: 5, at: 'now' });
  const refusal = expect.objectContaining({
    code: 'INPUT_VALIDATION_FAILED',
    message: expect.stringMatching(/^The payload of signal "paid" does not fit its schema: \/amount .+\.$/),
    data: { errors: [expect.objectContaining({ path: '/amount' })] },
  });
  expect(() => paid.validate({ amount: 'five' })).toThrow(refusal);
  const json = defineSignal('done', { type: 'object', required: ['id'] });
  expect(json.validate({ id: 1 })).toEqual({ id: 1 });
  for (const payload of [{}, null, undefined])
    expect(() => json.validate(payload)).toThrow(/The payload of signal "done" does not fit its schema/);
});

verifies('kernel.signal.type', 'a signal without a usable name or schema cannot be defined', () => {
  for (const name of ['', ' ', 'x'.repeat(201), 'steer', 'queue', 'approval 1', 7 as unknown as string])
    expect(() => defineSignal(name, true), String(name)).toThrow(
      expect.objectContaining({ code: 'DEFINITION_INVALID', message: expect.stringContaining('defineSignal(') }),
    );
  expect(() => defineSignal('x', { type: 'nonsense' })).toThrow(
    expect.objectContaining({ code: 'DEFINITION_INVALID' }),
  );
});

verifies('kernel.signal.type', 'an asynchronous schema is an error of the code, not of the payload', () => {
  const slow = defineSignal(
    'slow',
    z.string().refine(async () => true),
  );
  expect(() => slow.validate('x')).toThrow(expect.objectContaining({ code: 'DEFINITION_INVALID' }));
});

verifies('types.signal', 'the types of a payload are inferred by waits, and checked for senders', () => {
  const paid = defineSignal('paid', z.object({ amount: z.coerce.number<string>(), at: z.string().default('now') }));
  expectTypeOf(paid).toEqualTypeOf<
    SignalType<{ amount: number; at: string }, { amount: string; at?: string | undefined }>
  >();
  const waits = async (scope: Scope) => {
    expectTypeOf(await scope.wait(paid)).toEqualTypeOf<{ amount: number; at: string }>();
    expectTypeOf(await scope.wait('paid')).toEqualTypeOf<Json | undefined>();
    const payment = await scope.race([(s) => s.wait(paid), (s) => s.sleep('3 days')]);
    expectTypeOf(payment?.amount).toEqualTypeOf<number | undefined>();
    // @ts-expect-error: the payload has no such member.
    (await scope.wait(paid)).sum;
  };
  expect(waits).toBeTypeOf('function');
  const send = <P = unknown>(request: SignalRequest<P>): SignalRequest<P> => request;
  send({ turnId: 't', name: paid, payload: { amount: '5' } });
  send({ turnId: 't', name: 'paid', payload: { anything: true } });
  // @ts-expect-error: the amount of a sender is text.
  send({ turnId: 't', name: paid, payload: { amount: 5 } });
});
