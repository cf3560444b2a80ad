/** How providers are reached: no redirect carries a key on, and what nobody vouches for must be public. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { createPublicFetch, fetchWithoutRedirects } from './fetch.js';

const seen: { readonly path: string; readonly key: string | undefined; readonly body: string }[] = [];
const routes: { readonly [path: string]: (response: ServerResponse) => void } = {
  '/moved': (response) => void response.writeHead(302, { location: '/taken' }).end(),
  '/kept': (response) => void response.writeHead(308, { location: '/taken' }).end(),
  '/bare': (response) => void response.writeHead(204).end(),
  '/answer': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"a":');
    response.end('1}');
  },
};
const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  request.on('end', () => {
    const { url: path = '', headers } = request;
    seen.push({ path, key: headers['x-api-key']?.toString(), body: Buffer.concat(pieces).toString() });
    (routes[path] ?? ((other) => void other.writeHead(200).end('1')))(response);
  });
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => void server.close());

const init = { method: 'POST', headers: { 'x-api-key': 'sk-1' }, body: '{}' };
// An address in the URL itself is judged by the caller, so these reach the server above.
for (const [name, fetch] of [
  ['plain', fetchWithoutRedirects],
  ['checked', createPublicFetch(async () => [])],
] as const) {
  verifies('authority.send', `${name}: a redirect is not followed, and the key stays here`, async () => {
    seen.length = 0;
    for (const path of ['/moved', '/kept']) {
      await expect(fetch(`${base}${path}`, init)).rejects.toMatchObject({
        code: 'BACKEND_FAILED',
        data: { retryable: false },
      });
    }
    expect(seen.map(({ path }) => path)).toEqual(['/moved', '/kept']);
  });

  verifies('authority.send', `${name}: what is sent and answered arrives whole`, async () => {
    seen.length = 0;
    const response = await fetch(`${base}/answer`, init);
    expect(response).toMatchObject({ status: 200, ok: true });
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({ a: 1 });
    expect((await fetch(`${base}/bare`, init)).status).toBe(204);
    expect(seen[0]).toEqual({ path: '/answer', key: 'sk-1', body: '{}' });
    const controller = new AbortController();
    controller.abort(new Error('enough'));
    await expect(fetch(`${base}/answer`, { ...init, signal: controller.signal })).rejects.toThrow();
  });
}

verifies('authority.reach', 'a name that leads to this machine is not asked', async () => {
  seen.length = 0;
  const { port } = new URL(base);
  for (const addresses of [['127.0.0.1'], ['8.8.8.8', '127.0.0.1'], []]) {
    const asked = createPublicFetch(async () => addresses)(`http://inner.example:${port}/answer`, init);
    await expect(asked).rejects.toThrow(`inner.example:${port} is not on the public internet`);
  }
  const failing = createPublicFetch(async () => Promise.reject(new Error('no such host')));
  await expect(failing(`http://inner.example:${port}/`, init)).rejects.toThrow('no such host');
  expect(seen).toEqual([]);
});
