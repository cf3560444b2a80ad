/** A script: it runs one turn, prints the result and ends. */
import assert from 'node:assert/strict';
import { createRondo } from 'rondo';
import { invoice, outbox } from './loops.mjs';

const rondo = await createRondo({ store: 'memory:' });
const result = await rondo.runTurn({ loop: invoice, input: { number: 'A-1', hours: 2 } });
await rondo.close();

assert.equal(result.status, 'ok');
assert.deepEqual(result.output, { sent: 'A-1' });
assert.deepEqual(outbox, ['A-1']);
console.log('script: sent', result.output.sent);
