/**
 * The simulated services: stock, bank, printer and post. They run in the parent, so they survive the worker. Each
 * request, and its effect if it has one, is reported to the sink before the service answers. Services differ in how
 * they recognize a repeated request: the stock by its input, bank and post by the idempotency key, the printer not at
 * all.
 */
/** @import { ServiceCall } from './call-service.mjs' */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { reportEffect } from 'rondo/testing';

/** @typedef {ServiceCall & { pid: number }} ServiceRequest */
/** @typedef {{ name: string, key: string, pid: number, answer: string }} ReportData Sent to the sink. */
/** @typedef {{ product: string, requestIdentity(request: ServiceRequest): string | undefined }} Service */

/** @type {Record<string, Service>} */
const services = {
  stock: { product: 'reservation', requestIdentity: ({ input }) => JSON.stringify(input) },
  bank: { product: 'receipt', requestIdentity: ({ key }) => key },
  printer: { product: 'parcel', requestIdentity: () => undefined },
  post: { product: 'letter', requestIdentity: ({ key }) => key },
};

/** Returns a function that performs a request, or returns the first answer if it is a repeated one. */
function createRequestHandler() {
  /** @type {Map<string, string>} */
  const answers = new Map();
  /** @type {Map<string, number>} */
  const counts = new Map();
  return (/** @type {ServiceRequest} */ request) => {
    const { kind } = request;
    const service = services[kind];
    if (service === undefined) throw new Error(`There is no service "${kind}".`);
    const identity = service.requestIdentity(request);
    const firstAnswer = identity === undefined ? undefined : answers.get(`${kind} ${identity}`);
    if (firstAnswer !== undefined) return { answer: firstAnswer, performed: false };
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    const answer = `${service.product} ${count}`;
    if (identity !== undefined) answers.set(`${kind} ${identity}`, answer);
    return { answer, performed: true };
  };
}

/**
 * Starts the services. `onRequest` is called once the sink has the reports of a request on disk; the answer is sent
 * when the promise that it returns resolves.
 * @param {string} sinkUrl
 * @param {(request: ServiceRequest, performed: boolean) => void | Promise<void>} onRequest
 */
export async function startServices(sinkUrl, onRequest) {
  const handle = createRequestHandler();
  const server = createServer(async (incoming, response) => {
    try {
      const request = /** @type {ServiceRequest} */ (JSON.parse(await text(incoming)));
      const { answer, performed } = handle(request);
      const { name, key, pid } = request;
      const data = { name, key, pid, answer };
      await reportEffect(sinkUrl, { key: `received ${name}`, kind: 'received', data });
      if (performed) await reportEffect(sinkUrl, { key: `performed ${name}`, kind: 'performed', data });
      await onRequest(request, performed);
      response.end(answer);
    } catch {
      response.writeHead(500).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return {
    url: `http://127.0.0.1:${port}/`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
