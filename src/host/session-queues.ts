/**
 * Work on sessions, one at a time for each: in this process by a queue, among the processes that share the store by a lease.
 * While another process holds a session, the work waits and is told so.
 */
import { NOOP_LEASE } from '../journal/leases.js';
import type { Lease, LeaseHolder, Leases } from '../journal/store.js';

/** A piece of work on a session. */
export interface SessionTask<T> {
  readonly sessionId: string;
  /** The turn that it is about. */
  readonly turnId: string;
  perform(): Promise<T>;
  /** Called while another process holds the session; when it returns, the session is tried again. */
  whileHeldElsewhere(): Promise<void>;
}

export class SessionQueues {
  private readonly leases: Leases;
  private readonly answerPeer: LeaseHolder['handleRequest'];
  private readonly lastTasks = new Map<string, Promise<unknown>>();
  /** What this process is doing in the sessions that it holds. */
  private activeTasks: Map<string, Promise<unknown>> | undefined;

  /** `answer` answers other processes for the sessions that this one holds. */
  constructor(leases: Leases, answer: LeaseHolder['handleRequest']) {
    this.leases = leases;
    this.answerPeer = answer;
  }

  run<T>(task: SessionTask<T>): Promise<T> {
    const { sessionId } = task;
    const before = this.lastTasks.get(sessionId);
    const enter = (): Promise<T> => this.start(task);
    const done = before === undefined ? enter() : before.then(enter, enter);
    this.lastTasks.set(sessionId, done);
    const leave = (): void => {
      if (this.lastTasks.get(sessionId) === done) this.lastTasks.delete(sessionId);
    };
    done.then(leave, leave);
    return done;
  }

  /** Resolves when the work that this process does on a session at the moment has ended. */
  async whenIdle(sessionId: string): Promise<void> {
    await this.activeTasks?.get(sessionId)?.catch(() => undefined);
  }

  private start<T>(task: SessionTask<T>): Promise<T> {
    const lease = this.acquireLease(task);
    // A store of one process has nothing to hold, and its turns do not pay for it.
    return lease === NOOP_LEASE ? task.perform() : this.runWithLease(task, lease);
  }

  private acquireLease({ sessionId, turnId }: SessionTask<unknown>): ReturnType<Leases['acquire']> {
    return this.leases.acquire(sessionId, { turn: turnId, handleRequest: this.answerPeer });
  }

  private async runWithLease<T>(task: SessionTask<T>, first: ReturnType<Leases['acquire']>): Promise<T> {
    const { sessionId } = task;
    let lease: Lease | undefined = await first;
    while (lease === undefined) {
      await task.whileHeldElsewhere();
      lease = await this.acquireLease(task);
    }
    try {
      const working = task.perform();
      this.activeTasks ??= new Map();
      this.activeTasks.set(sessionId, working);
      return await working;
    } finally {
      this.activeTasks?.delete(sessionId);
      lease.release();
    }
  }
}
