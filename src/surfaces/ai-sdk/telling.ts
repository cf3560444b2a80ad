/**
 * A turn that is driven and told at once: what the session holds of it, then what happens, then how it ended, written
 * down for whoever reads. It goes on whether anybody does.
 */
import type { DefinedLoop } from '../../loops/defined.js';
import type { Approval, ApprovalAnswer } from '../../protocol/approval.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { LoopDef } from '../../protocol/loop.js';
import type { TraceEvent, TurnResult, TurnStatus } from '../../protocol/trace.js';
import { ChunkLog } from './chunk-log.js';
import { turnOf, UiChunks, type UiChunksOptions } from './ui-chunks.js';

/** What a message of the user becomes. */
export interface ChatTurn {
  readonly loop: string | DefinedLoop;
  readonly input: { readonly prompt: string };
  readonly sessionId: string;
  readonly key: string;
  readonly principal?: string;
}

/** Hears of the turn that is driven. */
export interface Driven {
  readonly onEvent: (event: TraceEvent) => void;
}

/** What a chat needs of a host. */
export interface ChatHost {
  run(turn: ChatTurn, options: Driven): Promise<TurnResult>;
  resume(turnId: string, options: Driven): Promise<TurnResult>;
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

export class Telling {
  readonly sessionId: string;
  readonly log = new ChunkLog();
  private readonly host: ChatHost;
  private readonly chunks: UiChunks;
  private readonly broke: (thrown: unknown) => void;
  private turn: string | undefined;
  /** What came before it was known which turn it is. */
  private early: EventEnvelope[] = [];
  private readers = 0;
  private unwanted = false;

  /** `broke` hears what only the operator may know. */
  constructor(sessionId: string, host: ChatHost, options: UiChunksOptions, broke: (thrown: unknown) => void) {
    this.sessionId = sessionId;
    this.host = host;
    this.broke = broke;
    this.chunks = new UiChunks((chunk, step) => this.log.add(chunk, step), options);
  }

  get turnId(): string | undefined {
    return this.turn;
  }

  /** Drives the turn and tells it; never rejects. */
  async tell(drive: (driven: Driven) => Promise<TurnResult>, turnId?: string): Promise<void> {
    let leave = (): void => {};
    try {
      leave = await this.host.follow(this.sessionId, {
        envelope: (envelope) => this.envelope(envelope),
        delta: (delta) => {
          if (turnOf(delta.generationId) === this.turn) this.chunks.delta(delta);
        },
      });
      if (turnId !== undefined) this.know(turnId);
      // The first event of a turn is about the turn itself.
      const result = await drive({ onEvent: ({ callId }) => this.know(turnOf(callId)) });
      this.know(result.turnId);
      this.chunks.end(result);
    } catch (thrown) {
      this.broke(thrown);
      this.chunks.broken();
    } finally {
      leave();
      this.log.end();
    }
  }

  join(): void {
    this.readers += 1;
  }

  /** A reader went away before the end; the last one may take the turn with it. */
  leave(cancels: boolean): void {
    this.readers -= 1;
    if (!cancels || this.readers > 0) return;
    this.unwanted = true;
    if (this.turn !== undefined) this.cancel(this.turn);
  }

  private envelope(envelope: EventEnvelope): void {
    if (this.turn === undefined) this.early.push(envelope);
    else if (turnOf(envelope.generationId) === this.turn) this.chunks.envelope(envelope);
  }

  private know(turnId: string): void {
    if (this.turn !== undefined) return;
    this.turn = turnId;
    const { early } = this;
    this.early = [];
    for (const envelope of early) this.envelope(envelope);
    if (this.unwanted && this.readers === 0) this.cancel(turnId);
  }

  private cancel(turnId: string): void {
    // One that has ended needs no cancelling, and nobody is left to tell of anything else.
    this.host.cancel(turnId, 'The client went away.').catch(() => {});
  }
}
