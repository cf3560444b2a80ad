/**
 * The role of this process in a shared store: its owner, or a client of the owner. A membership finds the owner, takes
 * over ownership if there is none, and changes its role when the owner ends or another process takes over.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { LocalStore } from './local-store.js';
import { openLocalStore, type SqliteOptions } from './open-local-store.js';
import {
  isLivenessUncertain,
  type OwnershipCandidacy,
  readLivingOwner,
  tryToAcquireOwnership,
  unjoinableStoreFault,
} from './owner/acquire.js';
import type { OwnerLock } from './owner/lock.js';
import { type OwnerInfo, readOwnerFile, removeOwnerFile, writeOwnerFile } from './owner/owner-file.js';
import { type ProcessId, type ProcessState, thisProcess } from './owner/process.js';
import {
  describeUnresponsiveOwner,
  unreachableOwnerFault,
  unresponsiveOwnerFault,
} from './owner/unresponsive-messages.js';
import { type LeaseRoute, SharedLeases } from './shared-leases.js';
import { toFault } from './sqlite-faults.js';
import { StoreIdentity } from './store-identity.js';
import type { CheckReport } from './store-inspection.js';
import { assertStoreKey } from './store-key.js';
import { HandshakeError } from './wire/handshake.js';
import { LeaseTable } from './wire/lease-table.js';
import { ListeningTime, REPORT_AFTER_MS } from './wire/response-watchdog.js';
import { StoreClient } from './wire/store-client.js';
import { StoreServer } from './wire/store-server.js';
import { ConnectionLost } from './wire/wire-errors.js';

/** How long a join retries while the owner is unreachable, in listening time (see `ListeningTime`). */
const MAX_JOIN_MS = 8500;
const RETRY_DELAY_MS = 10;
/**
 * The full check of an owner that was killed, perhaps during the check, is not repeated for this time. A full check at
 * every start would leave a process that is killed again and again no time to work.
 */
const RECENT_CHECK_MS = 10_000;
/** How long a process that leaves tries to be removed from the stored lease holders. */
const MAX_LEAVE_MS = 1000;
/**
 * How long a process that was not a member yet defers to existing clients after the owner was killed. They are waiting,
 * and need no full check of a small store first.
 */
const NEWCOMER_DELAY_MS = 250;
/** An owner that closes more connections than this in a row, each within `QUICK_DISCONNECT_MS`, is unreachable. */
const MAX_QUICK_DISCONNECTS = 20;
const QUICK_DISCONNECT_MS = 1000;

/** The resources of this process while it is the owner. */
interface Ownership {
  readonly store: LocalStore;
  readonly lock: OwnerLock;
  readonly ownerInfo: OwnerInfo;
  /** Identity of the owner file that this process wrote. */
  readonly ownerFileIdentity: string;
  readonly leaseTable: LeaseTable;
  readonly server: StoreServer;
}

/** Performs operations on the store locally as the owner, or remotely as a client. */
export class Membership implements LeaseRoute {
  readonly leases: SharedLeases;
  private readonly database: string;
  private readonly options: SqliteOptions;
  private readonly identity: StoreIdentity;
  private ownership: Ownership | undefined;
  private connectedClient: StoreClient | undefined;
  private pendingJoin: Promise<void> | undefined;
  private closedFault: Fault | undefined;
  private lastSeen: { owner: ProcessId; report: CheckReport; keyId: string } | undefined;

  constructor(database: string, options: SqliteOptions) {
    this.database = database;
    this.options = options;
    this.identity = new StoreIdentity(database);
    this.leases = new SharedLeases(randomUUID(), this);
  }

  /** The local store while this process is the owner; otherwise undefined. Ends an ownership that was lost. */
  get local(): LocalStore | undefined {
    const store = this.ownership?.store;
    if (store?.stopFault?.code !== 'OWNERSHIP_LOST') return store;
    this.dropOwnership();
    return undefined;
  }

  /** The lease table while this process is the owner; otherwise undefined. */
  get leaseTable(): LeaseTable | undefined {
    return this.ownership?.leaseTable;
  }

