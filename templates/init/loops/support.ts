import { fileURLToPath } from 'node:url';
import { defineAgent, tool } from 'rondo';
import { z } from 'zod';

/** A tool that a person has to approve: the turn pauses until `rondo approve` or `rondo deny`. */
const refund = tool({
  name: 'refund',
  description: 'Refunds an order.',
  inputSchema: z.object({ order: z.string(), cents: z.number().int().positive() }),
  approval: 'ask',
  execute: async ({ order, cents }) => ({ order, refundedCents: cents }),
});

// The answers of this model are in a file, so the agent runs without a key. For a real model, install its package and
// write its name instead: npm install @ai-sdk/anthropic@3, and model: 'anthropic:claude-sonnet-4-5'
const script = fileURLToPath(new URL('support.script.json', import.meta.url));

/** An agent with one tool. */
export const support = defineAgent({
  id: 'support',
  description: 'Answers customers and refunds orders.',
  model: { id: 'scripted', model: script },
  instructions: 'You are a friendly support agent. Refund an order if the customer received a broken item.',
  tools: { refund },
});
