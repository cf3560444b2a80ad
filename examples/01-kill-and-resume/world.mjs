/**
 * The world outside: a stock, a bank, a printer and a post office. They outlive the worker, and the sink writes down
 * what they are asked and what they really do, before anybody gets an answer. They differ in how they know a request
 * again: the stock by what it is about, bank and post by its idempotency key, the printer not at all.
 */
/** @import { Request } from './ask.mjs' */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { reportEffect } from 'rondo/testing';

/** @typedef {Request & { pid: number }} Asked */
/** @typedef {{ name: string, key: string, pid: number, answer: string }} Note What a sighting of the sink carries. */
/** @typedef {{ gives: string, identity(asked: Asked): string | undefined }} Party */

/** @type {Record<string, Party>} */
const parties = {
  stock: { gives: 'reservation', identity: ({ about }) => JSON.stringify(about) },
  bank: { gives: 'receipt', identity: ({ key }) => key },
  printer: { gives: 'parcel', identity: () => undefined },
  post: { gives: 'letter', identity: ({ key }) => key },
};

/** Does what is asked unless it is known to be done; says whether anything happened. */
function newBooks() {
  /** @type {Map<string, string>} */
  const answers = new Map();
  /** @type {Map<string, number>} */
  const counts = new Map();
  return (/** @type {Asked} */ asked) => {
    const { kind } = asked;
    const party = parties[kind];
    if (party === undefined) throw new Error(`Nobody in this world is called "${kind}".`);
    const identity = party.identity(asked);
    const known = identity === undefined ? undefined : answers.get(`${kind} ${identity}`);
    if (known !== undefined) return { answer: known, happened: false };
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    const answer = `${party.gives} ${count}`;
    if (identity !== undefined) answers.set(`${kind} ${identity}`, answer);
    return { answer, happened: true };
  };
}

/**
 * Opens the world. An answer leaves only when `heard`, called once the sink has everything on disk, lets it go.
 * @param {string} sink
 * @param {(asked: Asked, happened: boolean) => void | Promise<void>} heard
 */
export async function openWorld(sink, heard) {
  const act = newBooks();
  const server = createServer(async (request, response) => {
    try {
      const asked = /** @type {Asked} */ (JSON.parse(await text(request)));
      const { answer, happened } = act(asked);
      const data = { name: asked.name, key: asked.key, pid: asked.pid, answer };
      await reportEffect(sink, { key: `asked ${asked.name}`, kind: 'asked', data });
      if (happened) await reportEffect(sink, { key: `happened ${asked.name}`, kind: 'happened', data });
      await heard(asked, happened);
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
