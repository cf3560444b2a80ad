// The React page of the cookbook, rendered against the real handler.

import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Window } from 'happy-dom';
import { act, createElement, type FunctionComponent } from 'react';
import { createRondo } from 'rondo';
import { chatHandler, chatSession, nodeListener, toolKinds, uiMessages } from 'rondo/ai-sdk';
import { expect, onTestFinished } from 'vitest';
import { support } from '../../examples/cookbook/support.js';
import { withGlobalsOf } from '../support/chat-page.mjs';
import { verifies } from '../verifies.js';

type ChatPage = FunctionComponent<{ readonly id: string; readonly api: string }>;
const TIMEOUT_MS = 20_000;

/** Serves the chat and its history. Returns the address of the chat. */
async function serveChat(): Promise<string> {
  const rondo = await createRondo({ store: 'memory:' });
  const chat = chatHandler({ host: rondo, agent: support });
  const listener = nodeListener(async (request) => {
    const [, chatId] = /\/api\/chat\/([^/]+)$/.exec(request.url) ?? [];
    if (chatId === undefined) return chat(request);
    const events = await rondo.events(await chatSession(rondo, { chatId, principal: undefined }));
    return Response.json(uiMessages(events, { kindOf: toolKinds(rondo, support) }));
  });
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await rondo.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/api/chat`;
}

/** Opens the page in a window of its own while `use` runs. */
async function openPage(api: string, use: (page: Window['document']) => Promise<void>): Promise<void> {
  const file = fileURLToPath(new URL('../../examples/cookbook/react/page.tsx', import.meta.url));
  const { ChatPage } = (await import(file)) as { readonly ChatPage: ChatPage };
  const window = new Window({ url: 'http://localhost/' });
  await withGlobalsOf(window, async () => {
    // React looks for input events when it is loaded, so the window must exist.
    const { createRoot } = await import('react-dom/client');
    const root = createRoot(window.document.body as unknown as Parameters<typeof createRoot>[0]);
    await act(async () => root.render(createElement(ChatPage, { id: 'lamp', api })));
    try {
      await use(window.document);
    } finally {
      await act(async () => root.unmount());
    }
  });
}

/** Renders until the page contains a text. */
async function untilShown(page: Window['document'], text: string): Promise<void> {
  for (let waits = 0; !page.body.textContent.includes(text); waits++) {
    if (waits > 1000) throw new Error(`The page does not show "${text}", but: ${page.body.innerHTML}`);
    await act(() => new Promise<void>((resolve) => setTimeout(resolve, 5)));
  }
}

const buttonOf = ({ body }: Window['document'], label: string) =>
  [...body.querySelectorAll('button')].find(({ textContent }) => textContent.trim() === label);

/** Returns whether the input and the button that sends are disabled. */
const isFormDisabled = (page: Window['document']) => [
  page.querySelector('input')?.disabled,
  buttonOf(page, 'Send')?.disabled,
];

/** Renders until a message can be sent. */
async function untilEnabled(page: Window['document']): Promise<void> {
  for (let waits = 0; isFormDisabled(page).includes(true); waits++) {
    if (waits > 1000) throw new Error(`The form stays disabled: ${page.body.innerHTML}`);
    await act(() => new Promise<void>((resolve) => setTimeout(resolve, 5)));
  }
}

async function typeText(page: Window['document'], text: string): Promise<void> {
  const input = page.querySelector('input');
  const { HTMLInputElement, Event } = page.defaultView ?? new Window();
  await act(async () => {
    // React replaces the property on the element; the one of the prototype is what a keyboard changes.
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set?.call(input, text);
    input?.dispatchEvent(new Event('input', { bubbles: true }));
  });
}

async function sendMessage(page: Window['document'], text: string): Promise<void> {
  await typeText(page, text);
  await act(async () => buttonOf(page, 'Send')?.click());
}

verifies(
  'docs.cookbook',
  'react: the page asks for an approval, continues after the answer, and shows the same when it is loaded again',
  async () => {
    const api = await serveChat();
    await openPage(api, async (page) => {
      await untilShown(page, 'Send');
      await sendMessage(page, 'My lamp A-17 is broken.');
      await untilShown(page, 'Approve');
      expect(page.querySelector('legend')?.textContent).toBe('Refund 19 for order A-17?');
      expect(isFormDisabled(page)).toEqual([true, true]);
    });
    let shown = '';
    await openPage(api, async (page) => {
      await untilShown(page, 'Approve');
      await typeText(page, 'Hello?');
      expect(isFormDisabled(page)).toEqual([true, true]);
      await act(async () => buttonOf(page, 'Approve')?.click());
      await untilShown(page, 'I have refunded');
      await untilEnabled(page);
      shown = page.body.textContent;
      expect(shown).toContain('Refunded: 19');
      expect(page.querySelector('[role=alert]')).toBeNull();
    });
    await openPage(api, async (page) => {
      await untilShown(page, 'I have refunded');
      expect(page.body.textContent).toBe(shown);
    });
  },
  TIMEOUT_MS,
);
