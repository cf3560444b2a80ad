/**
 * The owner's side of the socket: serves the store to other processes of the same user, after authentication. Their
 * operations go to the same commit queue as the owner's, so one commit spans processes. The server never keeps its
 * process alive: when the process ends, another one takes over.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { Fault } from '../../../base/errors.js';
import type { DueTurn } from '../../../journal/due-turns.js';
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

/** Codes of Faults that mean that this process is no longer the owner. */
const OWNER_LEAVING_CODES: ReadonlySet<string> = new Set(['STORE_CLOSED', 'OWNERSHIP_LOST', 'STORE_MISSING']);

/** Maximum number of unauthenticated connections. The oldest one is closed to make room. */
const MAX_UNAUTHENTICATED_CHANNELS = 64;

type Operation = (store: LocalStore, args: never) => Promise<unknown>;

interface SessionArgs {
  readonly session: string;
}

/** Reads one page of a session as `{ entries, more }`, starting at `from`. `more` is true if further entries follow. */
async function readPage(store: LocalStore, { session, from }: SessionArgs & { from: number }): Promise<unknown> {
  // The read starts one entry earlier, so that the chain is verified across pages.
  for await (const entries of store.journal.read(session, Math.max(0, from - 1))) {
    const page = entries.filter(({ seq }) => seq >= from);
    const last = entries.at(-1)?.seq ?? from;
    return { entries: page, more: store.hasEntriesAfter(session, last) };
  }
  return { entries: [], more: false };
}

async function appendWithBlobs(store: LocalStore, request: AppendRequest): Promise<void> {
  const { session, blobs = [] } = request;
  for (const [digest, text] of blobs) await store.blobs.put(session, digest, text);
  await store.append(request);
}

/** The requests that the store performs. Leases, appends and the end of a connection are handled separately. */
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
    due: (store: LocalStore, { until, limit, after }: { until: number; limit: number; after?: DueTurn }) =>
      store.dueTurns.list(until, limit, after),
    'next-due': (store: LocalStore, { after }: { after: number }) => store.dueTurns.nextDueAt(after),
    'is-due-complete': (store: LocalStore) => store.dueTurns.isComplete(),
    'rebuild-due': (store: LocalStore, { turns }: { turns: readonly DueTurn[] }) => store.dueTurns.rebuild(turns),
    record: (store: LocalStore) => store.maintenance.readLog(),
    // Not exclusive: this process serves others, so a step must not block it for long.
    verify: (store: LocalStore, { cursor }: { cursor?: VerifyCursor }) => store.maintenance.verify(cursor, false),
    accept: (store: LocalStore, { ids, word }: { ids: readonly number[]; word: Attribution }) =>
      store.maintenance.accept(ids, word),
    erase: (store: LocalStore, { session, word }: SessionArgs & { word: Attribution }) =>
      store.maintenance.remove(session, word),
  }) as [string, Operation][],
);

/** What a store server works with. */
interface StoreServerDeps {
  readonly store: LocalStore;
  readonly address: string;
  readonly secret: string;
  readonly leaseTable: LeaseTable;
}

/** Listens for clients and serves them. */
export class StoreServer {
  private readonly deps: StoreServerDeps;
  private readonly server: Server;
  private readonly channels = new Set<Channel>();
  /** Unauthenticated connections, oldest first. */
  private readonly unauthenticatedChannels = new Set<Channel>();
  private socketFileIdentity: string | undefined;

  private constructor(deps: StoreServerDeps) {
    this.deps = deps;
    // Clients and local sessions continue at the same time, so that their next appends share a commit.
    deps.store.onAcknowledged = () => {
      for (const channel of this.channels) channel.flush();
    };
    this.server = createServer((socket) => {
      socket.unref();
      void this.acceptChannel(new Channel(socket));
    });
  }

  /** Listens at the address and replaces the socket file of an earlier owner. */
  static async listen(deps: StoreServerDeps): Promise<StoreServer> {
    const { address } = deps;
    const storeServer = new StoreServer(deps);
    const isPipe = process.platform === 'win32';
    // On close, Node removes the path that it bound, even if the path then belongs to another owner. So a temporary
    // path is bound.
    const boundPath = isPipe ? address : join(dirname(address), `.${randomBytes(4).toString('hex')}`);
    await new Promise<void>((resolve, reject) => {
      storeServer.server.once('error', reject);
      storeServer.server.listen({ path: boundPath }, resolve);
    });
    storeServer.server.unref();
    if (isPipe) return storeServer;
    chmodSync(boundPath, 0o600);
    storeServer.socketFileIdentity = identityAt(boundPath);
    renameSync(boundPath, address);
    return storeServer;
  }

