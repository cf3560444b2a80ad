/**
 * The runtime as programs use it: runs turns of loops on one store, continues them after restarts, and settles what
 * they wait for. It adds nothing to the host but shorter calls and turn handles.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { LoopError } from '../../base/errors.js';
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import type { ForkedTurn, ForkOptions } from '../../host/fork-turn.js';
import type { Host, TurnOptions } from '../../host/host.js';
import type { TurnRequest } from '../../host/turn-request.js';
import { turnResultOf } from '../../host/turn-result.js';
import type { WorkOptions } from '../../host/worker.js';
import type { Clock, Ids } from '../../journal/clock.js';
import type { DefinedLoop } from '../../loops/defined-loop.js';
import { CODE_ORIGIN } from '../../loops/origin.js';
import type { Approval } from '../../protocol/approval.js';
import type { SignalType } from '../../protocol/body.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { Grant } from '../../protocol/grant.js';
import type { Json } from '../../protocol/json.js';
import type { TurnResult, TurnStatus } from '../../protocol/trace.js';
import { RondoHosted } from './rondo-hosted.js';
import { type AnswerOptions, type ApproveOptions, type SignalOptions, Turn, type TurnDeps } from './turn.js';
import { outputOf } from './turn-outcome.js';
import { TurnRuns } from './turn-runs.js';

/** Options of one turn. */
export interface RunOptions {
  /**
   * The idempotency key: a second call with the same key returns the turn of the first one.
   * @default without a key every call starts a turn
   */
  readonly key?: string;
  /**
   * The session that the turn belongs to. An agent sees the earlier messages of its session.
   * @default a new session
   */
  readonly session?: string;
  /** The principal on whose behalf the turn runs. It is recorded, not authenticated. */
  readonly as?: string;
  /**
   * The only principals that may answer approvals of the turn.
   * @default every principal except the agents of the turn
   */
  readonly approvers?: readonly string[];
  /**
   * What the turn and everything below it may do and use.
   * @default no limits other than those of the loops
   */
  readonly grant?: Grant;
  /**
   * What an agent sees of earlier turns of its session: their messages, or nothing.
   * @default 'session'
   */
  readonly history?: 'none' | 'session';
  /** Cancels the turn when it is aborted. */
  readonly signal?: AbortSignal;
}

const RUN_OPTION_KEYS = optionKeys<RunOptions>({
  key: true,
  session: true,
  as: true,
  approvers: true,
  grant: true,
  history: true,
  signal: true,
});

/** The input of a turn: that of the loop, and for an agent also the text of its prompt. */
export type TurnInput<I> = { readonly prompt: string } extends I ? I | string : I;

/** A loop in code, or the id of a registered one. */
export type LoopRef<I = unknown, O = unknown> = DefinedLoop<I, O> | string;

/** A turn as one object. With the id of a loop and without `signal` it is JSON, so that a queue can carry it. */
export interface RunRequest<I = unknown, O = unknown> extends RunOptions {
  readonly loop: LoopRef<I, O>;
  readonly input?: TurnInput<I>;
}

/** A loop of any input, whose output types a result. */
export type TypedLoop<O> = Pick<DefinedLoop<never, O>, 'definition' | 'output'>;

/** How an effect in doubt is resolved: it is retried, it happened with this result, or it failed. */
export type EffectResolution = { readonly by: string } & (
  | { readonly retry: true; readonly result?: never; readonly fail?: never }
  | { readonly result: Json; readonly retry?: never; readonly fail?: never }
  | { readonly fail: true; readonly retry?: never; readonly result?: never }
);

const MAX_CONCURRENT_RESUMES = 16;
/** The wait for the results of interrupted turns, in milliseconds. */
const SETTLE_MS = 200;

/**
 * Runs turns of loops and agents. Create it with `createRondo`.
 *
 * @example
 * const rondo = await createRondo();
 * const result = await rondo.run(greet, { name: 'Ada' });
 * if (result.status === 'ok') console.log(result.output.text);
 * await rondo.close();
 */
