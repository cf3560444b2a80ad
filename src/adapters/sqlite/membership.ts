/**
 * The part of this process in a shared store: its owner, or a client of the owner. It finds the owner, becomes it when there is
 * none, and changes its part when the owner goes or another process has taken over.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { LocalStore } from './local-store.js';
import { openLocalStore, type SqliteOptions } from './open-local-store.js';
import {
  isLivenessUncertain,
  LOCK_HELD_REASON,
  type OwnershipCandidacy,
  readLivingOwner,
  tryToAcquireOwnership,
} from './owner/acquire.js';
import { lockHolderOf, type OwnerLock } from './owner/lock.js';
import { type OwnerInfo, readOwnerFile, removeOwnerFile, writeOwnerFile } from './owner/owner-file.js';
import { type ProcessId, type ProcessState, thisProcess } from './owner/process.js';
import {
  describeUnresponsiveOwner,
  unreachableOwnerFault,
  unresponsiveOwnerFault,
} from './owner/unresponsive-messages.js';
import { type LeaseRoute, SharedLeases } from './shared-leases.js';
import { toFault } from './sqlite-faults.js';
import type { CheckReport } from './store-inspection.js';
import { HandshakeError } from './wire/handshake.js';
import { LeaseTable } from './wire/lease-table.js';
import { ListeningTime, REPORT_AFTER_MS } from './wire/response-watchdog.js';
import { StoreClient } from './wire/store-client.js';
import { StoreServer } from './wire/store-server.js';
import { ConnectionLost } from './wire/wire-errors.js';

/** How long an owner that cannot be reached is looked for. */
const MAX_JOIN_MS = 8500;
const RETRY_DELAY_MS = 10;
/**
 * How long a process that has not shared the store yet leaves it to those that did when its owner was killed. They are waiting, know what
 * they are waiting for, and need not read a small store as a whole first.
 */
const NEWCOMER_DELAY_MS = 250;
/** An owner that closes so many connections in a row, each after so little time, is of no use. */
const MAX_QUICK_DISCONNECTS = 20;
const QUICK_DISCONNECT_MS = 1000;

/** What this process has while it is the owner. */
interface Ownership {
  readonly store: LocalStore;
  readonly lock: OwnerLock;
  readonly ownerInfo: OwnerInfo;
  /** The file of the record. */
  readonly ownerFileIdentity: string;
  readonly leaseTable: LeaseTable;
  readonly server: StoreServer;
}

export class Membership implements LeaseRoute {
  readonly leases: SharedLeases;
  private readonly database: string;
  private readonly options: SqliteOptions;
  private ownership: Ownership | undefined;
  private connectedClient: StoreClient | undefined;
  private pendingJoin: Promise<void> | undefined;
  private closedFault: Fault | undefined;
  private lastSeen: { owner: ProcessId; report: CheckReport } | undefined;

  constructor(database: string, options: SqliteOptions) {
    this.database = database;
    this.options = options;
    this.leases = new SharedLeases(randomUUID(), this);
  }

  /** The store itself, while this process is the owner. */
  get local(): LocalStore | undefined {
    const store = this.ownership?.store;
    if (store?.stopFault?.code !== 'OWNERSHIP_LOST') return store;
    this.dropOwnership();
    return undefined;
  }

  get leaseTable(): LeaseTable | undefined {
    return this.ownership?.leaseTable;
  }

  get client(): StoreClient | undefined {
    return this.connectedClient;
  }

  /** The owner that was last seen. */
  get owner(): ProcessId {
    return this.ownership?.ownerInfo ?? this.connectedClient?.owner ?? this.lastSeen?.owner ?? thisProcess();
  }

  get report(): CheckReport {
    return this.lastSeen?.report ?? { checked: 'heads', damage: [] };
  }

  notify(message: string): void {
    this.options.notify?.(message);
  }

  /** Resolves once this process is the owner or a client. */
  async ensureJoined(): Promise<void> {
    this.assertOpen();
    if (this.local !== undefined || this.connectedClient !== undefined) return;
    this.pendingJoin ??= this.join().finally(() => {
      this.pendingJoin = undefined;
    });
    await this.pendingJoin;
  }

