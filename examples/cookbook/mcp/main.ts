import { fileURLToPath } from 'node:url';
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { createRondo, defineAgent } from 'rondo';
import { scriptedProvider } from 'rondo/testing';

const server = fileURLToPath(new URL('notes-server.mjs', import.meta.url));
const transport = new Experimental_StdioMCPTransport({ command: process.execPath, args: [server] });
const client = await createMCPClient({ transport });

const secretary = defineAgent({
  id: 'secretary',
  model: 'anthropic:claude-sonnet-4-5',
  tools: await client.tools(),
  approvals: { '*': 'ask' }, // Whatever tools the server has, now or after an update, every call asks.
});

// This program replaces the model by a script, so that it runs without a key.
const anthropic = scriptedProvider([
  { toolCalls: [{ name: 'list_notes' }, { name: 'add_note', args: { text: 'buy a lamp' } }] },
  { expect: 'buy a lamp', text: 'Noted.' },
]);
const rondo = await createRondo({ models: { anthropic } });

const turn = await rondo.start(secretary, 'Remind me to buy a lamp.');
console.log((await turn.result()).status); // paused
for (const approval of await turn.approvals()) {
  console.log(approval.tool, approval.arguments);
  // secretary.list_notes {}
  // secretary.add_note { text: 'buy a lamp' }
  await approval.approve({ by: 'ada' });
}
console.log(await turn.output()); // { text: 'Noted.' }

await rondo.close();
await client.close();
