/**
 * Runs one turn: finds and links its loop, pins the definitions, attaches to the turn of a known key, refuses what cannot
 * run, and waits until the session is free. Whatever decides when a turn runs (a program, a queue, a worker, a
 * scheduler) calls this; nothing here knows them, and a test holds that.
 */
import { LoopError } from '../../base/errors.js';
import { linkLoop } from '../../loops/link.js';
import type { RegisteredLoop } from '../../loops/registry.js';
import type { HostedTurnOrigin } from '../../protocol/hosted-loop.js';
import type { TurnResult } from '../../protocol/trace.js';
import type { Archive, StoredTurn } from '../archive.js';
import { changedContextResult } from '../context-change.js';
import type { HostOptions, TurnOptions } from '../host-options.js';
import type { PeerHosts } from '../peers.js';
import { pin } from '../pin.js';
import type { PinnedTurns } from '../pinned-turns.js';
import { RemoteTurn } from '../remote-turn.js';
import type { SessionQueues } from '../session-queues.js';
import {
  assertGrantObject,
  assertNeedsGrant,
  assertTurnRequest,
  attachConflict,
  originConflict,
  recordedIdentity,
  type TurnRequest,
  turnIdentityOf,
  unknownLoopError,
} from '../turn-request.js';
import { faultWithTurn, sessionIdOf, type TurnIdentity, turnResultOf } from '../turn-result.js';
import { retryKeysOf } from '../turn-retry.js';
import type { TurnRunner } from '../turn-runner.js';
import { recordedApprovers, unanswerableGrant } from '../unanswerable-grant.js';
import { unknownModelIn } from '../unknown-model.js';
import { startRefusalOf } from './start-refusal.js';

/** What running a turn needs of its host. */
export interface TurnKernelDeps {
  readonly options: HostOptions;
  readonly archive: Archive;
  readonly turns: TurnRunner;
  readonly pinned: PinnedTurns;
  readonly peers: PeerHosts;
  readonly sessionQueues: SessionQueues;
}

/** Runs turns, one call for each. */
export class TurnKernel {
  private readonly deps: TurnKernelDeps;

  constructor(deps: TurnKernelDeps) {
    this.deps = deps;
  }

  /**
   * Runs a turn until it ends or pauses, or attaches to the turn of its key; see `Host.run`. `hosted` is recorded with the
   * opening of a turn of a hosted loop.
   */
  async runTurn(request: TurnRequest, options: TurnOptions = {}, hosted?: HostedTurnOrigin): Promise<TurnResult> {
    assertTurnRequest(request);
    const { archive } = this.deps;
    const { ids, registry } = this.deps.options;
    const registered = this.findLoop(request);
    const newIdentity = turnIdentityOf(request, registered, ids.id());
    if (registered === undefined) return this.refusedResult(newIdentity, unknownLoopError(request, registry));
    const identity = request.key === undefined ? newIdentity : await recordedIdentity(archive, request, newIdentity);
    const start = (turnOptions: TurnOptions): Promise<TurnResult> =>
      this.startTurn(identity, registered, hosted === undefined ? request : { ...request, hosted }, turnOptions);
    // A new session is queued as well: `onTurn` publishes the id, so the turn can be resumed or answered while it runs.
    if (request.key === undefined) return this.runInSession(identity, options, start);
    const attach = async (turnOptions: TurnOptions): Promise<TurnResult> => {
      const stored = await archive.find(identity.turnId);
      return stored === undefined
        ? start(turnOptions)
        : this.attach(stored, identity, { ...request, hosted }, turnOptions);
    };
    return this.runInSession(identity, options, attach).catch((thrown) => {
      // It is unknown whether the turn started: another process can have started it under the same key.
      throw faultWithTurn(thrown, identity.turnId, 'unknown');
    });
  }

  /** Continues a turn until it ends or pauses; see `Host.resume`. */
  resumeTurn(turnId: string, options: TurnOptions = {}): Promise<TurnResult> {
    const work = async (turnOptions: TurnOptions): Promise<TurnResult> =>
      this.continueTurn(await this.deps.archive.get(turnId), turnOptions);
    return this.runInSession({ sessionId: sessionIdOf(turnId), turnId }, options, work).catch((thrown) => {
      throw faultWithTurn(thrown, turnId);
    });
  }

  /** Continues a failed turn where it failed; see `Host.retry`. */
  retryTurn(turnId: string, options: TurnOptions = {}): Promise<TurnResult> {
    const { archive, pinned, turns, peers, sessionQueues } = this.deps;
    const sessionId = sessionIdOf(turnId);
    options.onTurn?.(turnId);
    const perform = async (): Promise<TurnResult> => {
      const failed = await archive.get(turnId);
      const keys = retryKeysOf(failed);
      // Before the turn is reopened: a turn that cannot run stays failed.
      await pinned.loopOf(failed);
      await turns.reopen(sessionId, turnId, keys);
      return this.continueTurn(await archive.get(turnId), options);
    };
    const whileHeldElsewhere = (): Promise<void> => peers.whenFinished(sessionId, turnId);
    return sessionQueues.run({ sessionId, turnId, perform, whileHeldElsewhere }).catch((thrown) => {
      throw faultWithTurn(thrown, turnId);
    });
  }