  /** Does something with the store, here or through the owner; it is done again if the owner went away meanwhile. */
  async perform<T>(local: (store: LocalStore) => Promise<T>, remote: (client: StoreClient) => Promise<T>): Promise<T> {
    for (let lost = 0; ; ) {
      await this.ensureJoined();
      const store = this.local;
      if (store !== undefined) return local(store);
      const client = this.connectedClient;
      if (client === undefined) continue;
      const begun = performance.now();
      try {
        return await remote(client);
      } catch (thrown) {
        if (!(thrown instanceof ConnectionLost)) throw thrown;
      }
      lost = performance.now() - begun < QUICK_DISCONNECT_MS ? lost + 1 : 0;
      if (lost > MAX_QUICK_DISCONNECTS)
        throw unreachableOwnerFault(this.database, client.owner, 'it closes every connection');
      if (lost > 1) await setTimeout(RETRY_DELAY_MS * lost);
    }
  }

  /** Commits and answers what is under way, then leaves the store to the others. */
  async close(fault: Fault): Promise<void> {
    this.closedFault = fault;
    await this.pendingJoin?.catch(() => undefined);
    this.connectedClient?.close();
    this.connectedClient = undefined;
    const { ownership } = this;
    if (ownership === undefined) return;
    const { store, server } = ownership;
    store.flush();
    // The acknowledgements of that commit are on their way to the clients.
    await setImmediate();
    if (this.ownership !== ownership) return;
    store.setListening(false);
    server.close();
    this.ownership = undefined;
    try {
      await store.close();
    } finally {
      this.releaseOwnership(ownership);
    }
  }

  private releaseOwnership({ lock, ownerFileIdentity }: Pick<Ownership, 'lock' | 'ownerFileIdentity'>): void {
    try {
      removeOwnerFile(this.database, ownerFileIdentity);
    } catch (error) {
      throw toFault(error, 'Closing', this.database);
    } finally {
      lock.release();
    }
  }

  /** The store is another process's now, or gone: everything of this one's ownership is dropped, and nothing more is written. */
  private dropOwnership(): void {
    const { ownership } = this;
    if (ownership === undefined) return;
    this.ownership = undefined;
    const { stopFault } = ownership.store;
    // A store that was removed is not made anew under the hands of those who work on it.
    if (stopFault?.code === 'STORE_MISSING') this.closedFault ??= stopFault;
    ownership.server.close();
    void ownership.store.close().catch(() => undefined);
    try {
      this.releaseOwnership(ownership);
    } catch {
      // The record stays and is believed as long as this process lives; whoever writes here is told why it cannot.
    }
  }

  private assertOpen(): void {
    if (this.closedFault !== undefined) throw this.closedFault;
  }

  private async join(): Promise<void> {
    let reported = false;
    const time = new ListeningTime();
    time.start();
    const begun = performance.now();
    try {
      for (;;) {
        const owner = readLivingOwner(this.database);
        let why = owner === undefined ? undefined : await this.tryConnect(owner);
        if (owner !== undefined && why === undefined) return;
        if (owner === undefined && this.defersToExistingClients(begun)) why = 'its owner has ended';
        else if (owner === undefined || isLivenessUncertain(owner)) why = await this.tryTakeOver();
        if (why === undefined) return;
        this.assertOpen();
        if (time.elapsedMs > MAX_JOIN_MS) throw this.unreachableFault(owner, why);
        if (time.elapsedMs > REPORT_AFTER_MS && !reported) {
          reported = true;
          this.notify(this.unreachableFault(owner, why).message);
        }
        await setTimeout(RETRY_DELAY_MS * (0.5 + Math.random()));
      }
    } finally {
      time.stop();
    }
  }

  /** True while others have the first chance to succeed an owner that ended without removing its record. */
  private defersToExistingClients(begun: number): boolean {
    const isNew = this.lastSeen === undefined && performance.now() - begun < NEWCOMER_DELAY_MS;
    return isNew && readOwnerFile(this.database) !== undefined;
  }

  private unreachableFault(owner: OwnerInfo | undefined, why: string): Fault {
    const { database } = this;
    // Who else waits takes the lock for a moment, too, when it is free.
    const holder = why === LOCK_HELD_REASON ? lockHolderOf(database) : undefined;
    return unreachableOwnerFault(database, owner ?? readOwnerFile(database) ?? holder, why);
  }

