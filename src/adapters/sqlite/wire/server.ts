/**
 * The owner's side of the socket: offers the store to other processes of the same user, each after it has proved itself. An
 * operation goes to the same group commit as the owner's own, so that a commit spans processes. The server never keeps its
 * process alive: when that ends, another process takes over.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { Fault } from '../../../base/errors.js';
import type { Snapshot } from '../../../journal/store.js';
import type { Json } from '../../../protocol/json.js';
import type { Report } from '../check.js';
import { identityAt } from '../files.js';
import type { Word } from '../incidents.js';
import type { LocalStore } from '../local-store.js';
import type { ProcessId } from '../owner/process.js';
import type { VerifyCursor } from '../verify.js';
import { isBody } from './body.js';
import { Channel } from './channel.js';
import type { HeldSession } from './client.js';
import { toWire } from './errors.js';
import { proveToClient } from './handshake.js';
import type { Peer, Peers } from './peers.js';
import { type AppendRequest, answerOf, appendOf, type Request, requestOf } from './requests.js';

/** Faults of an owner that is leaving. */
const LEAVING: ReadonlySet<string> = new Set(['STORE_CLOSED', 'OWNERSHIP_LOST', 'STORE_MISSING']);

/** Connections that have not proved themselves yet. */
const MAX_STRANGERS = 64;

type Operation = (store: LocalStore, args: never) => Promise<unknown>;

interface InSession {
  readonly session: string;
}

/** One page of a session: what follows `from`, and whether there is more. */
async function readPage(store: LocalStore, { session, from }: InSession & { from: number }): Promise<unknown> {
  // The record before is read with it, so that the chain is followed from page to page.
  for await (const entries of store.journal.read(session, Math.max(0, from - 1))) {
    const wanted = entries.filter(({ seq }) => seq >= from);
    const last = entries.at(-1)?.seq ?? from;
    return { entries: wanted, more: store.hasAfter(session, last) };
  }
  return { entries: [], more: false };
}

async function append(store: LocalStore, request: AppendRequest): Promise<void> {
  const { session, blobs = [] } = request;
  for (const [digest, text] of blobs) await store.blobs.put(session, digest, text);
  await store.append(request);
}

const operations = new Map<string, Operation>(
  Object.entries({
    read: readPage,
    claim: (store: LocalStore, { session }: InSession) => store.journal.claim(session),
    list: (store: LocalStore) => store.journal.list(),
    remove: (store: LocalStore, { session }: InSession) => store.journal.remove(session),
    get: (store: LocalStore, { session, digest }: InSession & { digest: string }) => store.blobs.get(session, digest),
    load: (store: LocalStore, { session }: InSession) => store.snapshots.load(session),
    save: (store: LocalStore, { session, snapshot }: InSession & { snapshot: Snapshot }) =>
      store.snapshots.save(session, snapshot),
    record: (store: LocalStore) => store.maintenance.record(),
    // This process serves others: nothing may keep it busy for long.
    verify: (store: LocalStore, { cursor }: { cursor?: VerifyCursor }) => store.maintenance.verify(cursor, false),
    accept: (store: LocalStore, { ids, word }: { ids: readonly number[]; word: Word }) =>
      store.maintenance.accept(ids, word),
    erase: (store: LocalStore, { session, word }: InSession & { word: Word }) =>
      store.maintenance.remove(session, word),
  }) as [string, Operation][],
);

export interface ServerParts {
  readonly store: LocalStore;
  readonly address: string;
  readonly secret: string;
  readonly peers: Peers;
}

export class StoreServer {
  private readonly parts: ServerParts;
  private readonly server: Server;
  private readonly channels = new Set<Channel>();
  /** Connections that have not proved themselves, the oldest first. */
  private readonly strangers = new Set<Channel>();
  private socketFile: string | undefined;

  private constructor(parts: ServerParts) {
    this.parts = parts;
    // The clients go on while the sessions of this process do, and what both write next is in the same commit.
    parts.store.onAcknowledged = () => {
      for (const channel of this.channels) channel.flush();
    };
    this.server = createServer((socket) => {
      socket.unref();
      void this.welcome(new Channel(socket));
    });
  }

  /** Listens at the address; a socket file that an earlier owner left there is replaced. */
  static async listen(parts: ServerParts): Promise<StoreServer> {
    const { address } = parts;
    const serving = new StoreServer(parts);
    const isPipe = process.platform === 'win32';
    // Node removes the name that it bound when the server closes, whoever has that name then; so it is given another one.
    const bound = isPipe ? address : join(dirname(address), `.${randomBytes(4).toString('hex')}`);
    await new Promise<void>((resolve, reject) => {
      serving.server.once('error', reject);
      serving.server.listen({ path: bound }, resolve);
    });
    serving.server.unref();
    if (isPipe) return serving;
    chmodSync(bound, 0o600);
    serving.socketFile = identityAt(bound);
    renameSync(bound, address);
    return serving;
  }

