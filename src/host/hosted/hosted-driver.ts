/**
 * Drives one hosted loop: requests the next turn when something is due and the stop policy allows it, runs the turn, and
 * records what became of it. Each step is one append to the stream of the loop, decided on its state, so a crash between
 * two steps repeats neither. The caller holds the lease of the loop.
 */
import { LoopError } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import type { StreamEntry } from '../../journal/shared-stream.js';
import { type HostedStop, stopBeforeTurn } from '../../policy/stop-policy.js';
import type { Grant } from '../../protocol/grant.js';
import type { HostedLoopDocument, HostedTurnOrigin, TurnGrant } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { TurnResult } from '../../protocol/trace.js';
import {
  HOSTED_CONTINUED,
  HOSTED_PAUSED,
  HOSTED_PLANNED,
  HOSTED_REQUESTED,
  HOSTED_STOPPED,
  HOSTED_WAITING,
  type HostedLoopState,
  type OpenTurn,
  PAUSER,
  type RequestedTurn,
} from '../../views/hosted-loop.js';
import type { Archive } from '../archive.js';
import { withoutLimitAdvice } from '../budget/governed-turn.js';
import type { TurnOptions } from '../host-options.js';
import type { TurnRequest } from '../turn-request.js';
import type { NextInput } from './define-hosted-loop.js';
import type { ModelContext } from './grant-flaws.js';
import {
  documentOf,
  type HostedStream,
  type HostedStreams,
  hostedSessionOf,
  hostedTurnId,
  hostedTurnKey,
} from './hosted-stream.js';
import { type Obstacle, obstacleOf, type TrustContext, trustFlawOf } from './loop-flaws.js';
import { type PredecessorDeps, verifyPredecessor } from './predecessor.js';
import { dueWhenLate } from './schedule.js';
import { contextOf, derivationError, inputOf, type NextCause, nextCauseOf, projectionOf } from './turn-derivation.js';
import { endOf, type TurnEnd, turnEndingOf } from './turn-ending.js';
import { entriesOfEnd } from './turn-record.js';

