// The AI SDK has no durable execution, so this program does not use it, and it loses everything when its process ends:
// the timer, the signal, and which of the two services was already called.
import { EventEmitter, once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import { reserve, ship } from '../shared/services.js';

const paid = z.object({ amount: z.number() });
const signals = new EventEmitter();

async function retry<T>(attempts: number, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (attempts <= 1) throw error;
    return retry(attempts - 1, run);
  }
}

async function order(input: { sku: string }) {
  const signal = once(signals, 'paid');
  await setTimeout(1000);
  const { amount } = paid.parse((await signal)[0]);
  const [stock, courier] = await Promise.all([retry(3, () => reserve(input.sku, amount)), ship(input.sku)]);
  return { ...stock, ...courier };
}

const result = order({ sku: 'lamp' });
signals.emit('paid', { amount: 5 });
const { reservation, parcel } = await result;
console.log(reservation, parcel);
