// The approval is a message: a program that must survive a restart stores the messages itself.
import { type ModelMessage, type ToolApprovalResponse, ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { model } from '../shared/model.js';

const refund = tool({
  description: 'Refunds an order',
  inputSchema: z.object({ order: z.string() }),
  needsApproval: true,
  execute: ({ order }) => ({ refunded: order }),
});
const support = new ToolLoopAgent({ model, tools: { refund } });

const messages: ModelMessage[] = [{ role: 'user', content: 'My lamp broke. Refund order A-1.' }];
const first = await support.generate({ messages });
const approvals: ToolApprovalResponse[] = [];
for (const part of first.content) {
  if (part.type === 'tool-approval-request') {
    approvals.push({ type: 'tool-approval-response', approvalId: part.approvalId, approved: true });
  }
}
messages.push(...first.response.messages, { role: 'tool', content: approvals });
const { text } = await support.generate({ messages });
console.log(text);
