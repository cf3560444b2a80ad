/**
 * Drives the stream handlers: envelopes and live pieces become calls of them, strictly one after another. A message
 * that was streamed and one that came whole look the same: it begins, and pieces follow. What was seen is told by the
 * order of ids alone, and of blocks only those that have begun and not ended are kept.
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

/** What has begun in the present reply of a generation. */
interface StartedBlocks {
  text: boolean;
  reasoning: boolean;
}

/** How many generations may speak at once; the oldest is forgotten, and would merely begin again. */
const MAX_OPEN_GENERATIONS = 1000;

export class StreamDispatcher {
  private readonly handlers: StreamHandlers;
  private readonly onError: (error: unknown) => void;
  private readonly startedBlocks = new Map<string, StartedBlocks>();
  private queue: QueuedCall[] = [];
  private draining: Promise<void> | undefined;
  /** The place of the newest envelope: its entry, and which of that entry's it was. */
  private lastSeq: number;
  private lastIndex: number;

  /** `failed` hears what handlers throw, and must not throw itself; envelopes of entries before `since` are no news. */
  constructor(handlers: StreamHandlers, failed: (error: unknown) => void, since = 0) {
    this.handlers = handlers;
    this.onError = failed;
    this.lastSeq = since - 1;
    this.lastIndex = Number.POSITIVE_INFINITY;
  }

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

  delta({ kind, text: delta, generationId, toolCallId = '', toolName = '', isRestart }: LiveDelta): void {
    if (isRestart) this.startedBlocks.delete(generationId);
    else if (kind === 'text') this.dispatchText(generationId, delta);
    else if (kind === 'reasoning') this.dispatchReasoning(generationId, delta);
    else if (kind === 'tool-output') this.enqueue('onToolOutputDelta', { generationId, toolCallId, toolName, delta });
  }

  /** Resolves when every handler that was due has been called and is done. */
  settled(): Promise<void> {
    return this.draining ?? Promise.resolve();
  }

  private dispatchText(generationId: string, delta: string): void {
    const begun = this.blocksOf(generationId);
    if (!begun.text) this.enqueue('onAssistantMessage', { generationId });
    begun.text = true;
    this.enqueue('onAssistantMessageDelta', { generationId, delta });
  }

  private dispatchReasoning(generationId: string, delta: string): void {
    const begun = this.blocksOf(generationId);
    if (!begun.reasoning) this.enqueue('onReasoningStart', { generationId });
    begun.reasoning = true;
    this.enqueue('onReasoningDelta', { generationId, delta });
  }

  private dispatchToolCall({ generationId, content }: EventEnvelopeOf<'tool-call'>, isNew: boolean): void {
    const { approvalStatus, approvalDescription: description = '', approvalId, ...told } = content;
    const info = { generationId, ...told };
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
    const known = this.startedBlocks.get(generationId);
    if (known !== undefined) return known;
    const begun = { text: false, reasoning: false };
    this.startedBlocks.set(generationId, begun);
    if (this.startedBlocks.size > MAX_OPEN_GENERATIONS) {
      const [oldest = ''] = this.startedBlocks.keys();
      this.startedBlocks.delete(oldest);
    }
    return begun;
  }

  /** A generation ended, and with it what it left half said, and all below it. */
  private forgetGeneration(generationId: string): void {
    for (const other of this.startedBlocks.keys())
      if (other === generationId || isDescendantKey(other, generationId)) this.startedBlocks.delete(other);
  }

  /** Whether an envelope is here for the first time: new ones only ever come behind all others. */
  private isNew(id: string): boolean {
    const dot = id.indexOf('.');
    const seq = Number(id.slice(0, dot));
    const nth = Number(id.slice(dot + 1));
    if (seq < this.lastSeq || (seq === this.lastSeq && nth <= this.lastIndex)) return false;
    this.lastSeq = seq;
    this.lastIndex = nth;
    return true;
  }

  private enqueue<N extends keyof StreamHandlers>(name: N, info: HandlerArguments[N]): void {
    if (this.handlers[name] === undefined) return;
    this.queue.push({ name, info });
    this.draining ??= this.drain();
  }

  private async drain(): Promise<void> {
    // Never inside the step of whoever tells of an envelope.
    await undefined;
    while (this.queue.length > 0) {
      const lot = this.queue;
      this.queue = [];
      for (const { name, info } of lot) {
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
