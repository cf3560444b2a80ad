// An MCP server with two tools, over stdio: each line is a message of JSON-RPC.
import { createInterface } from 'node:readline';

const properties = { text: { type: 'string' } };
const tools = [
  { name: 'list_notes', description: 'Lists the notes.', inputSchema: { type: 'object' } },
  { name: 'add_note', description: 'Adds a note.', inputSchema: { type: 'object', properties, required: ['text'] } },
];

/** @type {string[]} */
const notes = [];

/** @param {{ method: string, params: { name: string, arguments: { text: string }, protocolVersion: string } }} request */
function resultOf({ method, params }) {
  if (method === 'initialize') {
    const serverInfo = { name: 'notes', version: '1.0.0' };
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === 'tools/list') return { tools };
  if (method !== 'tools/call') return undefined;
  if (params.name === 'add_note') notes.push(params.arguments.text);
  return { content: [{ type: 'text', text: JSON.stringify(notes) }] };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.id === undefined) continue; // a notification
  const result = resultOf(request);
  const answer = result === undefined ? { error: { code: -32601, message: 'Method not found' } } : { result };
  console.log(JSON.stringify({ jsonrpc: '2.0', id: request.id, ...answer }));
}
