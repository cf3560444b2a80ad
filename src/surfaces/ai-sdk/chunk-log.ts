/**
 * The chunks of one message while it is written, and those who read it, each at its own pace and from where it likes. A
 * reader holds nothing but its place: who reads slowly gets the pieces that came meanwhile as one, and nobody else waits.
 */
import type { Clock } from '../../journal/clock.js';
import { deltaTargetOf, deltaTextOf, type UiChunk, withDeltaText } from './chunk.js';

/** What a reader has of the message already: it goes on from there. */
export interface ReaderProgress {
  /** How many steps it has begun. */
  readonly stepCount: number;
  /** Its tool parts. */
  readonly toolCallIds: ReadonlySet<string>;
  /** The approvals it was asked for and that need not be asked for again. */
  readonly approvalIds: ReadonlySet<string>;
  /** Tool parts that it has answered for: the stream must say what became of each, or it would send them for ever. */
  readonly unsettledToolCallIds: ReadonlySet<string>;
}

interface LoggedChunk {
  chunk: UiChunk;
  readonly step: number;
}

export interface ChunkStreamOptions {
  readonly progress?: ReaderProgress;
  /** Chunks that are for this reader alone, before all others. */
  readonly leadingChunks?: readonly UiChunk[];
  /** With it, a reader that hears nothing for a while is told that the line is alive. */
  readonly clock?: Clock | undefined;
  readonly onDisconnect?: () => void;
}

const NO_PROGRESS: ReaderProgress = {
  stepCount: 0,
  toolCallIds: new Set(),
  approvalIds: new Set(),
  unsettledToolCallIds: new Set(),
};
const MAX_MERGED_CHARS = 4096;
const MAX_BATCH_CHARS = 16 * 1024;
const KEEP_ALIVE_MS = 15_000;
const UNSETTLED_TEXT =
  'An answer was given, but what it is about has not ended. Load the chat again to see how it stands.';

export class ChunkLog {
  private readonly items: LoggedChunk[] = [];
  private readonly waiters = new Set<() => void>();
  private isEnded = false;

  add(chunk: UiChunk, step: number): void {
    const last = this.items.at(-1);
    const text = deltaTextOf(chunk);
    const before = last === undefined || text === undefined ? undefined : deltaTextOf(last.chunk);
    if (
      last &&
      text !== undefined &&
      before !== undefined &&
      before.length < MAX_MERGED_CHARS &&
      isSameDelta(last.chunk, chunk)
    ) {
      last.chunk = withDeltaText(last.chunk, before + text);
    } else this.items.push({ chunk, step });
    this.wakeReaders();
  }

  end(): void {
    this.isEnded = true;
    this.wakeReaders();
  }

  /** The message as server-sent events. */
  stream({
    progress = NO_PROGRESS,
    leadingChunks = [],
    clock,
    onDisconnect,
  }: ChunkStreamOptions = {}): ReadableStream<Uint8Array> {
    const reader = new ChunkReader(this.items, progress, leadingChunks);
    const gone = new AbortController();
    const encoder = new TextEncoder();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          let text = reader.readBatch();
          while (text === '' && !this.isEnded && !gone.signal.aborted) {
            const heard = await this.waitForChange(clock, gone.signal);
            text = heard ? reader.readBatch() : ': \n\n';
          }
          if (gone.signal.aborted) return;
          if (text !== '') return controller.enqueue(encoder.encode(text));
          controller.enqueue(encoder.encode('data: [DONE]\n\n'));
          controller.close();
        },
        cancel: () => {
          gone.abort();
          this.wakeReaders();
          onDisconnect?.();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Waits until there is more to read; false if nothing came for a while. */
  private async waitForChange(clock: Clock | undefined, gone: AbortSignal): Promise<boolean> {
    const news = new Promise<boolean>((resolve) => this.waiters.add(() => resolve(true)));
    if (clock === undefined) return news;
    const enough = new AbortController();
    const quiet = clock.sleep(KEEP_ALIVE_MS, AbortSignal.any([enough.signal, gone])).then(
      () => false,
      () => true,
    );
    const heard = await Promise.race([news, quiet]);
    enough.abort();
    return heard;
  }

  private wakeReaders(): void {
    const waiting = [...this.waiters];
    this.waiters.clear();
    for (const resume of waiting) resume();
  }
}

function isSameDelta(a: UiChunk, b: UiChunk): boolean {
  return a.type === b.type && deltaTargetOf(a) === deltaTargetOf(b);
}

/** One reader's place. */
class ChunkReader {
  private readonly items: readonly LoggedChunk[];
  private readonly progress: ReaderProgress;
  private readonly unsettledToolCallIds: Set<string>;
  private readonly leadingChunks: UiChunk[];
  private index = 0;
  /** How much of the piece at the place was read. */
  private offset = 0;

  constructor(items: readonly LoggedChunk[], known: ReaderProgress, first: readonly UiChunk[]) {
    this.items = items;
    this.progress = known;
    this.unsettledToolCallIds = new Set(known.unsettledToolCallIds);
    this.leadingChunks = [...first];
  }

  /** What there is to read now, up to a bound; empty if there is nothing. */
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
      // The last piece may still grow, so the place stays at it.
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

  /** A message that would end with an answer still open ends with an error: the SDK stops sending it only then. */
  private endUnsettledWithError(chunk: UiChunk): UiChunk {
    if (chunk.type === 'finish' && this.unsettledToolCallIds.size > 0)
      return { type: 'error', errorText: UNSETTLED_TEXT };
    if (chunk.type.startsWith('tool-output') || chunk.type === 'tool-approval-request') {
      this.unsettledToolCallIds.delete((chunk as { readonly toolCallId: string }).toolCallId);
    }
    return chunk;
  }
}