export class Rondo implements AsyncDisposable {
  /** The host below this runtime, for what the short calls do not cover. */
  readonly host: Host;
  /** Loops whose turns are run one after another, only while a stop policy allows it. A worker runs them. */
  readonly hosted: RondoHosted;
  private readonly runs: TurnRuns;
  private readonly turnDeps: TurnDeps;
  private readonly closeStore: () => Promise<void>;

  /** @internal */
  constructor(host: Host, closeStore: () => Promise<void>, sources: { readonly clock: Clock; readonly ids: Ids }) {
    this.host = host;
    this.hosted = new RondoHosted(host, sources);
    this.closeStore = closeStore;
    this.runs = new TurnRuns(host);
    this.turnDeps = {
      host,
      runs: this.runs,
      answer: (id, approved, options) => this.answer(id, approved, options),
      signal: (turnId, signal, payload, options) => this.signal(turnId, signal, payload, options),
    };
  }

  /** Registers loops, so that turns of other processes that need them can be continued here. */
  register(...loops: readonly DefinedLoop[]): void {
    for (const loop of loops) this.host.registry.add(loop, CODE_ORIGIN);
  }

  /**
   * Runs a turn until it ends or pauses. A failure of the loop is a result with the status `error`. Rejects with a
   * TypeError for an unknown option, with REQUEST_INVALID for a value that cannot be used, and with a Fault if the
   * runtime itself fails.
   */
  async run<I, O>(loop: LoopRef<I, O>, input: TurnInput<I>, options: RunOptions = {}): Promise<TurnResult<O>> {
    assertKnownKeys(options, RUN_OPTION_KEYS, 'A turn has no');
    return this.runTurn({ ...options, loop, input });
  }

  /**
   * Runs one turn until it ends or pauses: what `run` does, with everything in one object. Call it from a script, from the
   * worker of a queue or from another scheduler; it starts no worker and no timer of its own. With a `key`, a request that
   * is delivered again continues its turn, or returns the recorded result.
   *
   * @example
   * for await (const message of queue) {
   *   const result = await rondo.runTurn({ loop: 'invoice', input: message.body, key: message.id });
   *   if (result.status !== 'error') await message.acknowledge();
   * }
   */
  async runTurn<I, O>(request: RunRequest<I, O>): Promise<TurnResult<O>> {
    const { loop, input, ...options } = request;
    const turn = this.requestOf(loop as LoopRef, input, options);
    return (await this.launch(turn, options.signal, {})) as TurnResult<O>;
  }

  /** Runs a turn and returns its output. Throws a LoopError, TurnPaused or TurnStopped if there is none. */
  async output<I, O>(loop: LoopRef<I, O>, input: TurnInput<I>, options: RunOptions = {}): Promise<O> {
    return outputOf(await this.run(loop, input, options));
  }

  /** Starts a turn and returns its handle as soon as the start is recorded durably. */
  async start<I, O>(loop: LoopRef<I, O>, input: TurnInput<I>, options: RunOptions = {}): Promise<Turn<O>> {
    const request = this.requestOf(loop as LoopRef, input, options);
    return new Promise((resolve, reject) => {
      const resolveWith = (turnId: string): void => resolve(new Turn<O>(turnId, this.turnDeps, run));
      const onTurn = (id: string): void => {
        if (request.key === undefined) return;
        // A turn that another process runs under the same key is recorded already.
        this.host.archive.has(id).then((isRecorded) => isRecorded && resolveWith(id), reject);
      };
      const run = this.launch(request, options.signal, { onTurn, onStarted: resolveWith });
      run.then(({ turnId }) => resolveWith(turnId), reject);
    });
  }

  /** Returns the handle of a known turn, typed by its loop. The loop is registered if it is given. */
  turn<O = unknown>(turnId: string, loop?: TypedLoop<O>): Turn<O> {
    this.registerIfGiven(loop);
    return new Turn(turnId, this.turnDeps);
  }

  /** Returns the status of all turns, or of the turns of one session, oldest first. */
  turns(session?: string): Promise<readonly TurnStatus[]> {
    return this.host.archive.turns(session);
  }

  /** Returns the recorded envelopes (events with an id) of a session, in order; none for an unknown session. */
  events(session: string): Promise<readonly EventEnvelope[]> {
    return this.host.archive.events(session);
  }

