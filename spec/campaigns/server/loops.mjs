// The loops of the server. Their effects reach the sink whose socket is in the environment variable CAMPAIGN_SINK; a
// process connects to it when it performs its first effect.

import { defineLoop, defineSignal } from 'rondo';
import { connectSink } from '../sink-client.mjs';

const TEXT = /** @type {const} */ ({ type: 'string' });

/** The input of a turn: its name in the sink, and the time that it sleeps. */
const ORDER = /** @type {const} */ ({
  type: 'object',
  properties: { name: { type: 'string' }, ms: { type: 'integer' } },
  required: ['name', 'ms'],
});

export const paid = defineSignal('paid', {
  type: 'object',
  properties: { amount: { type: 'integer' } },
  required: ['amount'],
});

/** @type {Promise<import('../sink-client.mjs').Perform> | undefined} */
let connection;

/** Performs an effect in the sink. */
export const deliver = defineLoop({
  id: 'deliver',
  input: { type: 'object', properties: { turn: TEXT, step: TEXT }, required: ['turn', 'step'] },
  output: TEXT,
  safety: 'keyed',
  tool: async ({ turn, step }, { idempotencyKey: key }) => {
    connection ??= connectSink(process.env.CAMPAIGN_SINK ?? '');
    const perform = await connection;
    return perform({ turn, step, safety: 'keyed', key });
  },
});

/** Sleeps, then performs an effect. */
export const delivery = defineLoop({
  id: 'delivery',
  input: ORDER,
  output: TEXT,
  run: async ({ name, ms }, scope) => {
    await scope.sleep(ms);
    return scope.call(deliver, { turn: name, step: 'parcel' });
  },
});

/** Waits for the signal `paid`, sleeps, then performs an effect. */
export const payment = defineLoop({
  id: 'payment',
  input: ORDER,
  output: TEXT,
  run: async ({ name, ms }, scope) => {
    await scope.wait(paid);
    if (ms > 0) await scope.sleep(ms);
    return scope.call(deliver, { turn: name, step: 'parcel' });
  },
});
