import { fileURLToPath } from 'node:url';
import { defineAgent, tool } from 'rondo';
import { z } from 'zod';

export const refund = tool({
  name: 'refund',
  description: 'Refunds an order.',
  inputSchema: z.object({ order: z.string(), amount: z.number() }),
  requestApproval: ({ order, amount }) => `Refund ${amount} for order ${order}?`,
  execute: ({ order, amount }) => ({ order, refunded: amount }),
});

// Replies from a file, so that this runs without a key. In production: model: 'anthropic:claude-sonnet-4-5'
const script = fileURLToPath(new URL('support.script.json', import.meta.url));

export const support = defineAgent({
  id: 'support',
  model: { id: 'scripted', model: script },
  instructions: 'You answer customers of a lamp shop.',
  tools: { refund },
});
