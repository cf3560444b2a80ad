/**
 * The leases of this process: which sessions it works on, and who in it answers for each. The owner keeps the table of all
 * processes; a client keeps its own part, to tell it to the next owner.
 */
import { setTimeout } from 'node:timers/promises';
import type { AskOptions, Holding, Lease, LeaseHolder, Leases, Reply } from '../../journal/store.js';
import type { Json } from '../../protocol/json.js';
import type { LocalStore } from './local-store.js';
import { type ProcessId, type ProcessState, stateOf, thisProcess } from './owner/process.js';
import { holderFault, holderSilent } from './owner/words.js';
import type { Client, HeldSession } from './wire/client.js';
import { ConnectionLost } from './wire/errors.js';
import type { Member, Peers, Sink } from './wire/peers.js';
import { REPORT_MS, Silence } from './wire/silence.js';

/** How often the state of a process that was asked is looked at, and the pause before it is asked again. */
const STATE_MS = 500;
const AGAIN_MS = 20;

/** How leases reach the table: in this process if it is the owner, else through its client. */
export interface LeaseRoute {
  /** The table, while this process is the owner. */
  readonly peers: Peers | undefined;
  readonly client: Client | undefined;
  perform<T>(local: (store: LocalStore) => Promise<T>, remote: (client: Client) => Promise<T>): Promise<T>;
  notify(message: string): void;
}

export class SharedLeases implements Leases {
  readonly id: string;
  /** This process as the table knows it while it is the owner. */
  readonly member: Member;
  private readonly route: LeaseRoute;
  private readonly own = new Map<string, LeaseHolder>();

  constructor(id: string, route: LeaseRoute) {
    this.id = id;
    this.route = route;
    const ask = (session: string, request: Json, sink: Sink): Promise<Reply> => {
      sink.ack();
      return this.answer(session, request, (piece, droppable) => sink.piece(piece, droppable));
    };
    this.member = { id, process: thisProcess(), ask };
  }

  acquire(session: string, holder: LeaseHolder): Lease | undefined | Promise<Lease | undefined> {
    const { peers } = this.route;
    if (peers === undefined || peers.settled !== undefined) return this.acquireLater(session, holder);
    return peers.hold(session, holder.turn, this.member) ? this.grant(session, holder) : undefined;
  }

  private async acquireLater(session: string, holder: LeaseHolder): Promise<Lease | undefined> {
    const { turn } = holder;
    const held = await this.route.perform(
      async () => {
        const { peers } = this.route;
        if (peers?.settled !== undefined) await peers.settled;
        return peers?.hold(session, turn, this.member) === true;
      },
      async (client) => (await client.request('acquire', { session, turn })) === true,
    );
    return held ? this.grant(session, holder) : undefined;
  }

  /** A second lease of this process replaces the first, whose release then does nothing. */
  private grant(session: string, holder: LeaseHolder): Lease {
    const own: LeaseHolder = { ...holder, answer: (request, send) => holder.answer(request, send) };
    this.own.set(session, own);
    return {
      release: () => {
        if (this.own.get(session) !== own) return;
        this.own.delete(session);
        const { peers, client } = this.route;
        if (peers !== undefined) peers.release(session, this.id);
        else client?.tell('release', { session });
      },
    };
  }

  list(): Promise<readonly Holding[]> {
    return this.route.perform(
      async () => this.route.peers?.list() ?? [],
      (client) => client.request('holdings', {}) as Promise<readonly Holding[]>,
    );
  }

  /** What this process holds, for a new owner. */
  held(): readonly HeldSession[] {
    return Array.from(this.own, ([session, { turn }]) => ({ session, turn }));
  }

  /** Answers a request of another process for a session that this one holds. */
  async answer(session: string, request: Json, send: (piece: Json, droppable?: boolean) => void): Promise<Reply> {
    const own = this.own.get(session);
    if (own === undefined) return { status: 'nobody' };
    return { status: 'answered', value: await own.answer(request, send) };
  }

  async ask(session: string, request: Json, { onPiece, timeoutMs }: AskOptions = {}): Promise<Reply> {
    const watch = new HolderWatch((message) => this.route.notify(message));
    const sink: Sink = {
      asked: (process) => watch.begin(process),
      ack: () => watch.end(),
      piece: (piece) => onPiece?.(piece),
    };
    const asking = this.route.perform(
      async (): Promise<Reply> => this.route.peers?.ask(session, request, this.id, sink) ?? { status: 'nobody' },
      // Whether a request that was lost on its way may be repeated is for the one who asks to say.
      (client) => client.ask(session, request, sink).catch(lost),
    );
    try {
      const ends = [asking, watch.silent, ...(timeoutMs === undefined ? [] : [watch.timeout(timeoutMs)])];
      const reply = await Promise.race(ends);
      // Whoever asks again is not to do so without a pause.
      if (reply.status !== 'answered' && watch.asked !== undefined) await setTimeout(AGAIN_MS);
      return reply;
    } finally {
      watch.close();
      asking.catch(() => undefined);
    }
  }
}

function lost(thrown: unknown): Reply {
  if (thrown instanceof ConnectionLost) return { status: 'lost' };
  throw thrown;
}

/** Watches a process that was asked, until it says that it has the request. */
class HolderWatch {
  readonly silent: Promise<never>;
  private reject: (error: Error) => void = () => {};
  private silence: Silence | undefined;
  private stopped: NodeJS.Timeout | undefined;
  /** The process that was asked, once the owner has said which it is. */
  asked: ProcessId | undefined;
  private timer: NodeJS.Timeout | undefined;
  /** Keeps the process alive while it waits: the sockets of an owner do not. */
  private readonly alive = setInterval(() => {}, 2 ** 30);
  private readonly notify: (message: string) => void;

  constructor(notify: (message: string) => void) {
    this.notify = notify;
    this.silent = new Promise((_, reject) => {
      this.reject = reject;
    });
    this.silent.catch(() => undefined);
  }

  begin(process: ProcessId): void {
    this.asked = process;
    this.silence ??= new Silence({
      since: () => 0,
      state: () => stateOf(process),
      report: (state: ProcessState) => this.notify(holderSilent(process, state)),
      giveUp: (state: ProcessState) => this.reject(holderFault(process, state)),
    });
    this.silence.start();
  }

  /** The process has the request, and may take its time; but one that is stopped does nothing. */
  end(): void {
    this.silence?.stop();
    const { asked } = this;
    if (asked === undefined || this.stopped !== undefined) return;
    let since = performance.now();
    this.stopped = setInterval(() => {
      const now = performance.now();
      if (stateOf(asked) !== 'stopped') since = now;
      else if (now - since >= REPORT_MS) this.reject(holderFault(asked, 'stopped'));
    }, STATE_MS);
  }

  timeout(ms: number): Promise<Reply> {
    return new Promise((resolve) => {
      this.timer = globalThis.setTimeout(() => resolve({ status: 'lost' }), ms);
    });
  }

  close(): void {
    this.silence?.stop();
    clearTimeout(this.timer);
    clearInterval(this.stopped);
    clearInterval(this.alive);
  }
}
