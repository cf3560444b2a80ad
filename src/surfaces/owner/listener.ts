/**
 * The owner's ear: a server on the loopback address that answers verbs of other processes while this one has the store.
 * Only who has read the note knows the token. It never keeps the process alive by itself; a request in progress does.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { answering, isVerb } from './answer.js';
import type { Ask, Desk, Hearing } from './desk.js';
import { BODY, type Line, toWire } from './wire.js';

/** How long a connection may stay silent once the ear closes, in milliseconds. */
const GRACE = 300;

/** How long a request may take to arrive, in milliseconds. */
const SLOWEST = 30_000;

/** How much may lie unread, in bytes, before pieces are left out: what they are pieces of comes whole at its end. */
const UNREAD = 1024 * 1024;

export interface Listener {
  readonly url: string;
  readonly token: string;
  /** Requests that are being answered. */
  readonly busy: number;
  /** Lets all requests in progress end, then closes. */
  close(): Promise<void>;
}

interface Call {
  readonly verb: string;
  readonly args: object;
}

/** A request that is not one of ours: the status says why. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export async function listen(desk: Desk): Promise<Listener> {
  const token = randomBytes(32).toString('hex');
  const active = new Set<Promise<void>>();
  const ask = answering(desk);
  const server = createServer((request, response) => {
    const { socket } = request;
    socket.ref();
    const done = serve(request, response, { ask, token, host: url.slice('http://'.length) });
    active.add(done);
    const leave = (): void => {
      active.delete(done);
      socket.unref();
    };
    done.then(leave, leave);
  });
  server.requestTimeout = SLOWEST;
  server.on('connection', (socket) => socket.unref());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  server.unref();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    while (active.size > 0) await Promise.allSettled(active);
    // Who has just connected is still answered: a request that was cut off could not be told from one that was done.
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await Promise.race([closed, setTimeout(GRACE)]);
    while (active.size > 0) await Promise.allSettled(active);
    server.closeAllConnections();
  };
  return {
    url,
    token,
    get busy() {
      return active.size;
    },
    close,
  };
}

interface Serving {
  readonly ask: Ask;
  readonly token: string;
  readonly host: string;
}

async function serve(request: IncomingMessage, response: ServerResponse, serving: Serving): Promise<void> {
  response.on('error', () => undefined);
  try {
    admit(request, serving);
    const { verb, args } = callOf(await bodyOf(request));
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-rondo': 'owner' });
    const send = (line: Line): void => void response.write(`${JSON.stringify(line)}\n`);
    const streams = verb === 'run' || verb === 'resume';
    const result = serving.ask(verb, args, streams ? telling(response, send) : undefined);
    send(
      await result.then(
        (value) => ({ result: streams ? bare(value) : value }),
        (thrown) => ({ error: toWire(thrown) }),
      ),
    );
    response.end();
  } catch (thrown) {
    refuse(request, response, thrown);
  }
}

function telling(response: ServerResponse, send: (line: Line) => void): Hearing {
  return {
    onEvent: (event) => send({ event }),
    onEnvelope: (envelope) => send({ envelope }),
    onDelta: (delta) => {
      if (response.writableLength < UNREAD || delta.again === true) send({ delta });
    },
  };
}

/** The events of a result were sent already: they are its trace. */
function bare(result: unknown): unknown {
  return { ...(result as object), trace: undefined };
}

function refuse(request: IncomingMessage, response: ServerResponse, thrown: unknown): void {
  const status = thrown instanceof Refusal ? thrown.status : 500;
  const message = thrown instanceof Error ? thrown.message : '';
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
  response.end(`${JSON.stringify({ error: { message } })}\n`);
  // What is left of a body that is too large is not waited for.
  response.once('finish', () => request.destroy());
}

function admit({ method, url, headers }: IncomingMessage, { token, host }: Serving): void {
  if (headers.host !== host) throw new Refusal(403, 'This address is not ours.');
  if (headers.origin !== undefined) throw new Refusal(403, 'Pages of a browser are not answered.');
  if (!sameText(headers.authorization ?? '', `Bearer ${token}`)) throw new Refusal(401, 'The token is wrong.');
  if (url !== '/call') throw new Refusal(404, 'There is only /call.');
  if (method !== 'POST') throw new Refusal(405, 'Only POST is answered.');
}

/** Compares in the same time, wherever the texts differ. */
function sameText(a: string, b: string): boolean {
  const [one, other] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > BODY) throw new Refusal(413, `A request has at most ${BODY} bytes.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function callOf(body: string): Call {
  let call: Partial<Record<keyof Call, unknown>> | null;
  try {
    call = JSON.parse(body) as typeof call;
  } catch {
    throw new Refusal(400, 'The request is not JSON.');
  }
  const { verb, args = {} } = call ?? {};
  if (!isVerb(verb)) throw new Refusal(404, 'There is no such verb.');
  if (typeof args !== 'object' || args === null) throw new Refusal(400, 'The arguments are not an object.');
  return { verb, args };
}
