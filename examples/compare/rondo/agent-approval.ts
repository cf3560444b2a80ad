import { createRondo, defineAgent, tool } from 'rondo';
import { z } from 'zod';
import { model } from '../shared/model.js';

const refund = tool({
  name: 'refund',
  description: 'Refunds an order',
  inputSchema: z.object({ order: z.string() }),
  approval: 'ask',
  execute: ({ order }) => ({ refunded: order }),
});
const support = defineAgent({ id: 'support', model, tools: { refund } });

const rondo = await createRondo();
const turn = await rondo.start(support, 'My lamp broke. Refund order A-1.');
for (const approval of await turn.approvals()) await approval.approve({ by: 'ada' });
const { text } = await turn.output();
console.log(text);
await rondo.close();