  /** Takes no more connections and no more requests; what was answered is sent. */
  close(): void {
    const { address } = this.parts;
    this.server.close();
    try {
      if (this.socketFile === identityAt(address)) rmSync(address, { force: true });
    } catch {
      // A socket file at which nobody listens harms nobody.
    }
    for (const channel of [...this.channels, ...this.strangers]) channel.end();
  }

  private async welcome(channel: Channel): Promise<void> {
    const [oldest] = this.strangers;
    if (this.strangers.size >= MAX_STRANGERS) oldest?.destroy();
    this.strangers.add(channel);
    try {
      await proveToClient(channel, this.parts.secret);
    } catch {
      // It had no proof, or went away; neither is our failure.
      return;
    } finally {
      this.strangers.delete(channel);
    }
    if (!this.server.listening) return void channel.destroy();
    this.channels.add(channel);
    const connection = new Served(channel, this.parts);
    channel.onMessage = (message) => connection.receive(message);
    channel.onClose = () => {
      this.channels.delete(channel);
      connection.close();
    };
  }
}

interface Hello {
  readonly id: string;
  readonly process: ProcessId;
  readonly held: readonly HeldSession[];
}

/** One client: its requests, and those that other processes have for it. */
class Served {
  private readonly channel: Channel;
  private readonly parts: ServerParts;
  private peer: Peer | undefined;

  constructor(channel: Channel, parts: ServerParts) {
    this.channel = channel;
    this.parts = parts;
  }

  /** What is no request ends the connection: whoever sends it does not speak our protocol. */
  receive(message: unknown): void {
    const append = appendOf(message);
    if (append !== undefined && this.peer !== undefined) return void this.append(append);
    const answer = answerOf(message);
    if (answer !== undefined) return void this.peer?.receive(answer.a, answer as object);
    const request = requestOf(message);
    const work = request === undefined ? undefined : this.perform(request);
    if (request === undefined || work === undefined) return void this.channel.destroy();
    this.answer(request, work);
  }

  /** The hot path: an append without large values goes straight to the group commit, and its acknowledgement straight back. */
  private append(request: AppendRequest): void {
    const { i, first, count, body, blobs } = request;
    const { store } = this.parts;
    if (!isBody(body, first, count)) this.fail(i, new TypeError('The body of an append is not what the append says.'));
    else if (blobs !== undefined) this.answer(request, append(store, request));
    else {
      store.enqueue(
        request,
        () => this.channel.acknowledge(i),
        (fault) => this.fail(i, fault),
      );
    }
  }

  private answer({ i }: Request, work: Promise<unknown>): void {
    if (i === undefined) return void work.catch(() => undefined);
    work.then(
      (value) => {
        if (!this.channel.send({ i, ok: value ?? null })) this.fail(i, new TypeError('The answer is too large.'));
      },
      (thrown) => this.fail(i, thrown),
    );
  }

  /** A store that is not this process's any more is no answer: the client is to look for the next owner. */
  private fail(i: number, thrown: unknown): void {
    if (thrown instanceof Fault && LEAVING.has(thrown.code)) this.channel.destroy();
    else this.channel.send({ i, error: toWire(thrown) });
  }

  close(): void {
    this.peer?.disconnected(this.channel);
  }

  /** Undefined for what may not be asked for now: anything before the hello, and a second one. */
  private perform(request: Request): Promise<unknown> | undefined {
    const { store, peers } = this.parts;
    const { op } = request;
    const { peer } = this;
    if (op === 'hello') return peer === undefined ? this.hello(request as Hello & Request) : undefined;
    if (peer === undefined) return undefined;
    const {
      session,
      turn,
      request: asked,
    } = request as unknown as {
      session: string;
      turn: string;
      request: Json;
    };
    if (op === 'acquire') return peers.acquire(session, turn, peer);
    if (op === 'holdings') return peers.list();
    if (op === 'ask') return peers.ask(session, asked, peer.id, this.sinkOf(request.i ?? 0));
    if (op === 'release') return Promise.resolve(peers.release(session, peer.id));
    if (op === 'bye') return Promise.resolve(peer.leave());
    return operations.get(op)?.(store, request as never);
  }

  private async hello({ id, process, held }: Hello): Promise<{ readonly report: Report }> {
    this.peer = this.parts.peers.greet(id, process, this.channel, held);
    return { report: this.parts.store.report };
  }

  /** Where the answer to a request goes while it comes. */
  private sinkOf(i: number) {
    const { channel } = this;
    return {
      asked: (asked: ProcessId): void => void channel.send({ i, asked }),
      ack: (): void => void channel.send({ i, ack: true }),
      piece: (piece: unknown, droppable?: boolean): void => void channel.send({ i, piece }, droppable),
    };
  }
}
