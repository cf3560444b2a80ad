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
import { identityAt } from '../files.js';
import type { Attribution } from '../incidents.js';
import type { LocalStore } from '../local-store.js';
import type { ProcessId } from '../owner/process.js';
import type { CheckReport } from '../store-inspection.js';
import type { VerifyCursor } from '../store-verifier.js';
import { isAppendBody } from './append-body.js';
import { Channel } from './channel.js';
import { authenticateAsOwner } from './handshake.js';
import type { ClientProcess, LeaseTable } from './lease-table.js';
import {
  type AppendRequest,
  type ClientRequest,
  parseAppendRequest,
  parseClientAnswer,
  parseRequest,
} from './messages.js';
import type { HeldSession } from './store-client.js';
import { toWireError } from './wire-errors.js';

/** Faults of an owner that is leaving. */
const OWNER_LEAVING_CODES: ReadonlySet<string> = new Set(['STORE_CLOSED', 'OWNERSHIP_LOST', 'STORE_MISSING']);

/** Connections that have not proved themselves yet. */
const MAX_UNAUTHENTICATED_CHANNELS = 64;

type Operation = (store: LocalStore, args: never) => Promise<unknown>;

interface SessionArgs {
  readonly session: string;
}

/** One page of a session: what follows `from`, and whether there is more. */
async function readPage(store: LocalStore, { session, from }: SessionArgs & { from: number }): Promise<unknown> {
  // The record before is read with it, so that the chain is followed from page to page.
  for await (const entries of store.journal.read(session, Math.max(0, from - 1))) {
    const wanted = entries.filter(({ seq }) => seq >= from);
    const last = entries.at(-1)?.seq ?? from;
    return { entries: wanted, more: store.hasEntriesAfter(session, last) };
  }
  return { entries: [], more: false };
}

async function appendWithBlobs(store: LocalStore, request: AppendRequest): Promise<void> {
  const { session, blobs = [] } = request;
  for (const [digest, text] of blobs) await store.blobs.put(session, digest, text);
  await store.append(request);
}

const operations = new Map<string, Operation>(
  Object.entries({
    read: readPage,
    claim: (store: LocalStore, { session }: SessionArgs) => store.journal.claim(session),
    list: (store: LocalStore) => store.journal.list(),
    remove: (store: LocalStore, { session }: SessionArgs) => store.journal.remove(session),
    get: (store: LocalStore, { session, digest }: SessionArgs & { digest: string }) => store.blobs.get(session, digest),
    load: (store: LocalStore, { session }: SessionArgs) => store.snapshots.load(session),
    save: (store: LocalStore, { session, snapshot }: SessionArgs & { snapshot: Snapshot }) =>
      store.snapshots.save(session, snapshot),
    record: (store: LocalStore) => store.maintenance.readLog(),
    // This process serves others: nothing may keep it busy for long.
    verify: (store: LocalStore, { cursor }: { cursor?: VerifyCursor }) => store.maintenance.verify(cursor, false),
    accept: (store: LocalStore, { ids, word }: { ids: readonly number[]; word: Attribution }) =>
      store.maintenance.accept(ids, word),
    erase: (store: LocalStore, { session, word }: SessionArgs & { word: Attribution }) =>
      store.maintenance.remove(session, word),
  }) as [string, Operation][],
);

export interface StoreServerDeps {
  readonly store: LocalStore;
  readonly address: string;
  readonly secret: string;
  readonly leaseTable: LeaseTable;
}

export class StoreServer {
  private readonly deps: StoreServerDeps;
  private readonly server: Server;
  private readonly channels = new Set<Channel>();
  /** Connections that have not proved themselves, the oldest first. */
  private readonly unauthenticatedChannels = new Set<Channel>();
  private socketFileIdentity: string | undefined;

  private constructor(parts: StoreServerDeps) {
    this.deps = parts;
    // The clients go on while the sessions of this process do, and what both write next is in the same commit.
    parts.store.onAcknowledged = () => {
      for (const channel of this.channels) channel.flush();
    };
    this.server = createServer((socket) => {
      socket.unref();
      void this.acceptChannel(new Channel(socket));
    });
  }

  /** Listens at the address; a socket file that an earlier owner left there is replaced. */
  static async listen(parts: StoreServerDeps): Promise<StoreServer> {
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
    serving.socketFileIdentity = identityAt(bound);
    renameSync(bound, address);
    return serving;
  }

  /** Takes no more connections and no more requests; what was answered is sent. */
  close(): void {
    const { address } = this.deps;
    this.server.close();
    try {
      if (this.socketFileIdentity === identityAt(address)) rmSync(address, { force: true });
    } catch {
      // A socket file at which nobody listens harms nobody.
    }
    for (const channel of [...this.channels, ...this.unauthenticatedChannels]) channel.end();
  }

