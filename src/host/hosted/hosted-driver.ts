/**
 * Drives one hosted loop: requests the next turn when something is due and the stop policy allows it, runs the turn, and
 * records what became of it. Each step is one append to the stream of the loop, decided on its state, so a crash between
 * two steps repeats neither. The caller holds the lease of the loop.
 */
import { LoopError } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import type { StreamEntry } from '../../journal/shared-stream.js';
import { type HostedStop, isTerminal, stopAfterTurn, stopBeforeTurn } from '../../policy/stop-policy.js';
import type { Grant } from '../../protocol/grant.js';
import type { HostedLoopDocument, HostedTurnOrigin, TurnGrant } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { TurnResult } from '../../protocol/trace.js';
import {
  type EndedTurn,
  HOSTED_CONTINUED,
  HOSTED_ENDED,
  HOSTED_PLANNED,
  HOSTED_REQUESTED,
  HOSTED_STOPPED,
  HOSTED_WAITING,
  type HostedLoopState,
  jsonDigest,
  type OpenTurn,
  type RequestedTurn,
} from '../../views/hosted-loop.js';
import type { Archive } from '../archive.js';
import type { TurnOptions } from '../host-options.js';
import { type TurnRequest, turnIdOfKey } from '../turn-request.js';
import type { NextInput } from './define-hosted-loop.js';
import { decide, type HostedStream, hostedSessionOf, hostedTurnKey } from './hosted-stream.js';
import { isEventDriven } from './loop-flaws.js';
import { type PredecessorDeps, verifyPredecessor } from './predecessor.js';
import { dueAfterTurn, dueWhenLate } from './schedule.js';
import {
  contextOf,
  derivationError,
  handoffsOf,
  inputOf,
  type NextCause,
  nextCauseOf,
  projectionOf,
} from './turn-derivation.js';
import { endOf, type TurnEnd, turnEndingOf } from './turn-ending.js';

/** What driving a hosted loop needs of its host. */
export interface DriverDeps {
  readonly clock: Clock;
  readonly archive: Archive;
  readonly predecessor: PredecessorDeps;
  /** Runs or continues a turn by its key. */
  runTurn(request: TurnRequest, options: TurnOptions, hosted: HostedTurnOrigin): Promise<TurnResult>;
  /** Cancels a turn, and waits until it has ended. */
  cancelTurn(turnId: string, reason: string): Promise<unknown>;
  /** Returns the function that makes the next input; undefined if the document has it. */
  codeOf(loop: string): NextInput | undefined;
  /** Delivers the handoffs of a loop. */
  deliverHandoffs(stream: HostedStream): Promise<void>;
  /** Keeps the length of a stream outside of the store. */
  keepLength(stream: HostedStream): Promise<void>;
  /** Returns what the turns of a grant have used. */
  usedOf(grant: Grant): Promise<{ readonly [counter: string]: number }>;
}

/** Drives hosted loops, one call for each step. */
export class HostedDriver {
  private readonly deps: DriverDeps;

  constructor(deps: DriverDeps) {
    this.deps = deps;
  }

  /** Does what is due: at most one turn. Returns its result; undefined if none was run. */
  async drive(stream: HostedStream, options: TurnOptions): Promise<TurnResult | undefined> {
    const { stopped, open } = stream.state.now;
    if (stopped !== undefined && open !== undefined) return this.cancelOpen(stream, open);
    await this.deps.deliverHandoffs(stream);
    if (stopped !== undefined) return undefined;
    if (open !== undefined) return this.runOpen(stream, open, options);
    const requested = await this.requestNext(stream);
    return requested === undefined ? undefined : this.run(stream, requested, options);
  }

  /** Requests the next turn, if one is due and nothing stops the loop. */
  private async requestNext(stream: HostedStream): Promise<RequestedTurn | undefined> {
    const { state } = stream;
    const document = documentOf(state);
    const now = this.deps.clock.now();
    const stop = stopBeforeTurn(document, { turns: state.now.turns, now });
    if (stop !== undefined) return this.stop(stream, stop);
    // guard: paused-loop-requests-nothing
    if (state.now.paused !== undefined) return undefined;
    const cause = await this.causeOf(stream, now);
    if (cause === undefined) return undefined;
    const made = await this.makeRequest(state, cause, now);
    if ('reason' in made) return this.stop(stream, made);
    const before = state.now.turns;
    const value = made as unknown as Json;
    const key = hostedTurnKey(document.id, made.turn);
    const isAccepted = await decide(stream, ({ now: current, signals }) => {
      const isSame = current.turns === before && current.open === undefined && current.stopped === undefined;
      const hasSignal = made.signal === undefined || signals.some(({ id }) => id === made.signal?.id);
      // guard: turn-requested-once
      if (!isSame || !hasSignal || current.paused !== undefined) return undefined;
      return [{ type: HOSTED_REQUESTED, key, value }];
    });
    if (!isAccepted) return undefined;
    // Before the turn runs: who removes the request from the store does not get the turn again.
    await this.deps.keepLength(stream);
    return made;
  }

