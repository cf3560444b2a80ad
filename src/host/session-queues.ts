/**
 * Serializes tasks per session: within this process by a queue, between the processes that share the store by a lease
 * (the claim of one process to a session). A task waits while another process holds its session.
 */
import { NOOP_LEASE } from '../journal/leases.js';
import type { Lease, LeaseHolder, Leases } from '../journal/store.js';
import { untilClosed } from './until-closed.js';

/** A task that needs a session exclusively. */
interface SessionTask<T> {
  readonly sessionId: string;
  /** The turn that the task is for; other processes see it with the lease. */
  readonly turnId: string;
  perform(): Promise<T>;
  /**
   * Called while another process holds the session. The lease is requested again when it resolves. Undefined to give the
   * task up instead: it then ends with undefined and is not performed.
   */
  readonly whileHeldElsewhere: (() => Promise<void>) | undefined;
}

/** One queue of tasks per session. */
export class SessionQueues {
  private readonly leases: Leases;
  private readonly answerPeer: LeaseHolder['handleRequest'];
  private readonly closing: () => AbortSignal;
  /** The last queued task of each session that has one. */
  private readonly lastTasks = new Map<string, Promise<unknown>>();
  /** The tasks that run under a lease of this process, by session. */
  private activeTasks: Map<string, Promise<unknown>> | undefined;

  /**
   * `answerPeer` answers requests of other processes for the sessions that this process holds. When the signal of `closing` is
   * aborted, tasks that wait for another process end with SESSION_CLOSED.
   */
  constructor(leases: Leases, closing: () => AbortSignal, answerPeer: LeaseHolder['handleRequest']) {
    this.leases = leases;
    this.closing = closing;
    this.answerPeer = answerPeer;
  }

  /** Runs a task after all earlier tasks of its session, even if they failed, and settles like the task. */
  run<T>(task: SessionTask<T>): Promise<T> {
    const { sessionId } = task;
    const previous = this.lastTasks.get(sessionId);
    const start = (): Promise<T> => this.start(task);
    const done = previous === undefined ? start() : previous.then(start, start);
    this.lastTasks.set(sessionId, done);
    const removeFromQueue = (): void => {
      if (this.lastTasks.get(sessionId) === done) this.lastTasks.delete(sessionId);
    };
    done.then(removeFromQueue, removeFromQueue);
    return done;
  }

  /** Returns the task of this process that is last in the queue of a session; undefined if there is none. */
  lastTask(sessionId: string): Promise<unknown> | undefined {
    return this.lastTasks.get(sessionId);
  }

  /** True if a task of the session runs or waits in this process. */
  isBusy(sessionId: string): boolean {
    return this.lastTasks.has(sessionId);
  }

  /** Runs a task if its session is free, here and in other processes; returns undefined without waiting otherwise. */
  async tryRun<T>(sessionId: string, turnId: string, perform: () => Promise<T>): Promise<T | undefined> {
    if (this.isBusy(sessionId)) return undefined;
    return this.run<T | undefined>({ sessionId, turnId, perform, whileHeldElsewhere: undefined });
  }

  /**
   * Resolves when the task that runs in this session under a lease of this process has ended; at once if there is none.
   */
  async whenIdle(sessionId: string): Promise<void> {
    await this.activeTasks?.get(sessionId)?.catch(() => undefined);
  }

  private start<T>(task: SessionTask<T>): Promise<T> {
    const lease = this.acquireLease(task);
    // A store that only one process uses has no leases, so its turns skip the bookkeeping.
    return lease === NOOP_LEASE ? task.perform() : this.runWithLease(task, lease);
  }

  private acquireLease({ sessionId, turnId }: SessionTask<unknown>): ReturnType<Leases['acquire']> {
    return this.leases.acquire(sessionId, { turn: turnId, handleRequest: this.answerPeer });
  }

  private async runWithLease<T>(task: SessionTask<T>, firstAttempt: ReturnType<Leases['acquire']>): Promise<T> {
    const { sessionId } = task;
    let lease: Lease | undefined = await firstAttempt;
    while (lease === undefined) {
      if (task.whileHeldElsewhere === undefined) return undefined as T;
      await untilClosed(task.whileHeldElsewhere(), this.closing());
      lease = await this.acquireLease(task);
    }
    try {
      const done = task.perform();
      this.activeTasks ??= new Map();
      this.activeTasks.set(sessionId, done);
      return await done;
    } finally {
      this.activeTasks?.delete(sessionId);
      lease.release();
    }
  }
}