  private async acceptChannel(channel: Channel): Promise<void> {
    const [oldest] = this.unauthenticatedChannels;
    if (this.unauthenticatedChannels.size >= MAX_UNAUTHENTICATED_CHANNELS) oldest?.destroy();
    this.unauthenticatedChannels.add(channel);
    try {
      await authenticateAsOwner(channel, this.deps.secret);
    } catch {
      // It had no proof, or went away; neither is our failure.
      return;
    } finally {
      this.unauthenticatedChannels.delete(channel);
    }
    if (!this.server.listening) return void channel.destroy();
    this.channels.add(channel);
    const connection = new ClientConnection(channel, this.deps);
    channel.onMessage = (message) => connection.receive(message);
    channel.onClose = () => {
      this.channels.delete(channel);
      connection.close();
    };
  }
}

interface HelloRequest {
  readonly id: string;
  readonly process: ProcessId;
  readonly held: readonly HeldSession[];
}

/** One client: its requests, and those that other processes have for it. */
class ClientConnection {
  private readonly channel: Channel;
  private readonly deps: StoreServerDeps;
  private clientProcess: ClientProcess | undefined;

  constructor(channel: Channel, parts: StoreServerDeps) {
    this.channel = channel;
    this.deps = parts;
  }

  /** What is no request ends the connection: whoever sends it does not speak our protocol. */
  receive(message: unknown): void {
    const append = parseAppendRequest(message);
    if (append !== undefined && this.clientProcess !== undefined) return void this.append(append);
    const answer = parseClientAnswer(message);
    if (answer !== undefined) return void this.clientProcess?.receiveAnswer(answer.a, answer as object);
    const request = parseRequest(message);
    const work = request === undefined ? undefined : this.perform(request);
    if (request === undefined || work === undefined) return void this.channel.destroy();
    this.answerWhenDone(request, work);
  }

  /** The hot path: an append without large values goes straight to the group commit, and its acknowledgement straight back. */
  private append(request: AppendRequest): void {
    const { i, firstSeq, count, body, blobs } = request;
    const { store } = this.deps;
    if (!isAppendBody(body, firstSeq, count))
      this.sendError(i, new TypeError('The body of an append is not what the append says.'));
    else if (blobs !== undefined) this.answerWhenDone(request, appendWithBlobs(store, request));
    else {
      store.enqueueAppend(
        request,
        () => this.channel.acknowledge(i),
        (fault) => this.sendError(i, fault),
      );
    }
  }

  private answerWhenDone({ i }: ClientRequest, work: Promise<unknown>): void {
    if (i === undefined) return void work.catch(() => undefined);
    work.then(
      (value) => {
        if (!this.channel.send({ i, ok: value ?? null })) this.sendError(i, new TypeError('The answer is too large.'));
      },
      (thrown) => this.sendError(i, thrown),
    );
  }

  /** A store that is not this process's any more is no answer: the client is to look for the next owner. */
  private sendError(i: number, thrown: unknown): void {
    if (thrown instanceof Fault && OWNER_LEAVING_CODES.has(thrown.code)) this.channel.destroy();
    else this.channel.send({ i, error: toWireError(thrown) });
  }

  close(): void {
    this.clientProcess?.detachChannel(this.channel);
  }

  /** Undefined for what may not be asked for now: anything before the hello, and a second one. */
  private perform(request: ClientRequest): Promise<unknown> | undefined {
    const { store, leaseTable } = this.deps;
    const { op } = request;
    const { clientProcess } = this;
    if (op === 'hello')
      return clientProcess === undefined ? this.handleHello(request as HelloRequest & ClientRequest) : undefined;
    if (clientProcess === undefined) return undefined;
    const {
      session,
      turn,
      request: asked,
    } = request as unknown as {
      session: string;
      turn: string;
      request: Json;
    };
    if (op === 'acquire') return leaseTable.acquire(session, turn, clientProcess);
    if (op === 'holdings') return leaseTable.list();
    if (op === 'ask') return leaseTable.ask(session, asked, clientProcess.id, this.replySinkFor(request.i ?? 0));
    if (op === 'release') return Promise.resolve(leaseTable.release(session, clientProcess.id));
    if (op === 'bye') return Promise.resolve(clientProcess.markGone());
    return operations.get(op)?.(store, request as never);
  }

  private async handleHello({ id, process, held }: HelloRequest): Promise<{ readonly report: CheckReport }> {
    this.clientProcess = this.deps.leaseTable.connectClient(id, process, this.channel, held);
    return { report: this.deps.store.report };
  }

  /** Where the answer to a request goes while it comes. */
  private replySinkFor(i: number) {
    const { channel } = this;
    return {
      asked: (asked: ProcessId): void => void channel.send({ i, asked }),
      ack: (): void => void channel.send({ i, ack: true }),
      piece: (piece: unknown, droppable?: boolean): void => void channel.send({ i, piece }, droppable),
    };
  }
}
