/**
 * A turn that is driven and told at once: what the session holds of it, then what happens, then how it ended, written
 * down for whoever reads. It goes on whether anybody does.
 */
import type { DefinedLoop } from '../../loops/defined-loop.js';
import type { Approval, ApprovalAnswer } from '../../protocol/approval.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../../protocol/trace.js';
import { ChunkLog } from './chunk-log.js';
import { turnIdOf, UiChunks, type UiChunksOptions } from './ui-chunks.js';

/** What a message of the user becomes. */
export interface ChatTurn {
  readonly loop: string | DefinedLoop;
  readonly input: { readonly prompt: string };
  readonly sessionId: string;
  readonly key: string;
  readonly principal?: string;
}

/** Hears of the turn that is driven. */
export interface ChatRunOptions {
  readonly onEvent: (event: TraceEvent) => void;
}

/** What a chat needs of a host. */
export interface ChatHost {
  run(turn: ChatTurn, options: ChatRunOptions): Promise<TurnResult>;
  resume(turnId: string, options: ChatRunOptions): Promise<TurnResult>;
  cancel(turnId: string, reason: string): Promise<boolean>;
  answer(answer: ApprovalAnswer): Promise<unknown>;
  /** Tells what a session holds, then what happens; returns how to stop. */
  follow(
    sessionId: string,
    watcher: { envelope(envelope: EventEnvelope): void; delta(delta: LiveDelta): void },
  ): Promise<() => void>;
  readonly archive: {
    turns(sessionId: string): Promise<readonly TurnStatus[]>;
    approvals(sessionId: string): Promise<readonly Approval[]>;
  };
  readonly registry: { find(id: string): { readonly definition: LoopDef } | undefined };
}

export class TurnStream {
  readonly sessionId: string;
  readonly log = new ChunkLog();
  private readonly host: ChatHost;
  private readonly chunks: UiChunks;
  private readonly onError: (thrown: unknown) => void;
  private currentTurnId: string | undefined;
  /** What came before it was known which turn it is. */
  private bufferedEnvelopes: EventEnvelope[] = [];
  private readerCount = 0;
  private isAbandoned = false;

  /** `broke` hears what only the operator may know. */
  constructor(sessionId: string, host: ChatHost, options: UiChunksOptions, broke: (thrown: unknown) => void) {
    this.sessionId = sessionId;
    this.host = host;
    this.onError = broke;
    this.chunks = new UiChunks((chunk, step) => this.log.add(chunk, step), options);
  }

  get turnId(): string | undefined {
    return this.currentTurnId;
  }

  /** Drives the turn and tells it; never rejects. */
  async run(drive: (driven: ChatRunOptions) => Promise<TurnResult>, turnId?: string): Promise<void> {
    let leave = (): void => {};
    try {
      leave = await this.host.follow(this.sessionId, {
        envelope: (envelope) => this.addEnvelope(envelope),
        delta: (delta) => {
          if (turnIdOf(delta.generationId) === this.currentTurnId) this.chunks.addDelta(delta);
        },
      });
      if (turnId !== undefined) this.identifyTurn(turnId);
      // The first event of a turn is about the turn itself.
      const result = await drive({ onEvent: ({ callId }) => this.identifyTurn(turnIdOf(callId)) });
      this.identifyTurn(result.turnId);
      this.chunks.end(result);
    } catch (thrown) {
      this.onError(thrown);
      this.chunks.fail();
    } finally {
      leave();
      this.log.end();
    }
  }

  addReader(): void {
    this.readerCount += 1;
  }

  /** A reader went away before the end; the last one may take the turn with it. */
  removeReader(cancels: boolean): void {
    this.readerCount -= 1;
    if (!cancels || this.readerCount > 0) return;
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
    // One that has ended needs no cancelling, and nobody is left to tell of anything else.
    this.host.cancel(turnId, 'The client went away.').catch(() => {});
  }
}
