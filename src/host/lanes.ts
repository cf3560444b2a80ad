/**
 * Work on sessions, one at a time for each: in this process by a queue, among the processes that share the store by a lease.
 * While another process holds a session, the work waits and is told so.
 */
import { FREE_LEASE } from '../journal/leases.js';
import type { Lease, LeaseHolder, Leases } from '../journal/store.js';

/** A piece of work on a session. */
export interface SessionWork<T> {
  readonly sessionId: string;
  /** The turn that it is about. */
  readonly turnId: string;
  work(): Promise<T>;
  /** Called while another process holds the session; when it returns, the session is tried again. */
  elsewhere(): Promise<void>;
}

export class Lanes {
  private readonly leases: Leases;
  private readonly answer: LeaseHolder['answer'];
  private readonly lanes = new Map<string, Promise<unknown>>();
  /** What this process is doing in the sessions that it holds. */
  private current: Map<string, Promise<unknown>> | undefined;

  /** `answer` answers other processes for the sessions that this one holds. */
  constructor(leases: Leases, answer: LeaseHolder['answer']) {
    this.leases = leases;
    this.answer = answer;
  }

  run<T>(task: SessionWork<T>): Promise<T> {
    const { sessionId } = task;
    const before = this.lanes.get(sessionId);
    const enter = (): Promise<T> => this.enter(task);
    const done = before === undefined ? enter() : before.then(enter, enter);
    this.lanes.set(sessionId, done);
    const leave = (): void => {
      if (this.lanes.get(sessionId) === done) this.lanes.delete(sessionId);
    };
    done.then(leave, leave);
    return done;
  }

  /** Resolves when the work that this process does on a session at the moment has ended. */
  async idle(sessionId: string): Promise<void> {
    await this.current?.get(sessionId)?.catch(() => undefined);
  }

  private enter<T>(task: SessionWork<T>): Promise<T> {
    const lease = this.acquire(task);
    // A store of one process has nothing to hold, and its turns do not pay for it.
    return lease === FREE_LEASE ? task.work() : this.hold(task, lease);
  }

  private acquire({ sessionId, turnId }: SessionWork<unknown>): ReturnType<Leases['acquire']> {
    return this.leases.acquire(sessionId, { turn: turnId, answer: this.answer });
  }

  private async hold<T>(task: SessionWork<T>, first: ReturnType<Leases['acquire']>): Promise<T> {
    const { sessionId } = task;
    let lease: Lease | undefined = await first;
    while (lease === undefined) {
      await task.elsewhere();
      lease = await this.acquire(task);
    }
    try {
      const working = task.work();
      this.current ??= new Map();
      this.current.set(sessionId, working);
      return await working;
    } finally {
      this.current?.delete(sessionId);
      lease.release();
    }
  }
}
