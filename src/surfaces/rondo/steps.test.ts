// Steps of a loop in code as programs write them: effects as functions, and agents that a loop calls.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { z } from 'zod';
import { replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { createRondo, defineAgent, defineLoop, NonRetryableError, type Scope, tool } from '../../index.js';

const newStore = (): string => `sqlite:${join(mkdtempSync(join(tmpdir(), 'rondo-')), 'journal.db')}`;
const loopOf = (run: (input: unknown, scope: Scope) => unknown) =>
  defineLoop({ id: 'main', input: true, output: true, run });

verifies('scope.effect', 'an effect is a name and a function; its result is recorded once', async () => {
  const store = newStore();
  let performed = 0;
  const keys: string[] = [];
  const main = loopOf(async (_, scope) => {
    const stock = await scope.effect('reserve', ({ idempotencyKey }) => {
      keys.push(idempotencyKey);
      return { left: ++performed };
    });
    await scope.wait('go');
    return stock.left;
  });
  const first = await createRondo({ store });
  const { id } = await first.start(main, null);
  expect(await first.turn(id).result()).toMatchObject({ status: 'paused' });
  await first.close();
  await using second = await createRondo({ store });
  await second.turn(id, main).signal('go');
  expect(await second.turn(id, main).output()).toBe(1);
  expect(performed).toBe(1);
  expect(keys[0]).not.toBe('');
});

verifies(
  'scope.effect',
  'its policy retries, unless the safety is once or the error says that no retry helps',
  async () => {
    await using rondo = await createRondo({ store: 'memory:' });
    const attemptsOf = async (safety: 'idempotent' | 'once' | undefined, error: Error): Promise<number> => {
      let attempts = 0;
      const policy = { retry: { attempts: 3, backoffMs: 1 } };
      const fail = (): never => {
        attempts += 1;
        throw error;
      };
      const main = loopOf((_, scope) => scope.effect('reserve', fail, { ...(safety && { safety }), policy }));
      expect(await rondo.run(main, null)).toMatchObject({ status: 'error' });
      return attempts;
    };
    expect(await attemptsOf('idempotent', new Error('busy'))).toBe(3);
    expect(await attemptsOf('idempotent', new NonRetryableError('unknown sku'))).toBe(1);
    expect(await attemptsOf('once', new Error('busy'))).toBe(1);
    expect(await attemptsOf(undefined, new Error('busy'))).toBe(1);
  },
);

verifies('scope.effect', 'its timeout aborts the signal and ends the effect', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  let isAborted = false;
  const main = loopOf((_, scope) =>
    scope.effect(
      'hang',
      ({ signal }) =>
        new Promise(() =>
          signal.addEventListener('abort', () => {
            isAborted = true;
          }),
        ),
      { policy: { timeoutMs: 20 } },
    ),
  );
  expect(await rondo.run(main, null)).toMatchObject({ status: 'error', error: { code: 'TIMEOUT' } });
  expect(isAborted).toBe(true);
});

verifies('scope.effect', 'a missing function and an unknown option are refused by name', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  const messageOf = async (...args: unknown[]): Promise<string> => {
    const main = loopOf((_, scope) => (scope.effect as (...all: unknown[]) => unknown).apply(scope, args));
    const result = await rondo.run(main, null);
    return result.status === 'error' ? result.error.message : '';
  };
  expect(await messageOf('reserve')).toContain('The effect "reserve" needs a function');
  expect(await messageOf('reserve', () => 1, { retry: 3 })).toContain('An effect has no option "retry"');
  expect(await messageOf('reserve', () => 1, { policy: { retries: 3 } })).toContain('no "retries"');
});

const refund = tool({
  name: 'refund',
  inputSchema: z.object({ order: z.string() }),
  approval: 'ask',
  execute: ({ order }) => ({ refunded: order }),
});
const replies = () => replyProvider([{ calls: [['refund', { order: 'o-7' }]] }, { text: 'Done.' }]);
const support = defineAgent({ id: 'support', model: 'test', tools: { refund } });
const ticket = defineLoop({
  id: 'ticket',
  input: z.object({ problem: z.string() }),
  output: z.object({ answer: z.string() }),
  run: async ({ problem }, scope) => {
    const { text } = await scope.call(support, { prompt: problem });
    return { answer: text };
  },
});

verifies('agent.call', 'a loop calls an agent that is not registered, and another process continues it', async () => {
  const store = newStore();
  const first = await createRondo({ store, models: { test: replies() } });
  const { id } = await first.start(ticket, { problem: 'My lamp broke.' });
  expect(await first.turn(id).result()).toMatchObject({ status: 'paused', pending: [{ kind: 'approval' }] });
  await first.close();
  await using second = await createRondo({ store, models: { test: replies() } });
  const turn = second.turn(id, ticket);
  for (const approval of await turn.approvals()) {
    expect(approval).toMatchObject({ tool: 'support.refund', path: ['ticket', 'support', 'support.refund'] });
    await approval.approve({ by: 'ada' });
  }
  expect(await turn.output()).toEqual({ answer: 'Done.' });
});

verifies('agent.call', 'an agent that a loop calls does not replace a newer one of the same version', async () => {
  await using rondo = await createRondo({ store: 'memory:', models: { test: replies() } });
  const turn = await rondo.start(ticket, { problem: 'My lamp broke.' });
  await turn.approvals();
  const newer = defineAgent({ id: 'support', model: 'test', tools: { refund }, instructions: 'Be brief.' });
  rondo.register(newer);
  for (const approval of await turn.approvals()) await approval.approve({ by: 'ada' });
  await turn.output();
  expect(rondo.host.registry.find('support')?.definedLoop).toBe(newer);
});