  /** Stops accepting connections and requests. Responses that are already queued are sent. */
  close(): void {
    const { address } = this.deps;
    this.server.close();
    try {
      if (this.socketFileIdentity === identityAt(address)) rmSync(address, { force: true });
    } catch {
      // A socket file without a listener is harmless.
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
      // The client failed to authenticate or disconnected.
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

/** The first request of a client. */
interface HelloRequest {
  readonly id: string;
  readonly process: ProcessId;
  readonly held: readonly HeldSession[];
}

/** The answer to it. */
export interface HelloReply {
  /** The result of the check when the owner opened the store. */
  readonly report: CheckReport;
  /** Identifies the key of the store; empty if it has none. Owners of earlier versions do not send it. */
  readonly keyId?: string;
}

/** The connection of one client: its requests, and its answers to forwarded requests. */
class ClientConnection {
  private readonly channel: Channel;
  private readonly deps: StoreServerDeps;
  private clientProcess: ClientProcess | undefined;

  constructor(channel: Channel, deps: StoreServerDeps) {
    this.channel = channel;
    this.deps = deps;
  }

  /** Handles a message. An invalid message closes the connection. */
  receive(message: unknown): void {
    const append = parseAppendRequest(message);
    if (append !== undefined && this.clientProcess !== undefined) return void this.append(append);
    const answer = parseClientAnswer(message);
    if (answer !== undefined) return void this.clientProcess?.receiveAnswer(answer.a, answer as object);
    const request = parseRequest(message);
    const result = request === undefined ? undefined : this.perform(request);
    if (request === undefined || result === undefined) return void this.channel.destroy();
    this.answerWhenDone(request, result);
  }

  /**
   * Handles an append. On the hot path, without blobs, it goes straight to the commit queue and is acknowledged by a
   * callback.
   */
  private append(request: AppendRequest): void {
    const { i, firstSeq, count, body, blobs, due } = request;
    const { store } = this.deps;
    const hasOnlyDueTurns = count === 0 && body === '[]' && due !== undefined;
    if (!hasOnlyDueTurns && !isAppendBody(body, firstSeq, count))
      this.sendError(i, new TypeError('The body of the append does not contain the entries that the append declares.'));
    else if (blobs !== undefined) this.answerWhenDone(request, appendWithBlobs(store, request));
    else {
      store.enqueueAppend(
        request,
        () => this.channel.acknowledge(i),
        (fault) => this.sendError(i, fault),
      );
    }
  }

  /** Sends the result or the error of a request, unless the request needs no response. */
  private answerWhenDone({ i }: ClientRequest, result: Promise<unknown>): void {
    if (i === undefined) return void result.catch(() => undefined);
    result.then(
      (value) => {
        if (!this.channel.send({ i, ok: value ?? null })) this.sendError(i, new TypeError('The answer is too large.'));
      },
      (error) => this.sendError(i, error),
    );
  }

  /**
   * Sends an error. If this process is no longer the owner, closes the connection instead, so that the client finds the
   * next owner.
   */
  private sendError(i: number, error: unknown): void {
    if (error instanceof Fault && OWNER_LEAVING_CODES.has(error.code)) this.channel.destroy();
    else this.channel.send({ i, error: toWireError(error) });
  }

  /** Handles the end of the connection. */
  close(): void {
    this.clientProcess?.detachChannel(this.channel);
  }

  /**
   * Performs a request. Returns undefined if it is not allowed now: before the hello, only the hello is allowed, and
   * after it no other hello.
   */
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
      request: forwarded,
    } = request as unknown as {
      session: string;
      turn: string;
      request: Json;
    };
    if (op === 'acquire') return leaseTable.acquire(session, turn, clientProcess);
    if (op === 'holdings') return leaseTable.list();
    if (op === 'ask') return leaseTable.ask(session, forwarded, clientProcess.id, this.replySinkFor(request.i ?? 0));
    if (op === 'release') return Promise.resolve(leaseTable.release(session, clientProcess.id));
    if (op === 'bye') return clientProcess.markGone();
    return operations.get(op)?.(store, request as never);
  }

  private async handleHello({ id, process, held }: HelloRequest): Promise<HelloReply> {
    this.clientProcess = this.deps.leaseTable.connectClient(id, process, this.channel, held);
    const { report, keyId } = this.deps.store;
    return { report, keyId };
  }

  /** Returns the sink that passes the reply of another process on to this client. */
  private replySinkFor(i: number) {
    const { channel } = this;
    return {
      asked: (process: ProcessId): void => void channel.send({ i, asked: process }),
      ack: (): void => void channel.send({ i, ack: true }),
      piece: (piece: unknown, droppable?: boolean): void => void channel.send({ i, piece }, droppable),
    };
  }
}
