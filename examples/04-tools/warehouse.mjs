/**
 * The warehouse, for the http tool: it reserves once for each idempotency key. The first time it is asked it reserves too,
 * but answers with a 503. As a program, `node warehouse.mjs`, it listens on the port that the definition names.
 */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

/** @typedef {{ key: string, item: string, answered: number }} Visit */

/** @param {number} port @returns {Promise<{ port: number, visits: readonly Visit[], close(): void }>} */
export async function openWarehouse(port) {
  /** @type {Visit[]} */
  const visits = [];
  const shelves = new Map();
  const server = createServer(async (request, response) => {
    const key = String(request.headers['idempotency-key']);
    const { item } = /** @type {{ item: string }} */ (await json(request));
    if (!shelves.has(key)) shelves.set(key, `shelf ${shelves.size + 1}`);
    const answered = visits.length === 0 ? 503 : 200;
    visits.push({ key, item, answered });
    response.writeHead(answered, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answered === 200 ? { shelf: shelves.get(key) } : 'busy'));
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(undefined));
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    visits,
    close: () => void server.close(),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { port } = await openWarehouse(8787);
  console.log(`The warehouse listens on port ${port}; Ctrl-C closes it.`);
}
