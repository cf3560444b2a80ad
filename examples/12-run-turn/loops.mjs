/** The loop of the three programs: it writes an invoice and sends it. The outbox stands for the outside world. */
import { defineLoop } from 'rondo';
import { z } from 'zod';

/**
 * The invoices that were sent.
 * @type {string[]}
 */
export const outbox = [];

const send = defineLoop({
  id: 'send',
  input: z.object({ number: z.string(), cents: z.number() }),
  output: z.object({ sent: z.string() }),
  safety: 'keyed',
  tool: ({ number }) => {
    outbox.push(number);
    return { sent: number };
  },
});

export const invoice = defineLoop({
  id: 'invoice',
  input: z.object({ number: z.string(), hours: z.number().positive() }),
  output: z.object({ sent: z.string() }),
  run: ({ number, hours }, scope) => scope.call(send, { number, cents: hours * 9000 }),
});