  /** Becomes a client of this owner; else the reason why not. */
  private async tryConnect(owner: OwnerInfo): Promise<string | undefined> {
    if (this.options.accept !== undefined) {
      throw unreachableOwnerFault(this.database, owner, "accept: 'loss' needs the store for this process alone");
    }
    let client: StoreClient | undefined;
    try {
      client = await StoreClient.open({
        owner,
        id: this.leases.id,
        process: thisProcess(),
        heldSessions: () => this.leases.heldSessions(),
        answer: (session, request, send) => this.leases.answer(session, request, send),
        onUnresponsive: (state: ProcessState) => this.notify(describeUnresponsiveOwner(this.database, owner, state)),
        unresponsiveError: (state: ProcessState) => unresponsiveOwnerFault(this.database, owner, state),
        onClosed: () => this.handleDisconnect(client),
      });
      this.connectedClient = client;
      this.lastSeen = { owner, report: client.report ?? this.report };
      return undefined;
    } catch (thrown) {
      if (thrown instanceof Fault) throw thrown;
      if (!(thrown instanceof HandshakeError) || thrown.reason !== 'version') {
        return (thrown instanceof Error ? thrown.message : String(thrown)).replace(/\.$/, '');
      }
      throw unreachableOwnerFault(this.database, owner, `it runs another version of Rondo. ${thrown.message}`);
    }
  }

  private handleDisconnect(client: StoreClient | undefined): void {
    if (client === undefined || this.connectedClient !== client) return;
    this.connectedClient = undefined;
    // At once, whether or not anything is asked for: somebody has to be there when a new process comes.
    if (this.closedFault === undefined) this.ensureJoined().catch(() => undefined);
  }

  /** Becomes the owner; else the reason why not. */
  private async tryTakeOver(): Promise<string | undefined> {
    let candidacy: OwnershipCandidacy | undefined;
    let file = '';
    try {
      const found = await tryToAcquireOwnership(this.database);
      if (typeof found === 'string') return found;
      candidacy = found;
      const owner = readLivingOwner(this.database);
      if (owner === undefined || owner.secret === candidacy.previousOwner?.secret) {
        // First of all, so that others know whom they wait for while the database is opened and checked.
        file = writeOwnerFile(this.database, candidacy.ownerInfo);
        await this.becomeOwner(candidacy, file);
        return undefined;
      }
      candidacy.lock.release();
      return 'it is about to listen';
    } catch (error) {
      if (candidacy !== undefined) this.releaseOwnership({ ...candidacy, ownerFileIdentity: file });
      const fault = toFault(error, 'Opening', this.database);
      // Another process has the database open; it will turn out to be the owner, or gone.
      if (fault.code === 'STORE_OWNED') return 'its database is locked';
      throw fault;
    }
  }

  private async becomeOwner({ lock, ownerInfo }: OwnershipCandidacy, file: string): Promise<void> {
    // Who takes over has used the store until now, and the others wait: what was written long ago is not read again.
    const options: SqliteOptions = this.lastSeen === undefined ? this.options : { check: 'heads', ...this.options };
    const store = openLocalStore(this.database, options);
    try {
      const { id, selfProcess } = this.leases;
      const register = {
        add: (peer: string, process: ProcessId) => store.addClient(peer, process),
        remove: (peer: string) => void store.removeClient(peer).catch(() => undefined),
      };
      const survivors = new Map([...store.recordedClients()].filter(([peer]) => peer !== id));
      const peers = new LeaseTable(register, survivors);
      for (const { session, turn } of this.leases.heldSessions()) peers.tryHold(session, turn, selfProcess);
      const { socket: address, secret } = ownerInfo;
      const server = await StoreServer.listen({ store, address, secret, leaseTable: peers });
      store.setListening(true);
      this.ownership = { store, lock, ownerInfo, ownerFileIdentity: file, leaseTable: peers, server };
      store.onLost = () => {
        if (this.ownership?.store === store) this.dropOwnership();
      };
      this.lastSeen = { owner: ownerInfo, report: store.report };
    } catch (error) {
      await store.close().catch(() => undefined);
      throw error;
    }
  }
}