  /** Returns what causes the next turn. A due time that the document drops is replaced by the next one. */
  private async causeOf(
    stream: HostedStream,
    now: number,
  ): Promise<(NextCause & { readonly through: number }) | undefined> {
    const { state } = stream;
    const { plan, through } = state.now;
    const cause = nextCauseOf(state, now);
    if (cause?.cause !== 'schedule' || plan === undefined) return cause && { ...cause, through };
    const { schedule, catchUp = 'one' } = documentOf(state);
    const late = dueWhenLate(schedule, catchUp, plan, now);
    if (late !== undefined && late.dueAt <= now) return { ...cause, through: late.through };
    const value = (late ?? null) as unknown as Json;
    await decide(stream, ({ now: current }) =>
      current.open === undefined ? [{ type: HOSTED_PLANNED, key: 'plan', value }] : undefined,
    );
    return undefined;
  }

  /** Returns the next request, made from the verified turn before and the admitted signal; or why the loop stops. */
  private async makeRequest(
    state: HostedLoopState,
    { cause, dueAt, through, signal }: NextCause & { readonly through: number },
    now: number,
  ): Promise<RequestedTurn | HostedStop> {
    const document = documentOf(state);
    const { last, turns, started } = state.now;
    const before = await this.verifiedOutput(state);
    if (before.stop !== undefined) return before.stop;
    const turn = turns + 1;
    const used = started === undefined ? {} : await this.deps.usedOf(started.grant);
    const projection = projectionOf(state, { turn, signal, output: before.output, used });
    const contextSkills = contextOf(document, last);
    const code = this.deps.codeOf(document.id);
    // Another process may have it.
    // guard: input-in-code-needs-the-code
    if (started?.hasCode === true && code === undefined) throw missingCode(document.id);
    try {
      const input = inputOf(document, code, projection);
      return {
        ...{ turn, at: now, cause, dueAt, through, input, head: projection.head },
        ...(last !== undefined && { previous: last.receipt }),
        ...(signal !== undefined && { signal }),
        ...(contextSkills !== undefined && { contextSkills }),
      };
    } catch (thrown) {
      return { reason: 'refused', message: `No input for turn ${turn}: ${derivationError(thrown)}` };
    }
  }

  private async verifiedOutput(state: HostedLoopState): ReturnType<typeof verifyPredecessor> {
    const { last, open } = state.now;
    if (last === undefined) return { output: undefined };
    const document = documentOf(state);
    const openTurnId = open === undefined ? undefined : hostedTurnId(document, open.request.turn);
    return verifyPredecessor(this.deps.predecessor, document.id, last, openTurnId);
  }

  /** Continues the open turn, unless the loop is paused or has to stop. */
  private async runOpen(
    stream: HostedStream,
    { request, waitsFor }: OpenTurn,
    options: TurnOptions,
  ): Promise<TurnResult | undefined> {
    const { state } = stream;
    const document = documentOf(state);
    const late = stopBeforeTurn(document, { turns: 0, now: this.deps.clock.now() });
    // guard: waiting-turn-stops-at-the-deadline
    if (late !== undefined && waitsFor !== undefined) return this.stopWithOpen(stream, late);
    if (state.now.paused !== undefined) return undefined;
    const { stop } = await this.verifiedOutput(state);
    if (stop !== undefined) return this.stopWithOpen(stream, stop);
    // guard: request-names-the-current-head
    if (request.head !== state.now.head)
      return this.stopWithOpen(stream, {
        reason: 'stale_projection',
        message: 'The projection moved after the request.',
      });
    // Recorded before the turn goes on: a process that ends in between leaves the loop due.
    // guard: continued-turn-makes-the-loop-due
    if (waitsFor !== undefined) await this.record(stream, request, [{ type: HOSTED_CONTINUED, value: {} }]);
    return this.run(stream, request, options);
  }

