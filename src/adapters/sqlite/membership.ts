/**
 * The part of this process in a shared store: its owner, or a client of the owner. It finds the owner, becomes it when there is
 * none, and changes its part when the owner goes or another process has taken over.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { Report } from './check.js';
import { faultOf } from './failure.js';
import type { LocalStore } from './local-store.js';
import { openLocal, type SqliteOptions } from './open.js';
import { type Candidacy, contend, isUncertain, LOCKED, livingOwner } from './owner/contend.js';
import { lockHolder, type OwnerLock } from './owner/lock.js';
import { type ProcessId, type ProcessState, thisProcess } from './owner/process.js';
import { type OwnerRecord, readOwner, removeOwner, writeOwner } from './owner/record.js';
import { ownerFault, ownerSilent, unreachable } from './owner/words.js';
import { type LeaseRoute, SharedLeases } from './shared-leases.js';
import { Client } from './wire/client.js';
import { ConnectionLost } from './wire/errors.js';
import { HandshakeError } from './wire/handshake.js';
import { Peers } from './wire/peers.js';
import { StoreServer } from './wire/server.js';
import { ListeningTime, REPORT_MS } from './wire/silence.js';

/** How long an owner that cannot be reached is looked for. */
const PATIENCE_MS = 8500;
const RETRY_MS = 10;
/**
 * How long a process that has not shared the store yet leaves it to those that did when its owner was killed. They are waiting, know what
 * they are waiting for, and need not read a small store as a whole first.
 */
const GIVE_WAY_MS = 250;
/** An owner that closes so many connections in a row, each after so little time, is of no use. */
const MAX_LOST = 20;
const QUICK_MS = 1000;

/** What this process has while it is the owner. */
interface Ownership {
  readonly store: LocalStore;
  readonly lock: OwnerLock;
  readonly record: OwnerRecord;
  /** The file of the record. */
  readonly file: string;
  readonly peers: Peers;
  readonly server: StoreServer;
}

export class Membership implements LeaseRoute {
  readonly leases: SharedLeases;
  private readonly database: string;
  private readonly options: SqliteOptions;
  private ownership: Ownership | undefined;
  private connected: Client | undefined;
  private joining: Promise<void> | undefined;
  private closed: Fault | undefined;
  private known: { owner: ProcessId; report: Report } | undefined;

  constructor(database: string, options: SqliteOptions) {
    this.database = database;
    this.options = options;
    this.leases = new SharedLeases(randomUUID(), this);
  }

  /** The store itself, while this process is the owner. */
  get local(): LocalStore | undefined {
    const store = this.ownership?.store;
    if (store?.stopped?.code !== 'OWNERSHIP_LOST') return store;
    this.abdicate();
    return undefined;
  }

  get peers(): Peers | undefined {
    return this.ownership?.peers;
  }

  get client(): Client | undefined {
    return this.connected;
  }

  /** The owner that was last seen. */
  get owner(): ProcessId {
    return this.ownership?.record ?? this.connected?.owner ?? this.known?.owner ?? thisProcess();
  }

  get report(): Report {
    return this.known?.report ?? { checked: 'heads', damage: [] };
  }

  notify(message: string): void {
    this.options.notify?.(message);
  }

  /** Resolves once this process is the owner or a client. */
  async role(): Promise<void> {
    this.assertOpen();
    if (this.local !== undefined || this.connected !== undefined) return;
    this.joining ??= this.join().finally(() => {
      this.joining = undefined;
    });
    await this.joining;
  }

  /** Does something with the store, here or through the owner; it is done again if the owner went away meanwhile. */
  async perform<T>(local: (store: LocalStore) => Promise<T>, remote: (client: Client) => Promise<T>): Promise<T> {
    for (let lost = 0; ; ) {
      await this.role();
      const store = this.local;
      if (store !== undefined) return local(store);
      const client = this.connected;
      if (client === undefined) continue;
      const begun = performance.now();
      try {
        return await remote(client);
      } catch (thrown) {
        if (!(thrown instanceof ConnectionLost)) throw thrown;
      }
      lost = performance.now() - begun < QUICK_MS ? lost + 1 : 0;
      if (lost > MAX_LOST) throw unreachable(this.database, client.owner, 'it closes every connection');
      if (lost > 1) await setTimeout(RETRY_MS * lost);
    }
  }

  /** Commits and answers what is under way, then leaves the store to the others. */
  async close(fault: Fault): Promise<void> {
    this.closed = fault;
    await this.joining?.catch(() => undefined);
    this.connected?.close();
    this.connected = undefined;
    const { ownership } = this;
    if (ownership === undefined) return;
    const { store, server } = ownership;
    store.flush();
    // The acknowledgements of that commit are on their way to the clients.
    await setImmediate();
    if (this.ownership !== ownership) return;
    store.listening(false);
    server.close();
    this.ownership = undefined;
    try {
      await store.close();
    } finally {
      this.giveBack(ownership);
    }
  }

  private giveBack({ lock, file }: Pick<Ownership, 'lock' | 'file'>): void {
    try {
      removeOwner(this.database, file);
    } catch (error) {
      throw faultOf(error, 'Closing', this.database);
    } finally {
      lock.release();
    }
  }

