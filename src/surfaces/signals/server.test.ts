// The handler behind real servers: of node:http, with its adapter, and Hono.

import type { RequestListener } from 'node:http';
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

/** A server whose middleware reads the body before the handler, as `express.json()` does. */
function behindParser(fixture: ReturnType<typeof receiver>, kept: (bytes: Buffer) => object): RequestListener {
  const listener = nodeListener(fixture.handler);
  return (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (bytes: Buffer) => chunks.push(bytes));
    incoming.on('end', () => listener(Object.assign(incoming, kept(Buffer.concat(chunks))), outgoing));
  };
}

verifies('hosted.signals', 'signals arrive behind a middleware that parses bodies and keeps their bytes', async () => {
  const fixture = receiver(signalHandler);
  const kept = (bytes: Buffer) => ({ rawBody: bytes, body: JSON.parse(bytes.toString()) as unknown });
  await withServer(behindParser(fixture, kept), (api) => checkServer(new URL(api).origin, fixture));
});

verifies(
  'hosted.signals',
  'a body whose bytes are lost is refused with the remedy, and reported to the operator',
  async () => {
    const fixture = receiver(signalHandler);
    const kept = (bytes: Buffer) => ({ body: JSON.parse(bytes.toString()) as unknown });
    await withServer(behindParser(fixture, kept), async (api) => {
      const url = `${new URL(api).origin}/signals/orders/paid`;
      // The same bytes as those that were sent, by chance: a signature would be verified over what nobody signed.
      for (const body of ['{"amount":40}', '{ "amount": 40 }'])
        expect(await post(url, body)).toMatchObject({
          status: 500,
          reply: { detail: expect.stringContaining('express.json({ verify:') },
        });
    });
    expect(fixture.delivered).toEqual([]);
    expect(fixture.errors.map((thrown) => String(thrown))).toEqual([expect.stringContaining('before express.json()')]);
  },
);