  /** Runs the turn of a request, and records what became of it. */
  private async run(
    stream: HostedStream,
    request: RequestedTurn,
    options: TurnOptions,
  ): Promise<TurnResult | undefined> {
    const { started } = stream.state.now;
    if (started === undefined) return undefined;
    const { document, grant } = started;
    const { turn, input, head, previous, signal, contextSkills } = request;
    const grants = [document.turn?.grant, signal?.handoff?.grant].filter(
      (each): each is TurnGrant => each !== undefined,
    );
    const history = document.turn?.history ?? 'none';
    const origin: HostedTurnOrigin = {
      ...{ loop: document.id, turn, head },
      ...(previous !== undefined && { previous }),
      ...(signal !== undefined && { cause: signal.id }),
      ...(grants.length > 0 && { grants }),
      ...(contextSkills !== undefined && { contextSkills }),
    };
    const sessionId = hostedSessionOf(document.id, turn, history);
    let turnId = '';
    const onTurn = (id: string): void => {
      turnId = id;
      options.onTurn?.(id);
    };
    const key = hostedTurnKey(document.id, turn);
    const asked = { loop: document.loop, input, key, sessionId, grant, history };
    const onStarted = (id: string): void => void this.cancelIfStopped(stream, id).catch(() => undefined);
    const result = await this.deps.runTurn(asked, { ...options, onTurn, onStarted }, origin);
    const ending = turnEndingOf(document, result, await this.deps.archive.find(turnId));
    if (ending.kind === 'ended') await this.recordEnd(stream, request, turnId, ending);
    else if (ending.kind === 'waits')
      await this.record(stream, request, [{ type: HOSTED_WAITING, value: { for: ending.for } }]);
    else if (ending.kind === 'halted') await this.stopWithOpen(stream, ending.stop);
    return result;
  }

  /** Cancels a turn that started while another process stopped the loop, which did not find the turn yet. */
  private async cancelIfStopped(stream: HostedStream, turnId: string): Promise<void> {
    await stream.refresh();
    const { stopped } = stream.state.now;
    // guard: stop-noticed-after-the-start
    if (stopped !== undefined) await this.deps.cancelTurn(turnId, `The hosted loop stopped: ${stopped.reason}.`);
  }

  /** Records the end of a turn together with what follows: why the loop stops, or when the next turn is due. */
  private async recordEnd(stream: HostedStream, request: RequestedTurn, turnId: string, end: TurnEnd): Promise<void> {
    const { state } = stream;
    const { stopped } = state.now;
    const document = documentOf(state);
    const ended = this.endedTurn(state, request, turnId, end);
    const entries: Omit<StreamEntry, 'key'>[] = [{ type: HOSTED_ENDED, value: ended.value as unknown as Json }];
    const now = this.deps.clock.now();
    const stop = ended.stop ?? this.stopAfter(state, ended.value, end, now);
    // guard: stopped-loop-plans-nothing
    if (stopped !== undefined) return void (await this.record(stream, request, entries));
    if (stop !== undefined) entries.push({ type: HOSTED_STOPPED, value: { ...stop, at: now } });
    else entries.push({ type: HOSTED_PLANNED, value: nextPlan(document, state, request, end.at) });
    await this.record(stream, request, entries);
  }

  /** Returns the record of a turn that has ended, with the handoffs that follow it. */
  private endedTurn(
    state: HostedLoopState,
    { turn, head, previous }: RequestedTurn,
    turnId: string,
    end: TurnEnd,
  ): { readonly value: EndedTurn; readonly stop?: HostedStop } {
    const { status, receipt, at, output, code } = end;
    const document = documentOf(state);
    const value: EndedTurn = {
      ...{ turn, turnId, status, receipt, at, head },
      ...(previous !== undefined && { previous }),
      ...(output !== undefined && { output: jsonDigest(output) }),
      ...(code !== undefined && { code }),
      ...(status !== 'ok' && document.retry !== undefined && { retryAt: at + (document.retry.delayMs ?? 0) }),
    };
    // guard: stopped-loop-hands-nothing-off
    if (status !== 'ok' || document.handoffs === undefined || state.now.stopped !== undefined) return { value };
    const last = { key: hostedTurnKey(document.id, turn), turnId, status, receipt, output: output ?? null };
    try {
      const projection = { loop: document.id, turn, head, input: document.input ?? null, used: {}, last };
      const handoffs = handoffsOf(document, projection, ({ when }) => when === undefined || isTerminal(when, end));
      return { value: { ...value, handoffs } };
    } catch (thrown) {
      return { value, stop: { reason: 'refused', message: `No input for a handoff: ${derivationError(thrown)}` } };
    }
  }