  /**
   * Continues a turn until it ends or pauses, or returns its recorded result. The loop is registered if it is given. A
   * turn that stopped at its grant continues under another one, `options.grant`. Throws TURN_NOT_FOUND if the store has
   * no such turn, and GRANT_CONFLICT if the turn has not stopped at its grant.
   */
  async resume<O = unknown>(
    turnId: string,
    loop?: TypedLoop<O>,
    options: { readonly grant?: Grant } = {},
  ): Promise<TurnResult<O>> {
    this.registerIfGiven(loop);
    return (await this.runs.track(turnId, this.host.resume(turnId, options))) as TurnResult<O>;
  }

  /**
   * Forks a turn: copies its session up to the entry `at` into a new one, whose turn continues from there when it is
   * resumed, or when a worker finds it. Nothing is performed. Throws FORK_REFUSED, which names the nearest entry that can
   * be used, if the turn is not open at the entry or an effect that was started or approved has not ended there, and
   * TURN_NOT_FOUND.
   */
  fork(turnId: string, options: ForkOptions): Promise<ForkedTurn> {
    return this.host.fork(turnId, options);
  }

  /**
   * Continues a failed turn where it failed, and keeps what succeeded; see `Host.retry`. The loop is registered if it is
   * given. Throws RETRY_REFUSED if the turn has not failed, and TURN_NOT_FOUND if the store has no such turn.
   */
  async retry<O = unknown>(turnId: string, loop?: TypedLoop<O>): Promise<TurnResult<O>> {
    this.registerIfGiven(loop);
    return (await this.runs.track(turnId, this.host.retry(turnId))) as TurnResult<O>;
  }

