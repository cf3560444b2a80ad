import { defineAgent, defineLoop, tool } from 'rondo';
import { z } from 'zod';

/** The payment service, which tests replace. */
export const payments = {
  refund: async (order: string, amount: number): Promise<string> => `re_${order}_${amount}`,
};

const refund = tool({
  name: 'refund',
  inputSchema: z.object({ order: z.string(), amount: z.number() }),
  approval: 'ask',
  execute: ({ order, amount }) => payments.refund(order, amount),
});

// The model is named by text, so that tests can replace its provider.
export const support = defineAgent({ id: 'support', model: 'anthropic:claude-sonnet-4-5', tools: { refund } });

export const remind = defineLoop({
  id: 'remind',
  input: z.object({ order: z.string() }),
  output: z.object({ text: z.string() }),
  run: async ({ order }, scope) => {
    await scope.sleep('3 days');
    return { text: `How do you like order ${order}?` };
  },
});