/** What driving a hosted loop needs of its host. */
export interface DriverDeps {
  readonly options: TrustContext & ModelContext;
  readonly clock: Clock;
  readonly archive: Archive;
  readonly streams: Pick<HostedStreams, 'decide'>;
  readonly predecessor: PredecessorDeps;
  /** Runs or continues a turn by its key. */
  runTurn(request: TurnRequest, options: TurnOptions, hosted: HostedTurnOrigin): Promise<TurnResult>;
  /** Cancels a turn, and waits until it has ended. */
  cancelTurn(turnId: string, reason: string): Promise<unknown>;
  /** Returns the function that makes the next input; undefined if the document has it. */
  codeOf(loop: string): NextInput | undefined;
  /** Delivers the handoffs of a loop. */
  deliverHandoffs(stream: HostedStream): Promise<void>;
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
    const blocked = await this.deliverHandoffs(stream);
    const result = stopped === undefined ? await this.doNext(stream, options) : undefined;
    if (result === undefined && blocked !== undefined) throw blocked;
    return result;
  }

  /** Delivers the handoffs of the loop. Returns the error of a full inbox, which must not keep the loop from its stop. */
  private async deliverHandoffs(stream: HostedStream): Promise<LoopError | undefined> {
    try {
      await this.deps.deliverHandoffs(stream);
      return undefined;
    } catch (thrown) {
      // guard: full-inbox-delays-no-stop
      if (thrown instanceof LoopError && thrown.code === 'INBOX_FULL') return thrown;
      throw thrown;
    }
  }

  private async doNext(stream: HostedStream, options: TurnOptions): Promise<TurnResult | undefined> {
    const { open, started } = stream.state.now;
    const flaw = trustFlawOf(documentOf(stream.state), this.deps.options, started?.untrustedDirectory);
    // The loop of this process may be another one than that of the start.
    // guard: untrusted-hosted-loop-stops-before-trusted-code
    if (flaw !== undefined)
      return this.stopWithOpen(stream, { reason: 'refused', message: `${flaw.path}: ${flaw.reason}` });
    this.assertStillTrusted(stream);
    if (open !== undefined) return this.runOpen(stream, open, options);
    const requested = await this.requestNext(stream);
    return requested === undefined ? undefined : this.run(stream, requested, options);
  }

  /**
   * Throws DEFINITION_INVALID if the file of the loop is no longer trusted, and the loop runs what needs trust. It was
   * trusted at the start, so the loop goes on when it is trusted again. A program trusts its own store.
   */
  private assertStillTrusted({ state }: HostedStream): void {
    const { options } = this.deps;
    const directory = options.untrustedJournal ?? (options.trusts && state.now.started?.directory);
    const flaw = trustFlawOf(documentOf(state), options, directory);
    // guard: hosted-loop-waits-for-revoked-trust
    if (flaw === undefined) return;
    const hint = 'The directory of the journal, which has the start of the loop, must be trusted too.';
    throw new LoopError('DEFINITION_INVALID', `${flaw.path}: ${flaw.reason}. ${hint}`, { ...flaw });
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
    // A handoff is accepted only with the last receipt, so no turn comes before its delivery.
    // guard: handoff-delivered-before-the-next-turn
    if (state.handoffs.length > 0) return undefined;
    const cause = await this.causeOf(stream, now);
    if (cause === undefined) return undefined;
    const obstacle = await this.currentObstacle(state);
    if (obstacle !== undefined) return this.pause(stream, obstacle);
    const made = await this.makeRequest(state, cause, now);
    if ('stop' in made) return this.stop(stream, made.stop);
    if ('pause' in made) return this.pause(stream, made.pause);
    const before = state.now.turns;
    const value = made as unknown as Json;
    const key = hostedTurnKey(document.id, made.turn);
    const isAccepted = await this.deps.streams.decide(stream, ({ now: current }) => {
      // The signal of the request waits as long as no other turn is requested.
      const isSame = current.turns === before && current.open === undefined && current.stopped === undefined;
      // guard: turn-requested-once
      if (!isSame || current.paused !== undefined) return undefined;
      return [{ type: HOSTED_REQUESTED, key, value }];
    });
    return isAccepted ? made : undefined;
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
    await this.deps.streams.decide(stream, ({ now: current }) =>
      current.open === undefined ? [{ type: HOSTED_PLANNED, key: 'plan', value }] : undefined,
    );
    return undefined;
  }

  /**
   * Returns what an operator has to repair before a turn can succeed; undefined if there is nothing, or if the loop
   * is not registered here: another process may have it.
   */
  private async currentObstacle({ now: { started } }: HostedLoopState): Promise<Obstacle | undefined> {
    const { options } = this.deps;
    const registered = options.registry.find(started?.document.loop ?? '');
    if (started === undefined || registered === undefined) return undefined;
    try {
      await this.deps.usedOf(started.grant);
    } catch (thrown) {
      // guard: conflicting-grant-pauses
      if (!(thrown instanceof LoopError) || thrown.code !== 'GRANT_CONFLICT') throw thrown;
      return { reason: 'grant', message: thrown.message };
    }
    // guard: missing-price-pauses
    return obstacleOf(started.document, registered, options);
  }

  /** Returns the next request, made from the verified turn before and the admitted signal; or why the loop stops. */
  private async makeRequest(
    state: HostedLoopState,
    { cause, dueAt, through, signal }: NextCause & { readonly through: number },
    now: number,
  ): Promise<RequestedTurn | { readonly stop: HostedStop } | { readonly pause: Obstacle }> {
    const document = documentOf(state);
    const { last, turns, started, retryOf } = state.now;
    const before = await this.verifiedOutput(state);
    if (before.stop !== undefined) return { stop: before.stop };
    const turn = turns + 1;
    const used = started === undefined ? {} : await this.deps.usedOf(started.grant);
    const projection = projectionOf(state, { turn, signal, output: before.output, used });
    const contextSkills = contextOf(document, last);
    const code = this.deps.codeOf(document.id);
    // Another process may have it.
    // guard: input-in-code-needs-the-code
    if (started?.hasCode === true && code === undefined) throw missingCode(document.id);
    try {
      // guard: retry-repeats-its-turn
      const input = (cause === 'retry' ? retryOf?.input : undefined) ?? inputOf(document, code, projection);
      const pause = this.inputObstacle(document, turn, input, code !== undefined);
      if (pause !== undefined) return { pause };
      return {
        ...{ turn, at: now, cause, dueAt, through, input, head: projection.head },
        ...(last !== undefined && { previous: last.receipt }),
        ...(signal !== undefined && { signal }),
        ...(contextSkills !== undefined && { contextSkills }),
      };
    } catch (thrown) {
      const message = `No input for turn ${turn}: ${derivationError(thrown)}`;
      // The document is fixed; code can be repaired.
      return code === undefined
        ? { stop: { reason: 'refused', message } }
        : { pause: { reason: 'definition', message } };
    }
  }

  /** Returns why the loop would refuse an input, which an operator can repair: it may have changed since the start. */
  private inputObstacle(
    { loop }: HostedLoopDocument,
    turn: number,
    input: Json,
    isFromCode: boolean,
  ): Obstacle | undefined {
    const [issue] = this.deps.options.registry.find(loop)?.input.issues(input) ?? [];
    // guard: refused-input-pauses
    if (issue === undefined) return undefined;
    const what = `The input of turn ${turn} does not fit the loop "${loop}"`;
    const remedy = isFromCode
      ? ''
      : ` "next" is fixed at the start: change the input schema of "${loop}", or start the changed file under another id.`;
    return { reason: 'definition', message: `${what}: ${issue.path || 'it'} ${issue.message}.${remedy}` };
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
    if (waitsFor !== undefined) await this.record(stream, request, () => [{ type: HOSTED_CONTINUED, value: {} }]);
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
      ...(signal?.handoff !== undefined && { handoff: signal.handoff.receipt }),
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
      await this.record(stream, request, () => [{ type: HOSTED_WAITING, value: { for: ending.for } }]);
    // What became of the turn afterwards is its result: it neither waits nor continues any more.
    else if (ending.kind === 'halted') return (await this.stopWithOpen(stream, ending.stop)) ?? withoutAdvice(result);
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
  private recordEnd(stream: HostedStream, request: RequestedTurn, turnId: string, end: TurnEnd): Promise<boolean> {
    const now = this.deps.clock.now();
    return this.record(stream, request, (state) => entriesOfEnd(state, request, turnId, end, now));
  }

  /** Stops the loop. */
  private async stop(stream: HostedStream, stop: HostedStop): Promise<undefined> {
    const value = { ...stop, at: this.deps.clock.now() };
    await this.deps.streams.decide(stream, ({ now: { stopped } }) =>
      stopped === undefined ? [{ type: HOSTED_STOPPED, key: 'stop', value }] : undefined,
    );
    return undefined;
  }

  /** Pauses the loop until its operator has repaired it. */
  private async pause(stream: HostedStream, { reason: cause, message: reason }: Obstacle): Promise<undefined> {
    const value = { at: this.deps.clock.now(), by: PAUSER, reason, cause };
    await this.deps.streams.decide(stream, ({ now: { paused, stopped, open } }) =>
      paused === undefined && stopped === undefined && open === undefined
        ? [{ type: HOSTED_PAUSED, key: 'pause', value }]
        : undefined,
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
  private record(
    stream: HostedStream,
    { turn }: RequestedTurn,
    entriesOf: (state: HostedLoopState) => readonly Omit<StreamEntry, 'key'>[],
  ): Promise<boolean> {
    const key = hostedTurnKey(documentOf(stream.state).id, turn);
    return this.deps.streams.decide(stream, (state) =>
      // guard: end-recorded-once
      state.now.open?.request.turn === turn ? entriesOf(state).map((entry) => ({ ...entry, key })) : undefined,
    );
  }
}

/** Returns the result of a turn that was refused at a limit, without the advice for turns that get another grant. */
function withoutAdvice(result: TurnResult): TurnResult {
  return result.status === 'stopped' ? { ...result, reason: withoutLimitAdvice(result.reason) } : result;
}

function missingCode(loop: string): LoopError {
  const message = `The hosted loop "${loop}" makes its inputs in code, which this process does not have. Register it.`;
  return new LoopError('LOOP_NOT_FOUND', message, { loop });
}