  /** The connection to the owner while this process is a client; otherwise undefined. */
  get client(): StoreClient | undefined {
    return this.connectedClient;
  }

  /** The current owner, or the last one while this process looks for a new owner; at first, this process. */
  get owner(): ProcessId {
    return this.ownership?.ownerInfo ?? this.connectedClient?.owner ?? this.lastSeen?.owner ?? thisProcess();
  }

  /** The result of the check when the owner opened the file; without damage before this process has joined. */
  get report(): CheckReport {
    return this.lastSeen?.report ?? { checked: 'heads', damage: [] };
  }

  /** Throws KEYS_UNUSABLE unless the key of the store is in its file. */
  assertKey(): void {
    assertStoreKey(this.database, this.options.keyFile, this.lastSeen?.keyId ?? '');
  }

  /** Passes a message to the operator. */
  notify(message: string): void {
    this.options.notify?.(message);
  }

  /** Resolves once this process is the owner or a client. Rejects if that fails, or if this membership is closed. */
  async ensureJoined(): Promise<void> {
    this.assertOpen();
    if (this.local !== undefined || this.connectedClient !== undefined) return;
    this.pendingJoin ??= this.join().finally(() => {
      this.pendingJoin = undefined;
    });
    await this.pendingJoin;
  }

  /**
   * Performs an operation locally or through the owner, and repeats it if the connection to the owner is lost. An
   * operation that fails locally is not repeated.
   */
  async perform<T>(local: (store: LocalStore) => Promise<T>, remote: (client: StoreClient) => Promise<T>): Promise<T> {
    for (let disconnects = 0; ; ) {
      await this.ensureJoined();
      const store = this.local;
      if (store !== undefined) return local(store);
      const client = this.connectedClient;
      if (client === undefined) continue;
      const begun = performance.now();
      try {
        return await remote(client);
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
      }
      disconnects = performance.now() - begun < QUICK_DISCONNECT_MS ? disconnects + 1 : 0;
      if (disconnects > MAX_QUICK_DISCONNECTS)
        throw unreachableOwnerFault(this.database, client.owner, 'it closes every connection');
      if (disconnects > 1) await setTimeout(RETRY_DELAY_MS * disconnects);
    }
  }

