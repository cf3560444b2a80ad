/**
 * The worker: continues turns that are due, of any process that shares the store: sleeping turns whose timer has fired,
 * turns with a delivered signal, an answer or an expired approval, and interrupted turns. It finds them in the store's
 * index of due turns. A lease decides which process runs a turn, so any number of workers may run on one store.
 */
import { errorCodes, Fault, LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { DueTurn, DueTurns } from '../journal/due-turns.js';
import type { Leases } from '../journal/store.js';
import type { HostedPauseReason, HostedStopReason } from '../protocol/hosted-loop.js';
import type { PausedResult, TurnResult } from '../protocol/trace.js';
import { ignoringErrors } from './session-feed.js';

/** A turn that a worker could not continue. It is tried again later. */
export interface WorkProblem {
  readonly turnId: string;
  readonly sessionId: string;
  readonly code: string;
  readonly message: string;
}

/** A hosted loop that has stopped, and why. */
export interface HostedLoopStop {
  readonly loop: string;
  readonly reason: HostedStopReason;
  readonly message: string;
}

/** A hosted loop that is paused until its operator has repaired something and resumes it. */
export interface HostedLoopPause {
  readonly loop: string;
  /** What has to be repaired. */
  readonly reason: HostedPauseReason;
  readonly message: string;
}

/** Receives what became of a hosted loop. */
export interface HostedLoopListener {
  onStop(stop: HostedLoopStop): void;
  onPause(pause: HostedLoopPause): void;
}

/** Options of `Host.work`. */
export interface WorkOptions {
  /**
   * How many turns run at the same time.
   * @default 16
   */
  readonly concurrency?: number;
  /** Stops the worker when it is aborted; turns that it runs are not interrupted. */
  readonly signal?: AbortSignal;
  /**
   * True to continue what is due now and return, false to continue until the worker is stopped.
   * @default false
   */
  readonly once?: boolean;
  /**
   * Receives the result of each turn that the worker has continued. Errors that it throws are ignored.
   * @default a warning of the process, which Node prints to stderr, for each turn that failed or was stopped
   */
  readonly onResult?: (result: TurnResult) => void;
  /**
   * Receives each hosted loop that the worker has stopped, after the result of its last turn. Errors are ignored.
   * @default a warning of the process
   */
  readonly onStop?: (stop: HostedLoopStop) => void;
  /**
   * Receives each hosted loop that the worker has paused, because its operator has to repair something. Errors are ignored.
   * @default a warning of the process
   */
  readonly onPause?: (pause: HostedLoopPause) => void;
  /**
   * Receives each turn that could not be continued, once per error code, and each turn that waits because it is unknown
   * whether an effect happened (EFFECT_IN_DOUBT). A turn whose loop is not registered here is reported only if no other
   * process continues it soon. Errors that it throws are ignored.
   * @default a warning of the process
   */
  readonly onProblem?: (problem: WorkProblem) => void;
}

/** What a worker needs of the host. */
interface WorkerDeps {
  readonly dueTurns: DueTurns;
  readonly leases: Leases;
  readonly clock: Clock;
  /** Returns the time of the last entry of a session, by the wall clock when it was written. */
  lastWrittenAt(sessionId: string): Promise<number>;
  /** Rebuilds the index if it is incomplete. */
  rebuild(): Promise<void>;
  /** Returns the session whose lease decides who works on a session: another one for the turns of hosted loops. */
  leasedSession(sessionId: string): string;
  /** True if a task of the session runs or waits in this process. */
  isBusy(sessionId: string): boolean;
  /** Continues a turn. Returns undefined without waiting if its session is not free. */
  continueTurn(turnId: string, sessionId: string, listener: HostedLoopListener): Promise<TurnResult | undefined>;
}

/** The wait before a turn that could not be continued is tried again. */
interface Backoff {
  readonly attempts: number;
  /** By the monotonic clock. */
  readonly until: number;
  /** The problem of the last attempt; undefined if the session was not free. */
  readonly problem: WorkProblem | undefined;
  /** The codes that were reported for this turn. */
  readonly reportedCodes: readonly string[];
}

/** The errors of a turn that could not continue and is unchanged. */
const STILL_DUE_CODES: ReadonlySet<string> = new Set(['REPLAY_MISMATCH', 'CONTEXT_CHANGED']);
const DEFAULT_CONCURRENCY = 16;
/** How often the index is read while nothing is known to be due, in milliseconds. Other processes may change it. */
const POLL_MS = 500;
const PAGE_SIZE = 100;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 60_000;
/** The wait after a fault of the store, in milliseconds. */
const STORE_RETRY_MS = 1000;
/** A wall clock that falls behind by at most this much was not set back: it is then slewed, or read a moment later. */
const MIN_SET_BACK_MS = 1000;
/** The number of turns whose backoffs are kept. Beyond it, the oldest one is forgotten. */
const MAX_BACKOFFS = 10_000;

const SEARCH_START: DueTurn = { dueAt: 0, session: '', turn: '' };

/** One worker of a host. */
export class Worker {
  private readonly deps: WorkerDeps;
  private readonly options: WorkOptions;
  /** The turns that this worker runs, by session. */
  private readonly active = new Map<string, Promise<void>>();
  private readonly backoffs = new Map<string, Backoff>();
  /**
   * The last turn that the search for turns which are due too late has looked at; undefined when the search has ended. A
   * worker searches when it starts, and when it notices that the wall clock was set back.
   */
  private searched: DueTurn | undefined = SEARCH_START;
  /** The last reading of both clocks. */
  private reading: { readonly wallMs: number; readonly elapsedMs: number } | undefined;
  private isStopped = false;
  private wake = new AbortController();

  constructor(deps: WorkerDeps, options: WorkOptions) {
    this.deps = deps;
    this.options = options;
  }

  /** Starts no further turn. `run` resolves when the turns of this worker have ended or paused. */
  stop(): void {
    this.isStopped = true;
    this.wake.abort();
  }

  /** Continues due turns until the worker is stopped or, with `once`, until nothing is due. */
  async run(): Promise<void> {
    const { signal, once = false } = this.options;
    const onAbort = (): void => this.stop();
    if (signal?.aborted) this.stop();
    signal?.addEventListener('abort', onAbort);
    try {
      await this.deps.rebuild();
      while (!this.isStopped) {
        this.wake = new AbortController();
        const startedCount = await this.survivingFaults(
          async () => (await this.startDueTurns()) + (await this.startLateTurns()),
        );
        if (once && startedCount === 0 && this.active.size === 0) {
          for (const turnId of this.backoffs.keys()) this.report(turnId);
          break;
        }
        await this.survivingFaults(() => this.waitForWork());
      }
      await Promise.all(this.active.values());
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /**
   * Does something with the store. After a fault that may pass, such as a full disk, waits and returns undefined; throws
   * any other.
   */
  private async survivingFaults<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (thrown) {
      if (this.isStopped) return undefined;
      if (!(thrown instanceof Fault) || !errorCodes[thrown.code].isRetryable) throw thrown;
      await this.deps.clock.sleep(STORE_RETRY_MS, this.wake.signal).catch(() => undefined);
      return undefined;
    }
  }

  /** Starts due turns, the oldest first, while there are free places. Returns how many it started. */
  private async startDueTurns(): Promise<number> {
    const { dueTurns, leases, clock } = this.deps;
    const { concurrency = DEFAULT_CONCURRENCY } = this.options;
    const now = clock.now();
    const heldSessions = new Set((await leases.list()).map(({ session }) => session));
    const obsoleteTurns = new Set(this.backoffs.keys());
    let startedCount = 0;
    let after: DueTurn | undefined;
    while (this.active.size < concurrency && !this.isStopped) {
      const page = await dueTurns.list(now, PAGE_SIZE, after);
      for (const due of page) {
        const isHeld = heldSessions.has(this.deps.leasedSession(due.session));
        // Another process continues the turn, so what is not yet reported is no problem.
        if (!isHeld || this.isReported(due.turn)) obsoleteTurns.delete(due.turn);
        if (this.active.size >= concurrency || isHeld || !this.isReady(due)) continue;
        this.start(due);
        startedCount += 1;
      }
      if (page.length < PAGE_SIZE) {
        for (const turnId of obsoleteTurns) this.backoffs.delete(turnId);
        break;
      }
      after = page.at(-1);
    }
    return startedCount;
  }

  /**
   * Starts sleeping turns whose due time is wrong, because the wall clock was set back since it was recorded: each then
   * sleeps for its whole length at most, and gets another due time. Returns how many it started.
   */
  private async startLateTurns(): Promise<number> {
    const { dueTurns, clock } = this.deps;
    const now = clock.now();
    // guard: set-back-clock-noticed
    if (this.isClockSetBack()) this.searched = SEARCH_START;
    if (this.searched === undefined) return 0;
    const after = this.searched.dueAt < now ? { ...SEARCH_START, dueAt: now } : this.searched;
    const page = await dueTurns.list(Number.MAX_SAFE_INTEGER, PAGE_SIZE, after);
    let startedCount = 0;
    for (const due of page) {
      if (this.active.size >= (this.options.concurrency ?? DEFAULT_CONCURRENCY) || this.isStopped) return startedCount;
      this.searched = due;
      // A turn that a process runs is not started twice: its lease decides.
      if (!this.isReady(due) || (await this.deps.lastWrittenAt(due.session)) <= now + MIN_SET_BACK_MS) continue;
      this.start(due);
      startedCount += 1;
    }
    if (page.length < PAGE_SIZE) this.searched = undefined;
    return startedCount;
  }

  /** True if the wall clock was set back since the last call, which the monotonic clock shows. */
  private isClockSetBack(): boolean {
    const { clock } = this.deps;
    const { reading } = this;
    const [wallMs, elapsedMs] = [clock.now(), clock.elapsed()];
    this.reading = { wallMs, elapsedMs };
    if (reading === undefined) return false;
    return reading.wallMs + elapsedMs - reading.elapsedMs - wallMs > MIN_SET_BACK_MS;
  }

  private isReported(turnId: string): boolean {
    const reportedCodes = this.backoffs.get(turnId)?.reportedCodes;
    return reportedCodes !== undefined && reportedCodes.length > 0;
  }

  private isReady({ session, turn }: DueTurn): boolean {
    const backoff = this.backoffs.get(turn);
    if (backoff !== undefined && backoff.until > this.deps.clock.elapsed()) return false;
    const leased = this.deps.leasedSession(session);
    return !this.active.has(leased) && !this.deps.isBusy(leased);
  }

  private start(due: DueTurn): void {
    const leased = this.deps.leasedSession(due.session);
    const work = this.continue(due).finally(() => {
      this.active.delete(leased);
      this.wake.abort();
    });
    this.active.set(leased, work);
  }

  private async continue({ session, turn }: DueTurn): Promise<void> {
    const { onResult = warnOfFailure, onStop = warnOfStop, onPause = warnOfPause } = this.options;
    // The result of the turn comes first.
    const reports: (() => void)[] = [];
    const listener: HostedLoopListener = {
      onStop: (stop) => void reports.push(() => onStop(stop)),
      onPause: (pause) => void reports.push(() => onPause(pause)),
    };
    try {
      const result = await this.deps.continueTurn(turn, session, listener);
      // These leave the turn open and due.
      const isStillDue = result?.status === 'error' && STILL_DUE_CODES.has(result.error.code);
      if (isStillDue) this.backOff(turn, session, result.error);
      else if (result === undefined) this.backOff(turn, session, undefined);
      else this.backoffs.delete(turn);
      if (result === undefined || isStillDue) return;
      ignoringErrors(() => onResult(result));
      if (result.status === 'paused') this.reportDoubts(result);
    } catch (thrown) {
      if (this.isStopped) return;
      const { code, message } =
        thrown instanceof LoopError || thrown instanceof Fault
          ? thrown
          : { code: 'INTERNAL', message: String((thrown as Error | undefined)?.message ?? thrown) };
      this.backOff(turn, session, { code, message });
    } finally {
      for (const report of reports) ignoringErrors(report);
    }
  }

  /** Delays the next attempt at a turn, and reports a problem when it is new. Without one, the session was not free. */
  private backOff(
    turnId: string,
    sessionId: string,
    error: { readonly code: string; readonly message: string } | undefined,
  ): void {
    const earlier = this.backoffs.get(turnId);
    const attempts = error === undefined ? 1 : (earlier?.attempts ?? 0) + 1;
    const until = this.deps.clock.elapsed() + Math.min(FIRST_BACKOFF_MS * 2 ** (attempts - 1), MAX_BACKOFF_MS);
    const problem = error && { turnId, sessionId, code: error.code, message: error.message };
    this.backoffs.set(turnId, { attempts, until, problem, reportedCodes: earlier?.reportedCodes ?? [] });
    if (this.backoffs.size > MAX_BACKOFFS) this.backoffs.delete(this.backoffs.keys().next().value ?? '');
    // Another process may have the loop and continue the turn during the first wait.
    if (attempts > 1 || error?.code !== 'LOOP_NOT_FOUND') this.report(turnId);
  }

  /** Reports the problem of the last attempt at a turn, once per error code. */
  private report(turnId: string): void {
    const backoff = this.backoffs.get(turnId);
    const { problem, reportedCodes = [] } = backoff ?? {};
    if (backoff === undefined || problem === undefined || reportedCodes.includes(problem.code)) return;
    this.backoffs.set(turnId, { ...backoff, reportedCodes: [...reportedCodes, problem.code] });
    this.notify(problem);
  }

  /** Reports the effects of a paused turn that a person has to resolve. The turn is not due until then. */
  private reportDoubts({ turnId, sessionId, pending }: PausedResult): void {
    for (const item of pending) {
      if (item.kind !== 'doubt') continue;
      const message = `It is unknown whether "${item.name}" happened. Find out, then resolve it: rondo resolve ${item.key}`;
      this.notify({ turnId, sessionId, code: 'EFFECT_IN_DOUBT', message });
    }
  }

  private notify(problem: WorkProblem): void {
    const { onProblem = warnOfProblem } = this.options;
    ignoringErrors(() => onProblem(problem));
  }

  /** Waits until a turn of this worker ends, the next turn is due, or the index is to be read again. */
  private async waitForWork(): Promise<void> {
    const { clock, dueTurns } = this.deps;
    const { wake } = this;
    const now = clock.now();
    const nextDueAt = await dueTurns.nextDueAt(now);
    const waitMs = Math.min(POLL_MS, nextDueAt === undefined ? POLL_MS : nextDueAt - now);
    await clock.sleep(Math.max(1, waitMs), wake.signal).catch(() => undefined);
  }
}

function warnOfProblem({ turnId, code, message }: WorkProblem): void {
  warn(`Turn ${turnId} is not continued here. ${code}: ${message}`, code);
}

function warnOfFailure(result: TurnResult): void {
  const { turnId, loopId, status } = result;
  if (status === 'stopped') warn(`Turn ${turnId} of "${loopId}" stopped: ${result.reason}`, 'TURN_STOPPED');
  if (status !== 'error') return;
  const { code, message } = result.error;
  warn(`Turn ${turnId} of "${loopId}" failed. ${code}: ${message}`, code);
}

function warnOfStop({ loop, reason, message }: HostedLoopStop): void {
  warn(`The hosted loop "${loop}" stopped: ${reason}. ${message}`, 'HOSTED_LOOP_STOPPED');
}

function warnOfPause({ loop, reason, message }: HostedLoopPause): void {
  const remedy = `until it is repaired and resumed with: rondo host resume ${loop}`;
  warn(`The hosted loop "${loop}" is paused (${reason}) ${remedy}\n${message}`, 'HOSTED_LOOP_PAUSED');
}

function warn(message: string, code: string): void {
  process.emitWarning(message, { type: 'RondoWarning', code });
}
