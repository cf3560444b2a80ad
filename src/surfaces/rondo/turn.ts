/**
 * The handle of one turn: its result, its live events, and the actions that settle what it waits for. A handle keeps no
 * state of the turn itself, so handles of one turn may exist in several processes.
 */
import { followEnvelopes } from '../../host/follow-envelopes.js';
import type { Host } from '../../host/host.js';
import { sessionIdOf } from '../../host/turn-result.js';
import type { Approval } from '../../protocol/approval.js';
import type { SignalType } from '../../protocol/body.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { TurnResult, TurnStatus } from '../../protocol/trace.js';
import { isKeyOfTurn } from '../../views/turns.js';
import { AsyncQueue } from './async-queue.js';
import { outputOf } from './turn-outcome.js';
import type { TurnRuns } from './turn-runs.js';

/** Who answers an approval, and why. */
export interface AnswerOptions {
  /** The name of the person who answers. */
  readonly by: string;
  /** The reason; of a denial, the model reads it. */
  readonly reason?: string;
}

/** An answer that approves a call. */
export interface ApproveOptions extends AnswerOptions {
  /**
   * A JSON Schema: later calls of the same tool in this session whose arguments are valid under it are approved too.
   * @default only this call is approved
   */
  readonly standing?: Json;
}

/** A pending approval that can be answered. */
export interface PendingApproval extends Approval {
  /** Approves the call and continues the turn. */
  approve(options: ApproveOptions): Promise<void>;
  /** Denies the call and continues the turn. */
  deny(options: AnswerOptions): Promise<void>;
}

/** Options of a signal. */
export interface SignalOptions {
  /**
   * The delivery id: a signal that is sent twice under one id is received once.
   * @default a new id
   */
  readonly id?: string;
}

/** What a handle needs of the runtime that created it. */
export interface TurnDeps {
  readonly host: Host;
  readonly runs: TurnRuns;
  answer(id: string, approved: boolean, options: ApproveOptions): Promise<void>;
  signal(turnId: string, signal: string | SignalType, payload: unknown, options: SignalOptions): Promise<boolean>;
}

/**
 * A turn that was started, or that is known by its id.
 *
 * @example
 * const turn = await rondo.start(support, 'My lamp broke.');
 * for await (const event of turn.events()) console.log(event.type);
 * for (const approval of await turn.approvals()) await approval.approve({ by: 'ada' });
 * const result = await turn.result();
 */
export class Turn<O = unknown> {
  /** The id of the turn. It begins with the id of its session. */
  readonly id: string;
  readonly sessionId: string;
  private readonly deps: TurnDeps;
  /** The run that this handle was created for; undefined for a turn that is known by its id. */
  private readonly firstRun: Promise<TurnResult> | undefined;

  /** @internal */
  constructor(id: string, deps: TurnDeps, firstRun?: Promise<TurnResult>) {
    this.id = id;
    this.sessionId = sessionIdOf(id);
    this.deps = deps;
    this.firstRun = firstRun;
  }

  /**
   * Returns the result when the turn ends or pauses, in whatever process it runs. An interrupted turn is continued
   * here if its loop is registered in this process, and else waited for. Throws TURN_NOT_FOUND if the store has no such
   * turn.
   */
  async result(): Promise<TurnResult<O>> {
    const { runs } = this.deps;
    const first = runs.isRunning(this.id) ? undefined : await this.firstRun?.catch(() => undefined);
    const isFinal = first !== undefined && first.status !== 'paused';
    return (isFinal ? first : await runs.result(this.id)) as TurnResult<O>;
  }

  /** Returns the output when the turn completes. Throws a LoopError, TurnPaused or TurnStopped otherwise. */
  async output(): Promise<O> {
    return outputOf(await this.result());
  }

  /** Returns the current status without waiting. Throws TURN_NOT_FOUND if the store has no such turn. */
  async status(): Promise<TurnStatus> {
    const [status] = await this.deps.host.archive.status(this.id);
    return status as TurnStatus;
  }

  /**
   * Yields the envelopes (events with an id) of the turn from its start, and live ones until it ends or pauses, in
   * whatever process it runs. An envelope with the id of an earlier one replaces it.
   */
  events(): AsyncIterableIterator<EventEnvelope> {
    if (!this.deps.runs.isRunning(this.id)) return this.eventsOfAnyProcess();
    return this.follow((push) => ({
      envelope: (envelope: EventEnvelope) => {
        if (isKeyOfTurn(envelope.generationId, this.id)) push(envelope);
      },
    }));
  }