  /** The store is another process's now, or gone: everything of this one's ownership is dropped, and nothing more is written. */
  private abdicate(): void {
    const { ownership } = this;
    if (ownership === undefined) return;
    this.ownership = undefined;
    const { stopped } = ownership.store;
    // A store that was removed is not made anew under the hands of those who work on it.
    if (stopped?.code === 'STORE_MISSING') this.closed ??= stopped;
    ownership.server.close();
    void ownership.store.close().catch(() => undefined);
    try {
      this.giveBack(ownership);
    } catch {
      // The record stays and is believed as long as this process lives; whoever writes here is told why it cannot.
    }
  }

  private assertOpen(): void {
    if (this.closed !== undefined) throw this.closed;
  }

  private async join(): Promise<void> {
    let reported = false;
    const time = new ListeningTime();
    time.start();
    const begun = performance.now();
    try {
      for (;;) {
        const owner = livingOwner(this.database);
        let why = owner === undefined ? undefined : await this.connect(owner);
        if (owner !== undefined && why === undefined) return;
        if (owner === undefined && this.givesWay(begun)) why = 'its owner has ended';
        else if (owner === undefined || isUncertain(owner)) why = await this.takeOver();
        if (why === undefined) return;
        this.assertOpen();
        if (time.ms > PATIENCE_MS) throw this.unreached(owner, why);
        if (time.ms > REPORT_MS && !reported) {
          reported = true;
          this.notify(this.unreached(owner, why).message);
        }
        await setTimeout(RETRY_MS * (0.5 + Math.random()));
      }
    } finally {
      time.stop();
    }
  }

  /** True while others have the first chance to succeed an owner that ended without removing its record. */
  private givesWay(begun: number): boolean {
    const isNew = this.known === undefined && performance.now() - begun < GIVE_WAY_MS;
    return isNew && readOwner(this.database) !== undefined;
  }

  private unreached(owner: OwnerRecord | undefined, why: string): Fault {
    const { database } = this;
    // Who else waits takes the lock for a moment, too, when it is free.
    const holder = why === LOCKED ? lockHolder(database) : undefined;
    return unreachable(database, owner ?? readOwner(database) ?? holder, why);
  }

  /** Becomes a client of this owner; else the reason why not. */
  private async connect(owner: OwnerRecord): Promise<string | undefined> {
    if (this.options.accept !== undefined) {
      throw unreachable(this.database, owner, "accept: 'loss' needs the store for this process alone");
    }
    let client: Client | undefined;
    try {
      client = await Client.open({
        owner,
        id: this.leases.id,
        process: thisProcess(),
        held: () => this.leases.held(),
        answer: (session, request, send) => this.leases.answer(session, request, send),
        report: (state: ProcessState) => this.notify(ownerSilent(this.database, owner, state)),
        silent: (state: ProcessState) => ownerFault(this.database, owner, state),
        closed: () => this.disconnected(client),
      });
      this.connected = client;
      this.known = { owner, report: client.report ?? this.report };
      return undefined;
    } catch (thrown) {
      if (thrown instanceof Fault) throw thrown;
      if (!(thrown instanceof HandshakeError) || thrown.reason !== 'version') {
        return (thrown instanceof Error ? thrown.message : String(thrown)).replace(/\.$/, '');
      }
      throw unreachable(this.database, owner, `it runs another version of Rondo. ${thrown.message}`);
    }
  }

  private disconnected(client: Client | undefined): void {
    if (client === undefined || this.connected !== client) return;
    this.connected = undefined;
    // At once, whether or not anything is asked for: somebody has to be there when a new process comes.
    if (this.closed === undefined) this.role().catch(() => undefined);
  }

  /** Becomes the owner; else the reason why not. */
  private async takeOver(): Promise<string | undefined> {
    let candidacy: Candidacy | undefined;
    let file = '';
    try {
      const found = await contend(this.database);
      if (typeof found === 'string') return found;
      candidacy = found;
      const owner = livingOwner(this.database);
      if (owner === undefined || owner.secret === candidacy.last?.secret) {
        // First of all, so that others know whom they wait for while the database is opened and checked.
        file = writeOwner(this.database, candidacy.record);
        await this.own(candidacy, file);
        return undefined;
      }
      candidacy.lock.release();
      return 'it is about to listen';
    } catch (error) {
      if (candidacy !== undefined) this.giveBack({ ...candidacy, file });
      const fault = faultOf(error, 'Opening', this.database);
      // Another process has the database open; it will turn out to be the owner, or gone.
      if (fault.code === 'STORE_OWNED') return 'its database is locked';
      throw fault;
    }
  }

  private async own({ lock, record }: Candidacy, file: string): Promise<void> {
    // Who takes over has used the store until now, and the others wait: what was written long ago is not read again.
    const options: SqliteOptions = this.known === undefined ? this.options : { check: 'heads', ...this.options };
    const store = openLocal(this.database, options);
    try {
      const { id, member } = this.leases;
      const register = {
        add: (peer: string, process: ProcessId) => store.addPeer(peer, process),
        remove: (peer: string) => void store.removePeer(peer).catch(() => undefined),
      };
      const survivors = new Map([...store.peers()].filter(([peer]) => peer !== id));
      const peers = new Peers(register, survivors);
      for (const { session, turn } of this.leases.held()) peers.hold(session, turn, member);
      const { socket: address, secret } = record;
      const server = await StoreServer.listen({ store, address, secret, peers });
      store.listening(true);
      this.ownership = { store, lock, record, file, peers, server };
      store.onLost = () => {
        if (this.ownership?.store === store) this.abdicate();
      };
      this.known = { owner: record, report: store.report };
    } catch (error) {
      await store.close().catch(() => undefined);
      throw error;
    }
  }
}
