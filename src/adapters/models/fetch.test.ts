/** The `fetch` functions of the providers follow no redirects; the public one connects to public addresses only. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { createPublicFetch, fetchWithoutRedirects } from './fetch.js';

const requests: { readonly path: string; readonly key: string | undefined; readonly body: string }[] = [];
const routes: { readonly [path: string]: (response: ServerResponse) => void } = {
  '/found': (response) => void response.writeHead(302, { location: '/target' }).end(),
  '/permanent': (response) => void response.writeHead(308, { location: '/target' }).end(),
  '/empty': (response) => void response.writeHead(204).end(),
  '/answer': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"a":');
    response.end('1}');
  },
};
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { url: path = '', headers } = request;
    requests.push({ path, key: headers['x-api-key']?.toString(), body: Buffer.concat(chunks).toString() });
    (routes[path] ?? ((other) => void other.writeHead(200).end('1')))(response);
  });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => void server.close());

const init = { method: 'POST', headers: { 'x-api-key': 'sk-1' }, body: '{}' };
// Callers check literal addresses in URLs, so the public `fetch` reaches the local server too.
for (const [name, fetch] of [
  ['plain', fetchWithoutRedirects],
  ['public', createPublicFetch(async () => [])],
] as const) {
  verifies('authority.send', `${name} fetch: a redirect is not followed, so no key is sent to its target`, async () => {
    requests.length = 0;
    for (const path of ['/found', '/permanent']) {
      await expect(fetch(`${base}${path}`, init)).rejects.toMatchObject({
        code: 'BACKEND_FAILED',
        data: { retryable: false },
      });
    }
    expect(requests.map(({ path }) => path)).toEqual(['/found', '/permanent']);
  });

  verifies('authority.send', `${name} fetch: request and response arrive complete, and an abort rejects`, async () => {
    requests.length = 0;
    const response = await fetch(`${base}/answer`, init);
    expect(response).toMatchObject({ status: 200, ok: true });
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({ a: 1 });
    expect((await fetch(`${base}/empty`, init)).status).toBe(204);
    expect(requests[0]).toEqual({ path: '/answer', key: 'sk-1', body: '{}' });
    const controller = new AbortController();
    controller.abort(new Error('enough'));
    await expect(fetch(`${base}/answer`, { ...init, signal: controller.signal })).rejects.toThrow();
  });
}

verifies('authority.reach', 'a host name that resolves to this machine is not connected to', async () => {
  requests.length = 0;
  const { port } = new URL(base);
  for (const addresses of [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], []]) {
    const response = createPublicFetch(async () => addresses)(`http://inner.example:${port}/answer`, init);
    await expect(response).rejects.toThrow(`inner.example:${port} is not on the public internet`);
  }
  const failing = createPublicFetch(async () => Promise.reject(new Error('no such host')));
  await expect(failing(`http://inner.example:${port}/`, init)).rejects.toThrow('no such host');
  expect(requests).toEqual([]);
});
