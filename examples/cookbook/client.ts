import { setTimeout as sleep } from 'node:timers/promises';
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai';
import type { Approval } from 'rondo';

const [url] = process.argv.slice(2);
const as = (user: string) => ({ 'x-user': user });
const statesOf = (message: UIMessage | undefined) =>
  message?.parts.map((part) => ('state' in part ? `${part.type} ${part.state}` : part.type));

// What useChat does when the customer sends a message. Every run is a new chat.
const chatId = crypto.randomUUID();
const transport = new DefaultChatTransport({ api: `${url}/api/chat`, headers: as('ada') });
const messages: UIMessage[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'My lamp A-17 is broken.' }] }];
const request = { chatId, messages, messageId: undefined, abortSignal: undefined };
const stream = await transport.sendMessages({ ...request, trigger: 'submit-message' });
let reply: UIMessage | undefined;
for await (const message of readUIMessageStream({ stream })) reply = message;
console.log(statesOf(reply)); // [ 'step-start', 'tool-refund approval-requested' ]

// The page of the staff lists the approval and answers it.
const forbidden = await fetch(`${url}/api/approvals`, { headers: as('ada') });
console.log(forbidden.status); // 403
const listed = await fetch(`${url}/api/approvals`, { headers: as('bob') });
const approvals = (await listed.json()) as Approval[];
const { id = '', description } = approvals.find(({ turnId }) => turnId === reply?.id) ?? {};
console.log(description); // Refund 19 for order A-17?
const answered = await fetch(`${url}/api/approvals/${encodeURIComponent(id)}`, {
  method: 'POST',
  headers: { ...as('bob'), 'content-type': 'application/json' },
  body: JSON.stringify({ approved: true }),
});
console.log(answered.status); // 204

// The page of the customer loads the chat again.
let history: UIMessage[] = [];
while (!history.at(-1)?.parts.some(({ type }) => type === 'text')) {
  await sleep(50);
  const response = await fetch(`${url}/api/chat/${chatId}`, { headers: as('ada') });
  history = (await response.json()) as UIMessage[];
}
console.log(history.at(-1)?.parts.at(-1)); // { type: 'text', text: 'I have refunded 19 for order A-17.', … }