  private stopAfter(
    { now: state }: HostedLoopState,
    { status, output, code }: EndedTurn,
    end: TurnEnd,
    now: number,
  ): HostedStop | undefined {
    const { started, last, turns, unchanged, failures } = state;
    if (started === undefined) return undefined;
    const isNew = status === 'ok' && output !== last?.output;
    return stopAfterTurn(started.document, {
      ...{ turns, now, status, code, output: end.output, wasDenied: end.wasDenied },
      unchanged: isNew ? 0 : unchanged + 1,
      failures: status === 'ok' ? 0 : failures + 1,
    });
  }

  /** Stops the loop. */
  private async stop(stream: HostedStream, stop: HostedStop): Promise<undefined> {
    const value = { ...stop, at: this.deps.clock.now() };
    await decide(stream, ({ now: { stopped } }) =>
      stopped === undefined ? [{ type: HOSTED_STOPPED, key: 'stop', value }] : undefined,
    );
    return undefined;
  }

  private async stopWithOpen(stream: HostedStream, stop: HostedStop): Promise<TurnResult | undefined> {
    await this.stop(stream, stop);
    const { open } = stream.state.now;
    return open === undefined ? undefined : this.cancelOpen(stream, open);
  }

  /** Cancels the open turn of a loop that has stopped, and records its end. */
  private async cancelOpen(stream: HostedStream, { request }: OpenTurn): Promise<TurnResult | undefined> {
    const { archive, clock } = this.deps;
    const { started, stopped } = stream.state.now;
    const turnId = started === undefined ? '' : hostedTurnId(started.document, request.turn);
    // guard: open-turn-of-stopped-loop-is-cancelled
    if (await archive.has(turnId)) await this.deps.cancelTurn(turnId, `The hosted loop stopped: ${stopped?.reason}.`);
    const stored = await archive.find(turnId);
    const isEnded = stored?.turn.endedEntry !== undefined;
    const end: TurnEnd = isEnded
      ? endOf(stored)
      : { kind: 'ended', status: 'cancelled', receipt: '', at: clock.now(), wasDenied: false };
    await this.recordEnd(stream, request, turnId, end);
    return isEnded ? archive.result(turnId) : undefined;
  }

  /** Appends entries about the open turn, if it still is. */
  private async record(
    stream: HostedStream,
    { turn }: RequestedTurn,
    entries: readonly Omit<StreamEntry, 'key'>[],
  ): Promise<boolean> {
    const key = hostedTurnKey(documentOf(stream.state).id, turn);
    return decide(stream, ({ now: { open } }) =>
      // guard: end-recorded-once
      open?.request.turn === turn ? entries.map((entry) => ({ ...entry, key })) : undefined,
    );
  }
}

function missingCode(loop: string): LoopError {
  const message = `The hosted loop "${loop}" makes its inputs in code, which this process does not have. Register it.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loop });
}

/** Returns the document of a loop that was started. */
export function documentOf({ now: { started } }: HostedLoopState): HostedLoopDocument {
  if (started === undefined) throw new Error('The hosted loop was not started.');
  return started.document;
}

/** Returns the id of a turn of a hosted loop. */
export function hostedTurnId({ id, turn }: HostedLoopDocument, number: number): string {
  return turnIdOfKey(hostedSessionOf(id, number, turn?.history ?? 'none'), hostedTurnKey(id, number));
}

/** Returns the plan after a turn; null if the schedule has no further due time. */
function nextPlan(
  document: HostedLoopDocument,
  { now }: HostedLoopState,
  request: RequestedTurn,
  endedAt: number,
): Json {
  if (isEventDriven(document)) return null;
  const { through, started } = now;
  const turn = { through, requestedAt: request.at, endedAt };
  const plan = dueAfterTurn(document.schedule, document.overlap ?? 'skip', turn, started?.at ?? 0);
  return (plan ?? null) as unknown as Json;
}