  /** Continues a stored turn now. The caller holds its session. */
  async continueTurn(stored: StoredTurn, options: TurnOptions): Promise<TurnResult> {
    const { archive, pinned: pinnedTurns, turns } = this.deps;
    const { identity, turn, entries: earlierEntries } = stored;
    if (options.grant !== undefined) {
      assertGrantObject(options.grant);
      assertNeedsGrant(stored, this.deps.options.clock.now());
      const unanswerable = unanswerableGrant(options.grant, recordedApprovers(identity.turnId, earlierEntries));
      if (unanswerable !== undefined) throw unanswerable;
    }
    const startedWith = await archive.pinnedText(stored);
    const pinned = pinnedTurns.link(stored, startedWith);
    // guard: cancelled-turn-needs-no-grant
    const isCancelled = earlierEntries.some(({ type, key }) => type === 'cancel.requested' && key === identity.turnId);
    const hasEnded = turn.endedEntry !== undefined || isCancelled;
    // A turn that was cancelled performs nothing more, but its end must be recorded.
    if (!hasEnded) pinnedTurns.assertTrusted(stored, pinned);
    const changed = await changedContextResult(stored, pinned, this.deps.options);
    // guard: changed-context-stops-the-turn
    if (changed !== undefined) return changed;
    const request = { input: turn.startedEntry.value };
    const continued = { isContinued: true, hasEnded };
    return turns.run(identity, { pinned, request, earlierEntries, startedWith, ...continued }, options);
  }

  private findLoop({ loop, version }: TurnRequest): RegisteredLoop | undefined {
    const { registry, providers } = this.deps.options;
    if (typeof loop === 'string') return registry.find(loop, version);
    const unknownModel = unknownModelIn(loop, providers);
    if (unknownModel !== undefined) throw unknownModel;
    return registry.add(loop);
  }

  private async startTurn(
    identity: TurnIdentity,
    registered: RegisteredLoop,
    request: TurnRequest & { readonly hosted?: HostedTurnOrigin },
    options: TurnOptions,
  ): Promise<TurnResult> {
    const { archive, turns } = this.deps;
    const { registry, providers, build } = this.deps.options;
    const linked = linkLoop(registry, registered);
    const refusal = startRefusalOf(linked, registry, providers) ?? unanswerableGrant(request.grant, request.approvers);
    if (refusal !== undefined) return this.refusedResult(identity, refusal);
    const pinned = pin(linked, build);
    // A session that is created here has no earlier entries.
    const earlierEntries =
      request.sessionId !== undefined && turns.needsEarlierEntries(pinned)
        ? await archive.entries(identity.sessionId)
        : [];
    return turns.run(identity, { pinned, request, earlierEntries }, options);
  }

  /** Continues the turn of a key, or returns why the request does not belong to it. */
  private async attach(
    stored: StoredTurn,
    identity: TurnIdentity,
    request: TurnRequest & { readonly hosted: HostedTurnOrigin | undefined },
    options: TurnOptions,
  ): Promise<TurnResult> {
    try {
      const conflict = attachConflict(stored, request, identity) ?? originConflict(stored, request.hosted);
      return conflict === undefined ? await this.continueTurn(stored, options) : this.refusedResult(identity, conflict);
    } catch (thrown) {
      if (thrown instanceof LoopError) return this.refusedResult(identity, thrown);
      throw thrown;
    }
  }

  /**
   * Calls `onTurn`, and runs the turn when its session is free. While another process holds the session, that process
   * sends the events of the turn.
   */
  private runInSession(
    { sessionId, turnId }: Pick<TurnIdentity, 'sessionId' | 'turnId'>,
    options: TurnOptions,
    work: (options: TurnOptions) => Promise<TurnResult>,
  ): Promise<TurnResult> {
    const { peers, sessionQueues } = this.deps;
    options.onTurn?.(turnId);
    const remote = new RemoteTurn(options);
    return sessionQueues.run({
      sessionId,
      turnId,
      perform: () => work(remote.remainingOptions),
      whileHeldElsewhere: async () => {
        await peers.followTurn(remote.followRequest(sessionId, turnId), (update) => remote.receive(update));
        await remote.settled();
      },
    });
  }

  /** Returns the result of a request that starts or continues no turn. */
  private refusedResult(identity: TurnIdentity, error: LoopError): TurnResult {
    const now = this.deps.options.clock.now();
    return turnResultOf(identity, { status: 'error', error: error.toErrorRecord() }, [], now);
  }
}
