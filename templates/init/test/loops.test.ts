import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRondo } from 'rondo';
import { greet } from '../loops/greet.js';
import { support } from '../loops/support.js';

test('greet: greets by name', async () => {
  assert.deepEqual(await greet({ name: 'Ada' }), { text: 'Hello Ada!' });
});

test('support: asks before it refunds', async () => {
  const rondo = await createRondo({ store: 'memory:' });
  const turn = await rondo.start(support, 'My lamp from order A-17 arrived broken.');
  const paused = await turn.result();
  assert.equal(paused.status, 'paused');
  for (const approval of await turn.approvals()) await approval.approve({ by: 'ada' });
  assert.match((await turn.output()).text, /refunded 19\.00/);
  await rondo.close();
});
