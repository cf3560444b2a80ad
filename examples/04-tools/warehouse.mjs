/**
 * The warehouse: the server behind the http tool. It makes one reservation for each idempotency key. The first request
 * makes a reservation too, but is answered with status 503. `node warehouse.mjs` listens on the port that the
 * definition names.
 */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** @typedef {{ key: string, item: string, status: number }} ReceivedRequest */

/** @param {number} port @returns {Promise<{ port: number, requests: readonly ReceivedRequest[], close(): void }>} */
export async function openWarehouse(port) {
  /** @type {ReceivedRequest[]} */
  const requests = [];
  const shelves = new Map();
  const server = createServer(async (request, response) => {
    const key = String(request.headers['idempotency-key']);
    const { item } = /** @type {{ item: string }} */ (await json(request));
    if (!shelves.has(key)) shelves.set(key, `shelf ${shelves.size + 1}`);
    const status = requests.length === 0 ? 503 : 200;
    requests.push({ key, item, status });
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(status === 200 ? { shelf: shelves.get(key) } : 'busy'));
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(undefined));
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    requests,
    close: () => void server.close(),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { port } = await openWarehouse(8787);
  console.log(`The warehouse listens on port ${port}; Ctrl-C closes it.`);
}
