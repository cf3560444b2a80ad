import { defineLoop, defineSignal } from 'rondo';
import { z } from 'zod';

export const paid = defineSignal('paid', z.object({ amount: z.number() }));

const ship = defineLoop({
  id: 'ship',
  input: z.object({ sku: z.string() }),
  output: z.object({ parcel: z.string() }),
  safety: 'keyed',
  tool: ({ sku }) => ({ parcel: `${sku}-1` }),
});

export const order = defineLoop({
  id: 'order',
  input: z.object({ sku: z.string() }),
  output: z.object({ parcel: z.string() }),
  run: async ({ sku }, scope) => {
    await scope.wait(paid);
    await scope.sleep('1 second');
    return scope.call(ship, { sku });
  },
});
