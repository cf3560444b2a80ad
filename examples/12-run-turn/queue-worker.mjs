/**
 * The worker of a queue: it runs one turn for each message. A queue delivers a message again if it was not acknowledged,
 * so the id of the message is the key of the turn, and a second delivery returns the recorded result.
 */
import assert from 'node:assert/strict';
import { createRondo } from 'rondo';
import { invoice, outbox } from './loops.mjs';

/** A queue in memory. It delivers the message `m-2` twice, as if an acknowledgement had been lost. */
const messages = [
  { id: 'm-1', body: '{"loop":"invoice","input":{"number":"B-1","hours":1}}' },
  { id: 'm-2', body: '{"loop":"invoice","input":{"number":"B-2","hours":3}}' },
  { id: 'm-2', body: '{"loop":"invoice","input":{"number":"B-2","hours":3}}' },
  { id: 'm-3', body: '{"loop":"invoice","input":{"number":"B-3","hours":-1}}' },
];

const rondo = await createRondo({ store: 'memory:', loops: [invoice] });
const results = [];
for (let message = messages.shift(); message !== undefined; message = messages.shift()) {
  const request = { ...JSON.parse(message.body), key: message.id };
  results.push(await rondo.runTurn(request));
}
await rondo.close();

assert.deepEqual(
  results.map(({ status }) => status),
  ['ok', 'ok', 'ok', 'error'],
);
assert.equal(new Set(results.map(({ turnId }) => turnId)).size, 3, 'the second delivery started another turn');
assert.deepEqual(outbox, ['B-1', 'B-2'], 'an invoice was sent twice');
console.log('queue worker: sent', outbox.join(', '));
