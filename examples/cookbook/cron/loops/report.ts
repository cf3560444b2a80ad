import { defineLoop } from 'rondo';
import { z } from 'zod';

const countOrders = defineLoop({
  id: 'count-orders',
  input: z.object({ day: z.string() }),
  output: z.number(),
  safety: 'idempotent', // It only reads, so it runs again after a crash.
  tool: ({ day }) => day.length, // Replace it with a query.
});

const sendReport = defineLoop({
  id: 'send-report',
  input: z.object({ day: z.string(), orders: z.number() }),
  output: z.object({ sent: z.boolean() }),
  safety: 'keyed', // The mail service drops a second mail with the same idempotency key.
  tool: (_report, { idempotencyKey }) => ({ sent: idempotencyKey !== '' }),
});

export const report = defineLoop({
  id: 'report',
  input: z.object({ day: z.string() }),
  output: z.object({ sent: z.boolean() }),
  run: async ({ day }, scope) => {
    const orders = await scope.call(countOrders, { day });
    return scope.call(sendReport, { day, orders });
  },
});
