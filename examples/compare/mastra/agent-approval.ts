import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { LibSQLStore } from '@mastra/libsql';
import { z } from 'zod';
import { model } from './model.js';

const refund = createTool({
  id: 'refund',
  description: 'Refunds an order',
  inputSchema: z.object({ order: z.string() }),
  requireApproval: true,
  execute: async ({ context }) => ({ refunded: context.order }),
});
const support = new Agent({ name: 'support', instructions: 'Help customers.', model: model, tools: { refund } });
const mastra = new Mastra({ agents: { support }, storage: new LibSQLStore({ url: 'file:mastra.db' }) });

const agent = mastra.getAgent('support');
const stream = await agent.stream('My lamp broke. Refund order A-1.');
for await (const chunk of stream.fullStream) {
  if (chunk.type === 'tool-call-approval') {
    const resumed = await agent.approveToolCall({ runId: stream.runId });
    console.log(await resumed.text);
  }
}
