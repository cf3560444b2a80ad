import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai';
import { Window } from 'happy-dom';
import { act, createElement } from 'react';
import { createRoot } from 'react-dom/client';
import { expect } from 'vitest';
import { blockingTool, chatFixtures } from '../../../spec/support/chat-fixture.mjs';
import { Pages, withServer } from '../../../spec/support/chat-page.mjs';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { nodeListener } from '../http/node.js';
import { chatHandler } from './chat.js';
import { uiMessages } from './message.js';

type Page = import('../../../spec/support/chat-page.mjs').Page;

const createChat = chatFixtures({ agentDef, replyProvider, hostOf, tool, chatHandler });
const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses;
const pages = new Pages({
  act,
  createElement,
  createRoot,
  useChat,
  DefaultChatTransport,
  sendAutomaticallyWhen,
  Window,
});
const REFUND = { reasoning: 'Hm.', text: 'One moment. ', calls: [['refund', { amount: 5 }, 'c1'] as const] };
const TIMEOUT_MS = 20_000;

const toolParts = ({ chat }: Page) =>
  chat.messages.flatMap(({ parts }) => parts).filter((part) => 'toolCallId' in part);
const pendingParts = (page: Page) => toolParts(page).filter(({ state }) => state === 'approval-requested');
const isIdle = (page: Page): boolean => page.chat.status === 'ready' || page.chat.status === 'error';

async function answer(page: Page, approved: boolean, reason?: string): Promise<void> {
  const [part] = pendingParts(page);
  const id = part?.approval?.id ?? '';
  await page.act(async () =>
    page.chat.addToolApprovalResponse({ id, approved, ...(reason !== undefined && { reason }) }),
  );
}

verifies(
  'aisdk.chat',
  'a real client receives the rest of a turn after it approves a tool call',
  async () => {
    const { handler, refunds, host } = createChat([REFUND, { text: 'It is done.' }]);
    await withServer(nodeListener(handler), (api, requests) =>
      pages.open(api, {}, async (page) => {
        await page.act(async () => page.chat.sendMessage({ text: 'My money back' }));
        await page.until((now) => isIdle(now) && pendingParts(now).length === 1);
        expect(refunds).toEqual([]);
        expect(pendingParts(page)).toMatchObject([{ type: 'tool-refund', input: { amount: 5 } }]);
        await answer(page, true);
        await page.until((now) => isIdle(now) && now.text().includes('It is done.'));
        expect(refunds).toEqual([5]);
        expect(page.text()).toBe('My money back [step-start] Hm. One moment.  [tool-refund] [step-start] It is done.');
        expect(toolParts(page)).toMatchObject([{ state: 'output-available', output: { refunded: 5 } }]);
        expect(requests).toEqual(['POST /api/chat', 'POST /api/chat']);
        const loaded = uiMessages(await host.archive.events('chat'));
        expect(page.chat.messages.map(({ parts }) => parts)).toMatchObject(
          loaded.map(({ parts }) => parts.map(withoutApproval)),
        );
      }),
    );
  },
  TIMEOUT_MS,
);

/** Returns a part without its approval and state, which the client sets differently. */
function withoutApproval({ ...part }: object): object {
  Reflect.deleteProperty(part, 'approval');
  Reflect.deleteProperty(part, 'state');
  return part;
}

verifies(
  'aisdk.chat',
  'a real client receives the rest of a turn after it denies a tool call',
  async () => {
    const { handler, refunds, prompts } = createChat([REFUND, { text: 'Then not.' }]);
    await withServer(nodeListener(handler), (api, requests) =>
      pages.open(api, {}, async (page) => {
        await page.act(async () => page.chat.sendMessage({ text: 'My money back' }));
        await page.until((now) => isIdle(now) && pendingParts(now).length === 1);
        await answer(page, false, 'not today');
        await page.until((now) => isIdle(now) && now.text().includes('Then not.'));
        expect(refunds).toEqual([]);
        expect(toolParts(page)).toMatchObject([{ state: 'output-denied', approval: { approved: false } }]);
        expect(prompts().at(-1)).toContain('not today');
        expect(requests).toHaveLength(2);
      }),
    );
  },
  TIMEOUT_MS,
);