  /**
   * Yields the pieces of messages and of tool output while they are streamed, until the turn ends or pauses. Deltas are
   * not journaled: those before the call are joined into one per message, and a turn that another process runs has none
   * here.
   */
  deltas(): AsyncIterableIterator<LiveDelta> {
    return this.follow((push) => ({
      delta: (delta: LiveDelta) => {
        if (isKeyOfTurn(delta.generationId, this.id)) push(delta);
      },
    }));
  }

  /**
   * Returns the approvals that the turn waits for. If it has none, waits until it requests one, pauses or ends;
   * `rondo.approvals` does not wait. Throws TURN_NOT_FOUND if the store has no such turn.
   */
  async approvals(): Promise<readonly PendingApproval[]> {
    const pending = await this.pendingApprovals();
    if (pending.length > 0) return pending;
    for await (const event of this.events()) {
      const isRequest = event.type === 'tool-call' && event.content.approvalStatus === 'pending_approval';
      const requested = isRequest ? await this.pendingApprovals() : [];
      if (requested.length > 0) return requested;
    }
    return this.pendingApprovals();
  }

  /**
   * Sends a signal to the turn and continues it. Returns false if a signal with this delivery id was received before.
   *
   * @example
   * await turn.signal(paid, { amount: 5 }, { id: 'invoice-17' });
   */
  signal<P>(
    signal: string | SignalType<unknown, P>,
    payload?: NoInfer<P>,
    options: SignalOptions = {},
  ): Promise<boolean> {
    return this.deps.signal(this.id, signal as string | SignalType, payload, options);
  }

  /** Sends a message to the agent of the turn, which reads it before its next model call. */
  async steer(text: string): Promise<void> {
    await this.deps.host.sendMessage({ sessionId: this.sessionId, text });
  }

  /** Cancels the turn. Returns false if it had ended. */
  cancel(reason: string): Promise<boolean> {
    return this.deps.host.cancel(this.id, reason);
  }

  private async pendingApprovals(): Promise<readonly PendingApproval[]> {
    const pending = await this.deps.host.archive.approvals(this.sessionId);
    const { answer } = this.deps;
    return pending
      .filter(({ turnId }) => turnId === this.id)
      .map((approval) => ({
        ...approval,
        approve: (options: ApproveOptions) => answer(approval.id, true, options),
        deny: (options: AnswerOptions) => answer(approval.id, false, options),
      }));
  }

  /** Polls the entries of the session. The last read begins after the result is known, so it is complete. */
  private async *eventsOfAnyProcess(): AsyncGenerator<EventEnvelope> {
    const controller = new AbortController();
    let settled: { readonly error?: unknown } | undefined;
    this.result().then(
      () => {
        settled = {};
      },
      (error: unknown) => {
        settled = { error };
      },
    );
    try {
      let isLast = false;
      const followed = this.deps.host.followEntries(this.sessionId, controller.signal);
      for await (const { envelopes } of followEnvelopes(this.sessionId, followed)) {
        for (const envelope of envelopes) if (isKeyOfTurn(envelope.generationId, this.id)) yield envelope;
        if (isLast) return;
        if (settled !== undefined && 'error' in settled) throw settled.error;
        isLast = settled !== undefined;
      }
    } finally {
      controller.abort();
    }
  }

  private follow<T>(subscriberOf: (push: (item: T) => void) => object): AsyncIterableIterator<T> {
    const queue = new AsyncQueue<T>(
      () => void unsubscribed.then((unsubscribe) => unsubscribe()).catch(() => undefined),
    );
    const unsubscribed = this.deps.host.follow(
      this.sessionId,
      subscriberOf((item) => queue.push(item)),
    );
    const end = async (): Promise<void> => {
      const unsubscribe = await unsubscribed;
      try {
        await this.result();
        // The last envelopes are delivered after the result.
        await new Promise((resolve) => setImmediate(resolve));
        queue.end();
      } finally {
        unsubscribe();
      }
    };
    end().catch((error: unknown) => queue.fail(error));
    return queue;
  }
}
