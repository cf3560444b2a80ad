/**
 * Runs one turn and logs its chunks: first those of the recorded entries, then live ones, then the result. Any number
 * of readers follow the log; the turn continues without readers.
 */
import type { DefinedLoop } from '../../loops/defined-loop.js';
import type { DefinitionOrigin } from '../../loops/origin.js';
import type { Approval, ApprovalAnswer } from '../../protocol/approval.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../../protocol/trace.js';
import { ChunkLog } from './chunk-log.js';
import { describeThrown, operatorErrorOf, withTurnId } from './operator-problem.js';
import { turnIdOf, UiChunks, type UiChunksOptions } from './ui-chunks.js';

/** The turn that a user message starts. */
export interface ChatTurn {
  readonly loop: string | DefinedLoop;
  readonly input: { readonly prompt: string };
  readonly sessionId: string;
  /** The idempotency key of the turn: a message that is sent again starts no second turn. */
  readonly key: string;
  readonly principal?: string;
  readonly approvers?: readonly string[];
}

/** Options with which a chat runs or resumes a turn. */
export interface ChatRunOptions {
  /** Receives the trace events of the turn. */
  readonly onEvent: (event: TraceEvent) => void;
}

/** The part of a host that a chat uses. */
export interface ChatHost {
  run(turn: ChatTurn, options: ChatRunOptions): Promise<TurnResult>;
  resume(turnId: string, options: ChatRunOptions): Promise<TurnResult>;
  cancel(turnId: string, reason: string): Promise<boolean>;
  answer(answer: ApprovalAnswer): Promise<unknown>;
  /**
   * Delivers the recorded envelopes of a session, then new ones and live deltas. Returns a function that unsubscribes.
   */
  follow(
    sessionId: string,
    subscriber: { envelope(envelope: EventEnvelope): void; delta(delta: LiveDelta): void },
  ): Promise<() => void>;
  readonly archive: {
    turns(sessionId: string): Promise<readonly TurnStatus[]>;
    approvals(sessionId: string): Promise<readonly Approval[]>;
  };
  readonly registry: {
    add(loop: DefinedLoop, origin: DefinitionOrigin): unknown;
    find(id: string): { readonly definition: LoopDef; readonly definedLoop?: DefinedLoop | undefined } | undefined;
  };
}

/** The stream of one running turn. */
export class TurnStream {
  readonly sessionId: string;
  readonly log = new ChunkLog();
  private readonly host: ChatHost;
  private readonly chunks: UiChunks;
  private readonly onError: (thrown: unknown) => void;
  private currentTurnId: string | undefined;
  /** Envelopes that arrived before the id of the turn was known. */
  private bufferedEnvelopes: EventEnvelope[] = [];
  private readerCount = 0;
  /** True if the last reader has left and the turn is to be cancelled. */
  private isAbandoned = false;

  /** `onError` receives what an operator must fix, which must not be sent to clients. It does not throw. */
  constructor(sessionId: string, host: ChatHost, options: UiChunksOptions, onError: (thrown: unknown) => void) {
    this.sessionId = sessionId;
    this.host = host;
    this.onError = onError;
    this.chunks = new UiChunks((chunk, step) => this.log.add(chunk, step), options);
  }

  /** The id of the turn; undefined until it is known. */
  get turnId(): string | undefined {
    return this.currentTurnId;
  }

  /** Runs the turn to its end or pause and logs its chunks. Never rejects. */
  async run(runTurn: (options: ChatRunOptions) => Promise<TurnResult>, turnId?: string): Promise<void> {
    let unsubscribe = (): void => {};
    try {
      unsubscribe = await this.host.follow(this.sessionId, {
        envelope: (envelope) => this.addEnvelope(envelope),
        delta: (delta) => {
          if (turnIdOf(delta.generationId) === this.currentTurnId) this.chunks.addDelta(delta);
        },
      });
      if (turnId !== undefined) this.identifyTurn(turnId);
      // The call id of a turn's first event contains the turn id.
      const result = await runTurn({ onEvent: ({ callId }) => this.identifyTurn(turnIdOf(callId)) });
      this.identifyTurn(result.turnId);
      const operatorError = operatorErrorOf(result);
      if (operatorError !== undefined) this.onError(operatorError);
      this.chunks.end(result);
    } catch (thrown) {
      this.onError(withTurnId(thrown, this.currentTurnId));
      this.chunks.fail(describeThrown(thrown));
    } finally {
      unsubscribe();
      this.log.end();
    }
  }

  /** Counts a reader. */
  addReader(): void {
    this.readerCount += 1;
  }

  /** Removes a reader that disconnected before the end. With `cancelIfLast`, the last reader cancels the turn. */
  removeReader(cancelIfLast: boolean): void {
    this.readerCount -= 1;
    if (!cancelIfLast || this.readerCount > 0) return;
    this.isAbandoned = true;
    if (this.currentTurnId !== undefined) this.cancelTurn(this.currentTurnId);
  }

  private addEnvelope(envelope: EventEnvelope): void {
    if (this.currentTurnId === undefined) this.bufferedEnvelopes.push(envelope);
    else if (turnIdOf(envelope.generationId) === this.currentTurnId) this.chunks.addEnvelope(envelope);
  }

  private identifyTurn(turnId: string): void {
    if (this.currentTurnId !== undefined) return;
    this.currentTurnId = turnId;
    const { bufferedEnvelopes } = this;
    this.bufferedEnvelopes = [];
    for (const envelope of bufferedEnvelopes) this.addEnvelope(envelope);
    if (this.isAbandoned && this.readerCount === 0) this.cancelTurn(turnId);
  }

  private cancelTurn(turnId: string): void {
    // A failure is ignored: the turn may have ended, and there is no reader to report to.
    this.host.cancel(turnId, 'The client disconnected.').catch(() => {});
  }
}
