import { createRondo, defineLoop, defineSignal } from 'rondo';
import { z } from 'zod';
import { reserve, ship } from '../shared/services.js';

const paid = defineSignal('paid', z.object({ amount: z.number() }));
const order = defineLoop({
  id: 'order',
  input: z.object({ sku: z.string() }),
  output: z.object({ reservation: z.string(), parcel: z.string() }),
  run: async ({ sku }, scope) => {
    await scope.sleep('1 second');
    const { amount } = await scope.wait(paid);
    const [stock, courier] = await scope.all([
      (s) =>
        s.effect('reserve', () => reserve(sku, amount), { safety: 'idempotent', policy: { retry: { attempts: 3 } } }),
      (s) => s.effect('ship', () => ship(sku)),
    ]);
    return { ...stock, ...courier };
  },
});

const rondo = await createRondo();
const turn = await rondo.start(order, { sku: 'lamp' });
await turn.signal(paid, { amount: 5 });
const { reservation, parcel } = await turn.output();
console.log(reservation, parcel);
await rondo.close();