  /**
   * Leaves the store. An owner first commits and answers the pending operations. The pending operations of a client,
   * and all later ones, are rejected with this fault.
   */
  async close(fault: Fault): Promise<void> {
    const isMissing = this.closedFault?.code === 'STORE_MISSING';
    this.closedFault = fault;
    await this.pendingJoin?.catch(() => undefined);
    if (this.leases.isStoredAsHolder && !isMissing) await this.removeStoredHolder().catch(() => undefined);
    this.connectedClient?.close();
    this.connectedClient = undefined;
    const { ownership } = this;
    if (ownership === undefined) return;
    const { store, server } = ownership;
    store.flush();
    // One iteration of the event loop sends the acknowledgements of that commit to the clients.
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

  /**
   * Removes this process from the stored lease holders. A later owner would wait for it, because the process lives on.
   * If the owner ends meanwhile, asks the next one, or becomes it.
   */
  private async removeStoredHolder(): Promise<void> {
    const { leases } = this;
    const deadline = performance.now() + MAX_LEAVE_MS;
    const assertInTime = (): void => {
      if (performance.now() > deadline) throw this.closedFault;
    };
    for (;;) {
      const { ownership, connectedClient } = this;
      // The commit of `close` includes the removal.
      if (ownership !== undefined) return void ownership.store.removeClient(leases.id).catch(() => undefined);
      if (connectedClient === undefined) await this.join(assertInTime);
      else if (await leavesInTime(connectedClient, deadline)) return;
      assertInTime();
    }
  }

  /** Removes the owner file of this process and releases the lock, even if the file cannot be removed. */
  private releaseOwnership({ lock, ownerFileIdentity }: Pick<Ownership, 'lock' | 'ownerFileIdentity'>): void {
    try {
      removeOwnerFile(this.database, ownerFileIdentity);
    } catch (error) {
      throw toFault(error, 'Closing', this.database);
    } finally {
      lock.release();
    }
  }

  /** Ends the ownership after the store was lost to another process, removed or replaced. Writes nothing to it. */
  private dropOwnership(): void {
    const { ownership } = this;
    if (ownership === undefined) return;
    this.ownership = undefined;
    const { stopFault } = ownership.store;
    // A removed store must not be recreated while processes still work with it.
    if (stopFault?.code === 'STORE_MISSING') this.closedFault ??= stopFault;
    ownership.server.close();
    void ownership.store.close().catch(() => undefined);
    try {
      this.releaseOwnership(ownership);
    } catch {
      // The owner file remains and blocks other owners until this process ends. Operations here report why they fail.
    }
  }

  private assertOpen(): void {
    if (this.closedFault !== undefined) throw this.closedFault;
  }

  /** Ends this membership with STORE_MISSING if the store that it joined was removed or replaced. */
  private assertSameStore(): void {
    const fault = this.identity.changedFault();
    if (fault === undefined) return;
    this.closedFault ??= fault;
    throw fault;
  }

  /**
   * Becomes a client of the living owner, or the owner. Retries until that succeeds, `MAX_JOIN_MS` have passed, or
   * `assertWanted` throws.
   */
  private async join(assertWanted = () => this.assertOpen()): Promise<void> {
    let isReported = false;
    const listeningTime = new ListeningTime();
    listeningTime.start();
    const begun = performance.now();
    try {
      for (;;) {
        const owner = readLivingOwner(this.database);
        // After it is known who the owner is: it is that of this store, or of an earlier one.
        this.assertSameStore();
        let reason = owner === undefined ? undefined : await this.tryConnect(owner);
        if (owner !== undefined && reason === undefined) return;
        if (owner === undefined && this.defersToExistingClients(begun)) reason = 'its owner has ended';
        else if (owner === undefined || isLivenessUncertain(owner)) reason = await this.tryTakeOver();
        if (reason === undefined) return;
        assertWanted();
        if (listeningTime.elapsedMs > MAX_JOIN_MS) throw unjoinableStoreFault(this.database, owner, reason);
        if (listeningTime.elapsedMs > REPORT_AFTER_MS && !isReported) {
          isReported = true;
          this.notify(unjoinableStoreFault(this.database, owner, reason).message);
        }
        await setTimeout(RETRY_DELAY_MS * (0.5 + Math.random()));
      }
    } finally {
      listeningTime.stop();
    }
  }

  /**
   * True if this process is new and the last owner ended without removing its owner file. For `NEWCOMER_DELAY_MS`,
   * existing clients may then take over first.
   */
  private defersToExistingClients(begun: number): boolean {
    const isNewcomer = this.lastSeen === undefined && performance.now() - begun < NEWCOMER_DELAY_MS;
    return isNewcomer && readOwnerFile(this.database) !== undefined;
  }

  /**
   * Connects to this owner as a client. Returns the reason if a retry may succeed. Throws if the owner is unresponsive
   * or runs another version, or if the option `accept` is set, which only an owner can apply.
   */
  private async tryConnect(owner: OwnerInfo): Promise<string | undefined> {
    if (this.options.accept !== undefined) {
      throw unreachableOwnerFault(this.database, owner, "accept: 'loss' needs exclusive use of the store");
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
      this.identity.note();
      this.lastSeen = { owner, report: client.report ?? this.report, keyId: client.keyId };
      return undefined;
    } catch (error) {
      if (error instanceof Fault) throw error;
      if (!(error instanceof HandshakeError) || error.reason !== 'version') {
        return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
      }
      throw unreachableOwnerFault(this.database, owner, `it runs another version of Rondo. ${error.message}`);
    }
  }

  private handleDisconnect(client: StoreClient | undefined): void {
    if (client === undefined || this.connectedClient !== client) return;
    this.connectedClient = undefined;
    // Rejoins immediately, even without a pending operation, so that a new process finds an owner.
    if (this.closedFault === undefined) this.ensureJoined().catch(() => undefined);
  }

  /** Takes over ownership. Returns the reason if another process is the owner or becomes it; throws other failures. */
  private async tryTakeOver(): Promise<string | undefined> {
    let candidacy: OwnershipCandidacy | undefined;
    let ownerFileIdentity = '';
    try {
      const result = await tryToAcquireOwnership(this.database);
      if (typeof result === 'string') return result;
      candidacy = result;
      this.assertSameStore();
      const owner = readLivingOwner(this.database);
      if (owner === undefined || owner.secret === candidacy.previousOwner?.secret) {
        // Written first, so that other processes can name the owner while the database is opened and checked.
        const recentCheckAt = recentCheckOf(candidacy.previousOwner);
        const checkedAt = recentCheckAt ?? Date.now();
        ownerFileIdentity = writeOwnerFile(this.database, { ...candidacy.ownerInfo, checkedAt });
        await this.becomeOwner(candidacy, ownerFileIdentity, recentCheckAt !== undefined);
        return undefined;
      }
      candidacy.lock.release();
      return 'it is about to listen';
    } catch (error) {
      if (candidacy !== undefined) this.releaseOwnership({ ...candidacy, ownerFileIdentity });
      const fault = toFault(error, 'Opening', this.database);
      // Another process has the database open. It is about to become the owner or to end.
      if (fault.code === 'STORE_OWNED') return 'its database is locked';
      throw fault;
    }
  }

  /**
   * Opens the database, restores the leases of this process, and starts to serve clients. `isChecked` is true if a full
   * check began shortly before.
   */
  private async becomeOwner(
    { lock, ownerInfo }: OwnershipCandidacy,
    ownerFileIdentity: string,
    isChecked: boolean,
  ): Promise<void> {
    // A client that takes over has just used the store, and other clients wait, so by default it checks the heads only.
    const headsOnly = isChecked || this.lastSeen !== undefined;
    const store = openLocalStore(this.database, headsOnly ? { check: 'heads', ...this.options } : this.options);
    try {
      const { id, selfProcess } = this.leases;
      const registry = {
        add: (clientId: string, process: ProcessId) => store.addClient(clientId, process),
        remove: (clientId: string) => store.removeClient(clientId).catch(() => undefined),
      };
      const survivors = new Map([...store.recordedClients()].filter(([clientId]) => clientId !== id));
      const leaseTable = new LeaseTable(registry, survivors);
      for (const { session, turn } of this.leases.heldSessions()) leaseTable.tryHold(session, turn, selfProcess);
      const { socket: address, secret } = ownerInfo;
      const server = await StoreServer.listen({ store, address, secret, leaseTable });
      store.setListening(true);
      this.identity.note();
      this.ownership = { store, lock, ownerInfo, ownerFileIdentity, leaseTable, server };
      store.onLost = () => {
        if (this.ownership?.store === store) this.dropOwnership();
      };
      this.lastSeen = { owner: ownerInfo, report: store.report, keyId: store.keyId };
    } catch (error) {
      await store.close().catch(() => undefined);
      throw error;
    }
  }
}

/**
 * Returns when the last full check began if that is less than `RECENT_CHECK_MS` ago. A time in the future, after a change
 * of the clock, does not count.
 */
function recentCheckOf(owner: OwnerInfo | undefined): number | undefined {
  const ageMs = Date.now() - (owner?.checkedAt ?? 0);
  // guard: old-check-repeated
  if (ageMs < 0 || ageMs >= RECENT_CHECK_MS) return undefined;
  return owner?.checkedAt;
}

/** Leaves the owner; false if the connection to it is lost or its time is up. */
async function leavesInTime(client: StoreClient, deadline: number): Promise<boolean> {
  const left = client.request('bye', {}).then(
    () => true,
    () => false,
  );
  const timeout = new AbortController();
  const isLate = setTimeout(deadline - performance.now(), false, { signal: timeout.signal }).catch(() => false);
  const isLeft = await Promise.race([left, isLate]);
  timeout.abort();
  return isLeft;
}
