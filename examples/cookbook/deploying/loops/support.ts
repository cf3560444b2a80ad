import { fileURLToPath } from 'node:url';
import { defineAgent, tool } from 'rondo';
import { z } from 'zod';

const refund = tool({
  name: 'refund',
  inputSchema: z.object({ order: z.string() }),
  approval: 'ask',
  execute: ({ order }) => ({ refunded: order }),
});

export const support = defineAgent({
  id: 'support',
  version: '1.0.0',
  model: { id: 'scripted', model: fileURLToPath(new URL('support.script.json', import.meta.url)) },
  instructions: 'Be brief.',
  tools: { refund },
});
