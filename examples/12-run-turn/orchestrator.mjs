/**
 * Another orchestrator: it has a schedule and dependencies of its own, and Rondo runs the turns. Each job is a turn under
 * a key of the day, so a day that is run again after a crash repeats nothing.
 */
import assert from 'node:assert/strict';
import { createRondo } from 'rondo';
import { invoice, outbox } from './loops.mjs';

const jobs = [
  { name: 'C-2', after: ['C-1'], hours: 4 },
  { name: 'C-1', after: [], hours: 1 },
  { name: 'C-3', after: ['C-1', 'C-2'], hours: 2 },
];

/**
 * Runs the jobs of a day, each as soon as those before it are done.
 * @param {import('rondo').Rondo} rondo
 * @param {string} day
 */
async function runDay(rondo, day) {
  const done = new Map();
  while (done.size < jobs.length) {
    const ready = jobs.filter(({ name, after }) => !done.has(name) && after.every((other) => done.has(other)));
    assert.notEqual(ready.length, 0, 'the jobs wait for each other');
    await Promise.all(
      ready.map(async ({ name, hours }) => {
        const request = { loop: invoice, input: { number: `${day}/${name}`, hours }, key: `${day}/${name}` };
        done.set(name, await rondo.runTurn(request));
      }),
    );
  }
  return [...done.values()];
}

const rondo = await createRondo({ store: 'memory:' });
const first = await runDay(rondo, 'monday');
const again = await runDay(rondo, 'monday');
await rondo.close();

assert.ok([...first, ...again].every(({ status }) => status === 'ok'));
assert.deepEqual(
  again.map(({ turnId }) => turnId),
  first.map(({ turnId }) => turnId),
);
assert.deepEqual(outbox, ['monday/C-1', 'monday/C-2', 'monday/C-3']);
console.log('orchestrator: sent', outbox.join(', '));