verifies(
  'aisdk.chat',
  'approvals of the agent and of a sub-agent are answered together',
  async () => {
    const clerk = agentDef('clerk', { tools: ['refund'], backend: { id: 'replies' } });
    const { handler, refunds } = createChat(
      [
        {
          calls: [
            ['refund', { amount: 1 }, 'c1'],
            ['clerk', { prompt: 'pay' }, 'c2'],
          ],
        },
        { calls: [['refund', { amount: 2 }, 'c1']] },
        { text: 'Clerk is done.' },
        { text: 'All is done.' },
      ],
      { agent: { tools: ['refund', 'clerk'], approvals: { refund: 'ask' } }, more: [clerk] },
    );
    await withServer(nodeListener(handler), (api, requests) =>
      pages.open(api, {}, async (page) => {
        await page.act(async () => page.chat.sendMessage({ text: 'Go' }));
        await page.until((now) => isIdle(now) && pendingParts(now).length === 2);
        await answer(page, true);
        expect(refunds).toEqual([]);
        await answer(page, true);
        await page.until((now) => isIdle(now) && now.text().includes('All is done.'));
        expect([...refunds].sort()).toEqual([1, 2]);
        expect(toolParts(page).map(({ type, state }) => `${type} ${state}`)).toEqual([
          'tool-refund output-available',
          'dynamic-tool output-available',
        ]);
        expect(requests).toHaveLength(2);
      }),
    );
  },
  TIMEOUT_MS,
);

verifies(
  'aisdk.chat',
  'a reloaded page can answer a pending approval',
  async () => {
    const { handler, refunds, host } = createChat([REFUND, { text: 'It is done.' }]);
    await withServer(nodeListener(handler), async (api) => {
      await pages.open(api, {}, async (page) => {
        await page.act(async () => page.chat.sendMessage({ text: 'My money back' }));
        await page.until((now) => isIdle(now) && pendingParts(now).length === 1);
      });
      const messages: UIMessage[] = uiMessages(await host.archive.events('chat'));
      await pages.open(api, { messages, resume: true }, async (page) => {
        await page.until((now) => isIdle(now) && pendingParts(now).length === 1);
        await answer(page, true);
        await page.until((now) => isIdle(now) && now.text().includes('It is done.'));
        expect(refunds).toEqual([5]);
        expect(page.text()).toBe('My money back [step-start] Hm. One moment.  [tool-refund] [step-start] It is done.');
      });
    });
  },
  TIMEOUT_MS,
);

verifies(
  'aisdk.chat',
  'a real client sends a refused answer only once',
  async () => {
    const { handler, refunds } = createChat([REFUND], { options: { principal: () => 'agent:self' } });
    await withServer(nodeListener(handler), (api, requests) =>
      pages.open(api, {}, async (page) => {
        await page.act(async () => page.chat.sendMessage({ text: 'My money back' }));
        await page.until((now) => isIdle(now) && pendingParts(now).length === 1);
        await answer(page, true);
        await page.until((now) => isIdle(now) && pendingParts(now).length === 1);
        await page.act(() => new Promise((resolve) => setTimeout(resolve, 100)));
        expect(refunds).toEqual([]);
        expect(requests).toHaveLength(2);
      }),
    );
  },
  TIMEOUT_MS,
);

verifies(
  'aisdk.chat',
  'a page that is loaded during a turn streams the rest of it',
  async () => {
    const { slow, release } = blockingTool();
    const { handler, host } = createChat([{ text: 'Looking. ', calls: [['slow', {}, 'c1']] }, { text: 'Found it.' }], {
      agent: { tools: ['slow'] },
      more: [tool('slow', 'builtin:slow')],
      tools: { slow },
    });
    await withServer(nodeListener(handler), async (api, requests) => {
      await pages.open(api, {}, async (page) => {
        await page.act(async () => void page.chat.sendMessage({ text: 'Look' }).catch(() => {}));
        await page.until((now) => toolParts(now).length === 1);
        await page.act(() => page.chat.stop());
      });
      const messages: UIMessage[] = uiMessages(await host.archive.events('chat'));
      await pages.open(api, { messages, resume: true }, async (page) => {
        await page.until((now) => now.chat.status === 'streaming');
        release();
        await page.until((now) => isIdle(now) && now.text().includes('Found it.'));
        expect(page.text()).toBe('Look [step-start] Looking.  [tool-slow] [step-start] Found it.');
        expect(requests).toEqual(['POST /api/chat', 'GET /api/chat/chat/stream']);
      });
    });
  },
  TIMEOUT_MS,
);
