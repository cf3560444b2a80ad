// The loops of the campaign of closing: turns that finish, fail, wait for an approval, and sleep until they are cancelled.

import { setTimeout as sleep } from 'node:timers/promises';
import { defineLoop } from 'rondo';

const ANY = /** @type {const} */ ({ version: '1.0.0', input: true, output: true });

/** A tool takes a few milliseconds, so that a process closes before, while and after it ends. */
const MAX_MS = 5;

export const finish = defineLoop({
  ...ANY,
  id: 'finish',
  safety: 'idempotent',
  tool: () => sleep(Math.random() * MAX_MS, 'done'),
});
export const fail = defineLoop({
  ...ANY,
  id: 'fail',
  safety: 'idempotent',
  tool: async () => {
    await sleep(Math.random() * MAX_MS);
    throw new Error('broken');
  },
});
export const pay = defineLoop({ ...ANY, id: 'pay', safety: 'once', policy: { approval: 'ask' }, tool: () => 'paid' });
export const nap = defineLoop({ ...ANY, id: 'nap', run: (_, scope) => scope.sleep('9 seconds') });
