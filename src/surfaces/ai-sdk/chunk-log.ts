/**
 * An append-only log of the chunks of one message, with any number of readers. A reader keeps only its position, so a
 * slow reader costs no memory and delays no other one. Adjacent deltas are merged, so a slow reader receives fewer,
 * larger chunks.
 */
import type { Clock } from '../../journal/clock.js';
import { deltaTargetOf, deltaTextOf, type UiChunk, withDeltaText } from './chunk.js';

/** The chunks of a message that a reader already has. They are not sent again. */
export interface ReaderProgress {
  /** The number of steps in the reader's message. */
  readonly stepCount: number;
  /** The tool parts in the reader's message. */
  readonly toolCallIds: ReadonlySet<string>;
  /** Approvals in the reader's message that need no further request. */
  readonly approvalIds: ReadonlySet<string>;
  /**
   * Tool parts that the reader has answered. The stream must settle each one; otherwise the SDK sends the answers
   * again, endlessly.
   */
  readonly unsettledToolCallIds: ReadonlySet<string>;
}

interface LoggedChunk {
  chunk: UiChunk;
  /** The number of the step; 0 for a chunk of the whole message or before the first step. */
  readonly step: number;
}

/** Options of one reader. */
export interface ChunkStreamOptions {
  readonly progress?: ReaderProgress;
  /** Chunks for this reader only, sent first. */
  readonly leadingChunks?: readonly UiChunk[];
  /**
   * Times the keep-alive comments of an idle stream.
   * @default no keep-alive comments
   */
  readonly clock?: Clock | undefined;
  readonly onDisconnect?: () => void;
}

const NO_PROGRESS: ReaderProgress = {
  stepCount: 0,
  toolCallIds: new Set(),
  approvalIds: new Set(),
  unsettledToolCallIds: new Set(),
};
/** The length from which a delta is not extended. */
const MAX_MERGED_CHARS = 4096;
/** The length from which a batch of events is sent. */
const MAX_BATCH_CHARS = 16 * 1024;
const KEEP_ALIVE_MS = 15_000;
const UNSETTLED_TEXT =
  'The approval was answered, but its tool call has not ended. Reload the chat to see the current state.';

/** The chunk log of one message. */
export class ChunkLog {
  private readonly items: LoggedChunk[] = [];
  private readonly waiters = new Set<() => void>();
  private isEnded = false;

  /** Adds a chunk of a step. A delta may be merged with the last chunk. */
  add(chunk: UiChunk, step: number): void {
    const last = this.items.at(-1);
    const text = deltaTextOf(chunk);
    const lastText = last === undefined || text === undefined ? undefined : deltaTextOf(last.chunk);
    if (
      last &&
      text !== undefined &&
      lastText !== undefined &&
      lastText.length < MAX_MERGED_CHARS &&
      isSameDelta(last.chunk, chunk)
    ) {
      last.chunk = withDeltaText(last.chunk, lastText + text);
    } else this.items.push({ chunk, step });
    this.wakeReaders();
  }

  /** Marks the message as complete, so that its readers end. */
  end(): void {
    this.isEnded = true;
    this.wakeReaders();
  }

