// The handler behind real servers: of node:http, with its adapter, and Hono.

import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { expect } from 'vitest';
import { withServer } from '../../../spec/support/chat-page.mjs';
import { NOW_SECONDS, PAID_SECRET, receiver } from '../../../spec/support/signal-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { nodeListener, signalHandler, signDelivery } from './index.js';

const JSON_TYPE = { 'content-type': 'application/json' };

async function post(url: string, body: string, signedBody = body): Promise<{ status: number; reply: unknown }> {
  const signature = signDelivery(PAID_SECRET, { id: 'evt_1', timestamp: NOW_SECONDS, body: signedBody });
  const response = await fetch(url, { method: 'POST', body, headers: { ...JSON_TYPE, ...signature } });
  return { status: response.status, reply: await response.json() };
}

/** Sends signals to a server, and checks the answers. */
async function checkServer(base: string, { delivered }: ReturnType<typeof receiver>): Promise<void> {
  const url = `${base}/signals/orders/paid`;
  expect(await post(url, '{"amount":"40 €"}')).toEqual({ status: 202, reply: { status: 'accepted' } });
  expect(await post(url, '{"amount":"40 €"}')).toEqual({ status: 200, reply: { status: 'duplicate' } });
  expect(await post(url, '{"amount":41}', '{"amount":40}')).toMatchObject({
    status: 401,
    reply: { code: 'SIGNAL_REFUSED' },
  });
  expect(await post(url, `"${'a'.repeat(3_000_000)}"`)).toMatchObject({ status: 413 });
  expect(await post(`${base}/signals/orders/shipped`, '{"amount":40}')).toMatchObject({ status: 401 });
  expect(delivered.map(({ payload }) => payload)).toEqual([{ amount: '40 €' }, { amount: '40 €' }]);
}

verifies('hosted.signals', 'signals arrive through a server of node:http', async () => {
  const fixture = receiver(signalHandler);
  await withServer(nodeListener(fixture.handler), async (api) => {
    const base = new URL(api).origin;
    await checkServer(base, fixture);
    const response = await fetch(`${base}/signals/orders/paid`);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });
});

verifies('hosted.signals', 'signals arrive through Hono', async () => {
  const fixture = receiver(signalHandler);
  const app = new Hono();
  app.post('/signals/*', (context) => fixture.handler(context.req.raw));
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  try {
    if (!server.listening) await new Promise((resolve) => server.once('listening', resolve));
    await checkServer(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, fixture);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});
