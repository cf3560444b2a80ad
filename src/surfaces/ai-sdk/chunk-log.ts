/**
 * The chunks of one message while it is written, and those who read it, each at its own pace and from where it likes. A
 * reader holds nothing but its place: who reads slowly gets the pieces that came meanwhile as one, and nobody else waits.
 */
import type { Clock } from '../../journal/clock.js';
import { addition, target, type UiChunk, withAddition } from './chunk.js';

/** What a reader has of the message already: it goes on from there. */
export interface Known {
  /** How many steps it has begun. */
  readonly steps: number;
  /** Its tool parts. */
  readonly tools: ReadonlySet<string>;
  /** The approvals it was asked for and that need not be asked for again. */
  readonly approvals: ReadonlySet<string>;
  /** Tool parts that it has answered for: the stream must say what became of each, or it would send them for ever. */
  readonly owed: ReadonlySet<string>;
}

interface Item {
  chunk: UiChunk;
  readonly step: number;
}

export interface Reading {
  readonly known?: Known;
  /** Chunks that are for this reader alone, before all others. */
  readonly first?: readonly UiChunk[];
  /** With it, a reader that hears nothing for a while is told that the line is alive. */
  readonly clock?: Clock | undefined;
  readonly left?: () => void;
}

const NOTHING: Known = { steps: 0, tools: new Set(), approvals: new Set(), owed: new Set() };
const MERGED = 4096;
const BATCH = 16 * 1024;
const QUIET = 15_000;
const UNSETTLED = 'An answer was given, but what it is about has not ended. Load the chat again to see how it stands.';

export class ChunkLog {
  private readonly items: Item[] = [];
  private readonly waiting = new Set<() => void>();
  private ended = false;

  add(chunk: UiChunk, step: number): void {
    const last = this.items.at(-1);
    const text = addition(chunk);
    const before = last === undefined || text === undefined ? undefined : addition(last.chunk);
    if (last && text !== undefined && before !== undefined && before.length < MERGED && same(last.chunk, chunk)) {
      last.chunk = withAddition(last.chunk, before + text);
    } else this.items.push({ chunk, step });
    this.wake();
  }

  end(): void {
    this.ended = true;
    this.wake();
  }

  /** The message as server-sent events. */
  stream({ known = NOTHING, first = [], clock, left }: Reading = {}): ReadableStream<Uint8Array> {
    const reader = new Reader(this.items, known, first);
    const gone = new AbortController();
    const encoder = new TextEncoder();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          let text = reader.take();
          while (text === '' && !this.ended && !gone.signal.aborted) {
            const heard = await this.change(clock, gone.signal);
            text = heard ? reader.take() : ': \n\n';
          }
          if (gone.signal.aborted) return;
          if (text !== '') return controller.enqueue(encoder.encode(text));
          controller.enqueue(encoder.encode('data: [DONE]\n\n'));
          controller.close();
        },
        cancel: () => {
          gone.abort();
          this.wake();
          left?.();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Waits until there is more to read; false if nothing came for a while. */
  private async change(clock: Clock | undefined, gone: AbortSignal): Promise<boolean> {
    const news = new Promise<boolean>((resolve) => this.waiting.add(() => resolve(true)));
    if (clock === undefined) return news;
    const enough = new AbortController();
    const quiet = clock.sleep(QUIET, AbortSignal.any([enough.signal, gone])).then(
      () => false,
      () => true,
    );
    const heard = await Promise.race([news, quiet]);
    enough.abort();
    return heard;
  }

  private wake(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const resume of waiting) resume();
  }
}

function same(a: UiChunk, b: UiChunk): boolean {
  return a.type === b.type && target(a) === target(b);
}

/** One reader's place. */
class Reader {
  private readonly items: readonly Item[];
  private readonly known: Known;
  private readonly owed: Set<string>;
  private readonly first: UiChunk[];
  private index = 0;
  /** How much of the piece at the place was read. */
  private offset = 0;

  constructor(items: readonly Item[], known: Known, first: readonly UiChunk[]) {
    this.items = items;
    this.known = known;
    this.owed = new Set(known.owed);
    this.first = [...first];
  }

  /** What there is to read now, up to a bound; empty if there is nothing. */
  take(): string {
    let text = '';
    while (text.length < BATCH) {
      const chunk = this.first.shift() ?? this.next();
      if (chunk === undefined) break;
      text += `data: ${JSON.stringify(chunk)}\n\n`;
    }
    return text;
  }

  private next(): UiChunk | undefined {
    for (;;) {
      const item = this.items[this.index];
      if (item === undefined) return undefined;
      const text = addition(item.chunk);
      const unread = text?.slice(this.offset);
      // The last piece may still grow, so the place stays at it.
      if (text !== undefined && this.index === this.items.length - 1) {
        if (unread === '') return undefined;
        this.offset = text.length;
      } else {
        this.index += 1;
        this.offset = 0;
      }
      if (unread === '' || !this.admits(item)) continue;
      return this.settled(unread === undefined ? item.chunk : withAddition(item.chunk, unread));
    }
  }

  private admits({ chunk, step }: Item): boolean {
    const { steps, tools, approvals } = this.known;
    if (step === 0 || step > steps) return true;
    switch (chunk.type) {
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-available':
      case 'tool-input-error':
        return !tools.has(chunk.toolCallId);
      case 'tool-approval-request':
        return !approvals.has(chunk.approvalId);
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        return true;
      default:
        return chunk.type.startsWith('data-');
    }
  }

  /** A message that would end with an answer still open ends with an error: the SDK stops sending it only then. */
  private settled(chunk: UiChunk): UiChunk {
    if (chunk.type === 'finish' && this.owed.size > 0) return { type: 'error', errorText: UNSETTLED };
    if (chunk.type.startsWith('tool-output') || chunk.type === 'tool-approval-request') {
      this.owed.delete((chunk as { readonly toolCallId: string }).toolCallId);
    }
    return chunk;
  }
}