  /** Returns the message, without the chunks that the reader has, as a stream of server-sent events. */
  stream({
    progress = NO_PROGRESS,
    leadingChunks = [],
    clock,
    onDisconnect,
  }: ChunkStreamOptions = {}): ReadableStream<Uint8Array> {
    const reader = new ChunkReader(this.items, progress, leadingChunks);
    const disconnect = new AbortController();
    const encoder = new TextEncoder();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          let text = reader.readBatch();
          while (text === '' && !this.isEnded && !disconnect.signal.aborted) {
            const hasChanged = await this.waitForChange(clock, disconnect.signal);
            text = hasChanged ? reader.readBatch() : ': \n\n';
          }
          if (disconnect.signal.aborted) return;
          if (text !== '') return controller.enqueue(encoder.encode(text));
          controller.enqueue(encoder.encode('data: [DONE]\n\n'));
          controller.close();
        },
        cancel: () => {
          disconnect.abort();
          this.wakeReaders();
          onDisconnect?.();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Waits until the log changes. Returns false if it is time for a keep-alive comment. */
  private async waitForChange(clock: Clock | undefined, disconnected: AbortSignal): Promise<boolean> {
    const change = new Promise<boolean>((resolve) => this.waiters.add(() => resolve(true)));
    if (clock === undefined) return change;
    const stopTimer = new AbortController();
    const timeout = clock.sleep(KEEP_ALIVE_MS, AbortSignal.any([stopTimer.signal, disconnected])).then(
      () => false,
      () => true,
    );
    const hasChanged = await Promise.race([change, timeout]);
    stopTimer.abort();
    return hasChanged;
  }

  private wakeReaders(): void {
    const waiters = [...this.waiters];
    this.waiters.clear();
    for (const wake of waiters) wake();
  }
}

function isSameDelta(a: UiChunk, b: UiChunk): boolean {
  return a.type === b.type && deltaTargetOf(a) === deltaTargetOf(b);
}

/** The position of one reader. */
class ChunkReader {
  private readonly items: readonly LoggedChunk[];
  private readonly progress: ReaderProgress;
  private readonly unsettledToolCallIds: Set<string>;
  private readonly leadingChunks: UiChunk[];
  private index = 0;
  /** The number of characters that were read of the delta at `index`. */
  private offset = 0;

  constructor(items: readonly LoggedChunk[], progress: ReaderProgress, leadingChunks: readonly UiChunk[]) {
    this.items = items;
    this.progress = progress;
    this.unsettledToolCallIds = new Set(progress.unsettledToolCallIds);
    this.leadingChunks = [...leadingChunks];
  }

  /** Returns the unread chunks as server-sent events, up to a limit; an empty string if there are none. */
  readBatch(): string {
    let text = '';
    while (text.length < MAX_BATCH_CHARS) {
      const chunk = this.leadingChunks.shift() ?? this.next();
      if (chunk === undefined) break;
      text += `data: ${JSON.stringify(chunk)}\n\n`;
    }
    return text;
  }

  private next(): UiChunk | undefined {
    for (;;) {
      const item = this.items[this.index];
      if (item === undefined) return undefined;
      const text = deltaTextOf(item.chunk);
      const unread = text?.slice(this.offset);
      // The last delta may still grow, so the reader stays at its index.
      if (text !== undefined && this.index === this.items.length - 1) {
        if (unread === '') return undefined;
        this.offset = text.length;
      } else {
        this.index += 1;
        this.offset = 0;
      }
      if (unread === '' || !this.isUnseen(item)) continue;
      return this.endUnsettledWithError(unread === undefined ? item.chunk : withDeltaText(item.chunk, unread));
    }
  }

  /** True if the reader needs the chunk: it is new to the reader, or it may change a part that the reader has. */
  private isUnseen({ chunk, step }: LoggedChunk): boolean {
    const { stepCount, toolCallIds, approvalIds } = this.progress;
    if (step === 0 || step > stepCount) return true;
    switch (chunk.type) {
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-available':
      case 'tool-input-error':
        return !toolCallIds.has(chunk.toolCallId);
      case 'tool-approval-request':
        return !approvalIds.has(chunk.approvalId);
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        return true;
      default:
        return chunk.type.startsWith('data-');
    }
  }

  /**
   * Replaces the finish of a message with an unsettled answer by an error; otherwise the SDK sends the answer again.
   */
  private endUnsettledWithError(chunk: UiChunk): UiChunk {
    if (chunk.type === 'finish' && this.unsettledToolCallIds.size > 0)
      return { type: 'error', errorText: UNSETTLED_TEXT };
    if (chunk.type.startsWith('tool-output') || chunk.type === 'tool-approval-request') {
      this.unsettledToolCallIds.delete((chunk as { readonly toolCallId: string }).toolCallId);
    }
    return chunk;
  }
}
