import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRondo } from 'rondo';
import { ManualClock, scriptedProvider } from 'rondo/testing';
import { expect, test, vi } from 'vitest';
import { payments, remind, support } from './support.js';

const refundCall = { toolCalls: [{ name: 'refund', args: { order: 'A-17', amount: 19 } }] };

test('support: refunds once, after an approval and not before', async () => {
  using refund = vi.spyOn(payments, 'refund');
  const anthropic = scriptedProvider([refundCall, { text: 'Refunded.' }]);
  await using rondo = await createRondo({ store: 'memory:', models: { anthropic } });

  const turn = await rondo.start(support, 'My lamp A-17 is broken.');
  expect(await turn.result()).toMatchObject({ status: 'paused' });
  expect(refund).not.toHaveBeenCalled();

  const [approval] = await turn.approvals();
  expect(approval).toMatchObject({ tool: 'support.refund', arguments: { order: 'A-17', amount: 19 } });
  await approval?.approve({ by: 'bob' });
  expect(await turn.output()).toEqual({ text: 'Refunded.' });
  expect(refund).toHaveBeenCalledExactlyOnceWith('A-17', 19);
  expect(anthropic.unfinishedScripts()).toEqual([]); // The model was called as often as the script says.
});

test('support: refunds nothing after a denial, and the model reads the reason', async () => {
  using refund = vi.spyOn(payments, 'refund');
  const anthropic = scriptedProvider([refundCall, { expect: 'The order is too old.', text: 'Sorry.' }]);
  await using rondo = await createRondo({ store: 'memory:', models: { anthropic } });

  const turn = await rondo.start(support, 'My lamp A-17 is broken.');
  for (const approval of await turn.approvals()) await approval.deny({ by: 'bob', reason: 'The order is too old.' });
  expect(await turn.output()).toEqual({ text: 'Sorry.' });
  expect(refund).not.toHaveBeenCalled();
});

test('support: refunds once, although the process restarts and the request is repeated', async () => {
  using refund = vi.spyOn(payments, 'refund');
  const data = mkdtempSync(join(tmpdir(), 'support-test-'));
  const open = () =>
    createRondo({ data, models: { anthropic: scriptedProvider([refundCall, { text: 'Refunded.' }]) } });

  await using first = await open();
  const { id } = await first.start(support, 'My lamp A-17 is broken.', { key: 'case-7' });
  await first.turn(id).result();
  await first.close();

  await using second = await open();
  const turn = second.turn(id, support);
  for (const approval of await turn.approvals()) await approval.approve({ by: 'bob' });
  expect(await turn.output()).toEqual({ text: 'Refunded.' });
  expect(await second.output(support, 'My lamp A-17 is broken.', { key: 'case-7' })).toEqual({ text: 'Refunded.' });
  expect(refund).toHaveBeenCalledTimes(1);
});

test('remind: asks after three days', async () => {
  const clock = new ManualClock(Date.parse('2030-01-01'));
  await using rondo = await createRondo({ store: 'memory:', clock });
  const turn = await rondo.start(remind, { order: 'A-17' });
  const pending = [{ kind: 'timer', until: '2030-01-04T00:00:00.000Z' }];
  expect(await turn.result()).toMatchObject({ status: 'paused', pending });
  await clock.advance(3 * 24 * 60 * 60 * 1000);
  await rondo.resume(turn.id); // In production a worker does.
  expect(await turn.output()).toEqual({ text: 'How do you like order A-17?' });
});
