/**
 * Calls the stream handlers for envelopes and deltas, strictly one after another. A message that was not streamed
 * produces the same calls as a streamed one: a start, then one or more deltas. New envelopes are recognized by the
 * order of their ids, so that only unfinished blocks are held in memory.
 */
import type { EventEnvelope, EventEnvelopeOf } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import { isDescendantKey } from './conversation/open-calls.js';
import type { ToolRefusal } from './conversation.js';

type HandlerArguments = { readonly [N in keyof StreamHandlers]-?: Parameters<NonNullable<StreamHandlers[N]>>[0] };

interface QueuedCall {
  readonly name: keyof StreamHandlers;
  readonly info: HandlerArguments[keyof StreamHandlers];
}

/** The blocks that have started in the current reply of a generation. */
interface StartedBlocks {
  text: boolean;
  reasoning: boolean;
}

/**
 * The maximum number of generations that are tracked. Beyond it the oldest is dropped; its block starts again at its
 * next delta.
 */
const MAX_OPEN_GENERATIONS = 1000;

/** Translates envelopes and deltas into calls of stream handlers. */
export class StreamDispatcher {
  private readonly handlers: StreamHandlers;
  private readonly onError: (error: unknown) => void;
  private readonly startedBlocks = new Map<string, StartedBlocks>();
  private queue: QueuedCall[] = [];
  private draining: Promise<void> | undefined;
  /**
   * The id of the newest envelope: the sequence number of its entry, and the index among the envelopes of that entry.
   */
  private lastSeq: number;
  private lastIndex: number;

  /**
   * `onError` receives the errors of handlers and must not throw. Envelopes of entries before `firstSeq` are not new.
   */
  constructor(handlers: StreamHandlers, onError: (error: unknown) => void, firstSeq = 0) {
    this.handlers = handlers;
    this.onError = onError;
    this.lastSeq = firstSeq - 1;
    this.lastIndex = Number.POSITIVE_INFINITY;
  }

  /** Enqueues the handler calls for an envelope. Text that was streamed as deltas is not repeated. */
  envelope(envelope: EventEnvelope, refusal?: ToolRefusal): void {
    const { type, generationId, content } = envelope;
    const isNew = this.isNew(envelope.id);
    if (type === 'tool-call') this.dispatchToolCall(envelope, isNew);
    else if (!isNew) return;
    else if (type === 'assistant-message' || type === 'other-agent-message') {
      if (this.startedBlocks.get(generationId)?.text !== true) this.dispatchText(generationId, content.text);
      this.startedBlocks.delete(generationId);
    } else if (type === 'reasoning') {
      if (this.startedBlocks.get(generationId)?.reasoning !== true) this.dispatchReasoning(generationId, content.text);
      if (this.startedBlocks.get(generationId)?.text !== true) this.startedBlocks.delete(generationId);
    } else if (type === 'tool-result') this.enqueue('onToolResult', { generationId, ...content });
    else if (type === 'tool-error') this.dispatchToolError(envelope, refusal);
    else if (type === 'child-generation') this.forgetGeneration(content.childGenerationId);
    else if (type === 'user-abort' || type === 'generation-failure') this.forgetGeneration(generationId);
  }

  /** Enqueues the handler calls for a delta. There is no handler for `tool-input`. */
  delta({ kind, text: delta, generationId, toolCallId = '', toolName = '', isRestart }: LiveDelta): void {
    if (isRestart) this.startedBlocks.delete(generationId);
    else if (kind === 'text') this.dispatchText(generationId, delta);
    else if (kind === 'reasoning') this.dispatchReasoning(generationId, delta);
    else if (kind === 'tool-output') this.enqueue('onToolOutputDelta', { generationId, toolCallId, toolName, delta });
  }

  /** Resolves when all enqueued handler calls have finished. */
  settled(): Promise<void> {
    return this.draining ?? Promise.resolve();
  }

  private dispatchText(generationId: string, delta: string): void {
    const blocks = this.blocksOf(generationId);
    if (!blocks.text) this.enqueue('onAssistantMessage', { generationId });
    blocks.text = true;
    this.enqueue('onAssistantMessageDelta', { generationId, delta });
  }

  private dispatchReasoning(generationId: string, delta: string): void {
    const blocks = this.blocksOf(generationId);
    if (!blocks.reasoning) this.enqueue('onReasoningStart', { generationId });
    blocks.reasoning = true;
    this.enqueue('onReasoningDelta', { generationId, delta });
  }

  private dispatchToolCall({ generationId, content }: EventEnvelopeOf<'tool-call'>, isNew: boolean): void {
    const { approvalStatus, approvalDescription: description = '', approvalId, ...call } = content;
    const info = { generationId, ...call };
    if (isNew) {
      this.startedBlocks.delete(generationId);
      this.enqueue('onToolCall', info);
    }
    if (approvalStatus !== 'pending_approval' || approvalId === undefined) return;
    const { readOnly: _, ...action } = info;
    this.enqueue('onToolApprovalRequired', { ...action, description, approvalId });
  }

  private dispatchToolError({ generationId, content }: EventEnvelopeOf<'tool-error'>, refusal?: ToolRefusal): void {
    if (refusal?.code !== 'TOOL_NOT_FOUND') {
      this.enqueue('onToolError', { generationId, ...content });
      return;
    }
    const { toolCallId, toolName } = content;
    const info = { generationId, toolCallId, toolName };
    this.enqueue('onToolNotFound', refusal.args === undefined ? info : { ...info, args: refusal.args });
  }

  private blocksOf(generationId: string): StartedBlocks {
    const existing = this.startedBlocks.get(generationId);
    if (existing !== undefined) return existing;
    const blocks = { text: false, reasoning: false };
    this.startedBlocks.set(generationId, blocks);
    if (this.startedBlocks.size > MAX_OPEN_GENERATIONS) {
      const [oldest = ''] = this.startedBlocks.keys();
      this.startedBlocks.delete(oldest);
    }
    return blocks;
  }

  /** Drops the unfinished blocks of an ended generation and of the generations below it. */
  private forgetGeneration(generationId: string): void {
    for (const other of this.startedBlocks.keys())
      if (other === generationId || isDescendantKey(other, generationId)) this.startedBlocks.delete(other);
  }

  /**
   * Returns true for the first version of an envelope, and remembers its id: the id of a new envelope is greater than
   * all earlier ones.
   */
  private isNew(id: string): boolean {
    const dot = id.indexOf('.');
    const seq = Number(id.slice(0, dot));
    const index = Number(id.slice(dot + 1));
    if (seq < this.lastSeq || (seq === this.lastSeq && index <= this.lastIndex)) return false;
    this.lastSeq = seq;
    this.lastIndex = index;
    return true;
  }

  private enqueue<N extends keyof StreamHandlers>(name: N, info: HandlerArguments[N]): void {
    if (this.handlers[name] === undefined) return;
    this.queue.push({ name, info });
    this.draining ??= this.drain();
  }

  private async drain(): Promise<void> {
    // Handlers never run synchronously inside the publisher of an envelope.
    await undefined;
    while (this.queue.length > 0) {
      const batch = this.queue;
      this.queue = [];
      for (const { name, info } of batch) {
        try {
          const handler = this.handlers[name] as ((info: unknown) => unknown) | undefined;
          const done = handler?.call(this.handlers, info);
          if (done !== undefined) await done;
        } catch (error) {
          this.onError(error);
        }
      }
    }
    this.draining = undefined;
  }
}
