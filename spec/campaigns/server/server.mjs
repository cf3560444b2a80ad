// A server: turns over HTTP, and a worker for what is due. It prints its address as a line of JSON. SIGTERM closes it.
//
//   POST /turns { loop, name, … }                   starts a turn under the key `name`, with the body as its input
//   POST /turns/ID/signals { name, payload, id }    sends a signal
//   GET  /turns/ID/result                           waits until the turn ends or pauses

import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { createRondo } from 'rondo';
import { flaky, hang, helper, refund } from './desk-loops.mjs';
import { deliver, delivery, payment } from './loops.mjs';

/** @typedef {{ loop: string, name: string }} StartRequest */
/** @typedef {{ name: string, payload: import('rondo/protocol').Json, id: string }} SignalBody */

const [data = ''] = process.argv.slice(2);

/** Prints a report as a line of JSON. @param {object} report */
const printReport = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);

const rondo = await createRondo({ data, loops: [deliver, delivery, payment, flaky, hang, helper, refund] });
const working = rondo.work({ onProblem: (problem) => printReport({ problem }) });

/**
 * Answers a request.
 * @param {string} method @param {readonly string[]} path @param {() => Promise<unknown>} body
 * @returns {Promise<object | undefined>}
 */
async function answer(method, [turns, id = '', part], body) {
  if (turns !== 'turns') return undefined;
  if (method === 'POST' && id === '') {
    const { loop, ...input } = /** @type {StartRequest} */ (await body());
    const turn = await rondo.start(loop, input, { key: input.name });
    return { turnId: turn.id };
  }
  if (method === 'POST' && part === 'signals') {
    const { name, payload, id: delivery } = /** @type {SignalBody} */ (await body());
    return { isNew: await rondo.signal(id, name, payload, { id: delivery }) };
  }
  if (method === 'GET' && part === 'result') {
    const { trace: _, ...result } = await rondo.turn(id).result();
    return result;
  }
  return undefined;
}

const server = createServer(async (request, response) => {
  const path = (request.url ?? '').split('/').slice(1);
  /** @type {[number, object]} */
  const [status, document] = await answer(request.method ?? '', path, () => json(request)).then(
    (found) => (found === undefined ? [404, {}] : [200, found]),
    ({ name, code, message }) => [503, { name, code, message }],
  );
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(JSON.stringify(document));
});

/** Stops accepting requests, interrupts the turns and leaves the store. */
async function shutDown() {
  server.close();
  await rondo.close();
  await working;
  process.exit(0);
}

process.once('SIGTERM', () => void shutDown());
working.catch((error) => {
  printReport({ fatal: { code: error.code, message: error.message } });
  process.exit(1);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  printReport({ ready: process.pid, url: `http://127.0.0.1:${port}` });
});