  /**
   * Continues every turn that is paused or interrupted, for example after a restart. Returns one result for each; a turn
   * that cannot be continued here, because its loop is not registered, has an error.
   */
  async resumeAll(): Promise<readonly TurnResult[]> {
    const open = (await this.turns()).filter(({ status }) => status === 'paused' || status === 'interrupted');
    const results: TurnResult[] = new Array(open.length);
    let next = 0;
    const resumeNext = async (): Promise<void> => {
      for (let index = next++; index < open.length; index = next++) {
        results[index] = await this.tryResume(open[index] as TurnStatus);
      }
    };
    await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT_RESUMES, open.length) }, resumeNext));
    return results;
  }

  /**
   * Sends a signal to a turn and continues it. Returns false if a signal with this delivery id was received before.
   * Throws INPUT_VALIDATION_FAILED if the payload does not fit the schema of the signal.
   *
   * @example
   * await rondo.signal(turnId, paid, { amount: 5 }, { id: 'invoice-17' });
   */
  async signal<P>(
    turnId: string,
    signal: string | SignalType<unknown, P>,
    payload?: NoInfer<P>,
    options: SignalOptions = {},
  ): Promise<boolean> {
    const isNew = await this.host.signal({
      turnId,
      name: signal as string | SignalType,
      ...(payload !== undefined && { payload }),
      ...options,
    });
    this.runs.continue(turnId);
    return isNew;
  }

  /** Returns the pending approvals of all sessions, or of one. */
  approvals(session?: string): Promise<readonly Approval[]> {
    return this.host.archive.approvals(session);
  }

  /** Approves a tool call and continues its turn. Throws ANSWER_REFUSED with the reason if that is not possible. */
  async approve(id: string, options: ApproveOptions): Promise<void> {
    await this.answer(id, true, options);
  }

  /** Denies a tool call and continues its turn. Throws ANSWER_REFUSED with the reason if that is not possible. */
  async deny(id: string, options: AnswerOptions): Promise<void> {
    await this.answer(id, false, options);
  }

  /**
   * Resolves an effect in doubt and continues its turn. `effect` is the key of the effect, as in `pending`. Throws
   * ANSWER_REFUSED if the effect is not in doubt.
   */
  async resolve(effect: string, resolution: EffectResolution): Promise<void> {
    const { by, result, retry, fail } = resolution;
    if ([retry, fail, result].filter((value) => value !== undefined).length !== 1)
      throw new TypeError('Resolve an effect with exactly one of retry, result and fail.');
    const verb = retry === true ? 'retry' : fail === true ? 'fail' : 'supply';
    await this.host.resolveEffect(effect, verb, by, result);
    this.runs.continue(effect.split('/', 1)[0] ?? '');
  }

  /**
   * Continues everything that is due until `close`: sleeping turns, delivered signals, expired approvals and interrupted
   * turns, also those of other processes whose loops are registered here. Any number of processes may work on one store.
   * Rejects with a Fault if the store is lost, as with STORE_MISSING if its directory was removed.
   */
  work(options: WorkOptions = {}): Promise<void> {
    return this.host.work(options);
  }

  /**
   * Closes the runtime: stops the worker, interrupts running turns after their current effects, for which it waits at
   * most 10 seconds, and closes the store. Interrupted turns are continued by `resumeAll` or by the worker of any
   * process. A pending `result` of a turn that another process runs is rejected with SESSION_CLOSED.
   */
  async close(): Promise<void> {
    await this.host.close();
    // Only effects that exceed the time limit of the host are left.
    const timeout = new AbortController();
    const isLate = sleep(SETTLE_MS, undefined, { signal: timeout.signal }).catch(() => undefined);
    await Promise.race([this.runs.settled(), isLate]);
    timeout.abort();
    await this.closeStore();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private registerIfGiven(loop: TypedLoop<unknown> | undefined): void {
    if (loop !== undefined) this.register(loop as unknown as DefinedLoop);
  }

  private async answer(id: string, approved: boolean, { by, reason, standing }: ApproveOptions): Promise<void> {
    const { turnId } = await this.host.answer({
      id,
      approved,
      by,
      ...(reason !== undefined && { reason }),
      ...(standing !== undefined && { standing }),
    });
    this.runs.continue(turnId);
  }

  private async tryResume({ sessionId, turnId, loopId, loopVersion }: TurnStatus): Promise<TurnResult> {
    try {
      return await this.resume(turnId);
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      const identity = { sessionId, turnId, loopId, loopVersion };
      return turnResultOf(identity, { status: 'error', error: thrown.toErrorRecord() }, [], Date.now());
    }
  }

  private requestOf(loop: LoopRef, input: unknown, options: RunOptions): TurnRequest {
    assertKnownKeys(options, RUN_OPTION_KEYS, 'A turn has no');
    if (typeof loop !== 'string') this.register(loop);
    const registered = this.host.registry.find(typeof loop === 'string' ? loop : loop.name);
    const isAgent = registered?.definition.composite?.agent !== undefined;
    const { key, session, as, approvers, grant, history } = options;
    return {
      loop,
      input: isAgent && typeof input === 'string' ? { prompt: input } : input,
      ...(key !== undefined && { key }),
      ...(session !== undefined && { sessionId: session }),
      ...(as !== undefined && { principal: as }),
      ...(approvers !== undefined && { approvers }),
      ...(grant !== undefined && { grant }),
      ...(history !== undefined && { history }),
    };
  }

  /** Runs a turn, tracks its run and cancels it when the signal of the caller is aborted. */
  private launch(request: TurnRequest, signal: AbortSignal | undefined, options: LaunchOptions): Promise<TurnResult> {
    let turnId: string | undefined;
    const onTurn = (id: string): void => {
      signal?.throwIfAborted();
      turnId = id;
      // The host may call this before `run` is assigned.
      queueMicrotask(() => this.runs.track(id, run));
      options.onTurn?.(id);
    };
    const run = this.host.run(request, { ...options, onTurn });
    if (signal === undefined) return run;
    const cancel = (): void => {
      if (turnId !== undefined) this.host.cancel(turnId, reasonOf(signal)).catch(() => undefined);
    };
    signal.addEventListener('abort', cancel);
    return run.finally(() => signal.removeEventListener('abort', cancel));
  }
}

type LaunchOptions = Pick<TurnOptions, 'onTurn' | 'onStarted'>;

/** Returns the reason of an abort as text. */
function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : String(reason);
}
