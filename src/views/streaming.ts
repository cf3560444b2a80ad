/**
 * Drives the stream handlers: envelopes and live pieces become calls of them, strictly one after another. A message
 * that was streamed and one that came whole look the same: it begins, and pieces follow. What was seen is told by the
 * order of ids alone, and of blocks only those that have begun and not ended are kept.
 */
import type { EventEnvelope, EventEnvelopeOf } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import { isBelow } from './conversation/calls.js';
import type { Refusal } from './conversation.js';

type Infos = { readonly [N in keyof StreamHandlers]-?: Parameters<NonNullable<StreamHandlers[N]>>[0] };

interface Waiting {
  readonly name: keyof StreamHandlers;
  readonly info: Infos[keyof StreamHandlers];
}

/** What has begun in the present reply of a generation. */
interface Begun {
  text: boolean;
  reasoning: boolean;
}

/** How many generations may speak at once; the oldest is forgotten, and would merely begin again. */
const SPEAKERS = 1000;

export class Streaming {
  private readonly handlers: StreamHandlers;
  private readonly failed: (error: unknown) => void;
  private readonly begun = new Map<string, Begun>();
  private waiting: Waiting[] = [];
  private running: Promise<void> | undefined;
  /** The place of the newest envelope: its entry, and which of that entry's it was. */
  private seq: number;
  private nth: number;

  /** `failed` hears what handlers throw, and must not throw itself; envelopes of entries before `since` are no news. */
  constructor(handlers: StreamHandlers, failed: (error: unknown) => void, since = 0) {
    this.handlers = handlers;
    this.failed = failed;
    this.seq = since - 1;
    this.nth = Number.POSITIVE_INFINITY;
  }

  envelope(envelope: EventEnvelope, refusal?: Refusal): void {
    const { type, generationId, content } = envelope;
    const isNew = this.isNew(envelope.id);
    if (type === 'tool-call') this.toolCall(envelope, isNew);
    else if (!isNew) return;
    else if (type === 'assistant-message' || type === 'other-agent-message') {
      if (this.begun.get(generationId)?.text !== true) this.text(generationId, content.text);
      this.begun.delete(generationId);
    } else if (type === 'reasoning') {
      if (this.begun.get(generationId)?.reasoning !== true) this.reasoning(generationId, content.text);
      if (this.begun.get(generationId)?.text !== true) this.begun.delete(generationId);
    } else if (type === 'tool-result') this.call('onToolResult', { generationId, ...content });
    else if (type === 'tool-error') this.toolError(envelope, refusal);
    else if (type === 'child-generation') this.forget(content.childGenerationId);
    else if (type === 'user-abort' || type === 'generation-failure') this.forget(generationId);
  }

  delta({ kind, text: delta, generationId, toolCallId = '', toolName = '', again }: LiveDelta): void {
    if (again) this.begun.delete(generationId);
    else if (kind === 'text') this.text(generationId, delta);
    else if (kind === 'reasoning') this.reasoning(generationId, delta);
    else if (kind === 'tool-output') this.call('onToolOutputDelta', { generationId, toolCallId, toolName, delta });
  }

  /** Resolves when every handler that was due has been called and is done. */
  settled(): Promise<void> {
    return this.running ?? Promise.resolve();
  }

  private text(generationId: string, delta: string): void {
    const begun = this.blocks(generationId);
    if (!begun.text) this.call('onAssistantMessage', { generationId });
    begun.text = true;
    this.call('onAssistantMessageDelta', { generationId, delta });
  }

  private reasoning(generationId: string, delta: string): void {
    const begun = this.blocks(generationId);
    if (!begun.reasoning) this.call('onReasoningStart', { generationId });
    begun.reasoning = true;
    this.call('onReasoningDelta', { generationId, delta });
  }

  private toolCall({ generationId, content }: EventEnvelopeOf<'tool-call'>, isNew: boolean): void {
    const { approvalStatus, approvalDescription: description = '', approvalId, ...told } = content;
    const info = { generationId, ...told };
    if (isNew) {
      this.begun.delete(generationId);
      this.call('onToolCall', info);
    }
    if (approvalStatus !== 'pending_approval' || approvalId === undefined) return;
    const { readOnly: _, ...action } = info;
    this.call('onToolApprovalRequired', { ...action, description, approvalId });
  }

  private toolError({ generationId, content }: EventEnvelopeOf<'tool-error'>, refusal?: Refusal): void {
    if (refusal?.code !== 'TOOL_NOT_FOUND') {
      this.call('onToolError', { generationId, ...content });
      return;
    }
    const { toolCallId, toolName } = content;
    const info = { generationId, toolCallId, toolName };
    this.call('onToolNotFound', refusal.args === undefined ? info : { ...info, args: refusal.args });
  }

  private blocks(generationId: string): Begun {
    const known = this.begun.get(generationId);
    if (known !== undefined) return known;
    const begun = { text: false, reasoning: false };
    this.begun.set(generationId, begun);
    if (this.begun.size > SPEAKERS) {
      const [oldest = ''] = this.begun.keys();
      this.begun.delete(oldest);
    }
    return begun;
  }

  /** A generation ended, and with it what it left half said, and all below it. */
  private forget(generationId: string): void {
    for (const other of this.begun.keys())
      if (other === generationId || isBelow(other, generationId)) this.begun.delete(other);
  }

  /** Whether an envelope is here for the first time: new ones only ever come behind all others. */
  private isNew(id: string): boolean {
    const dot = id.indexOf('.');
    const seq = Number(id.slice(0, dot));
    const nth = Number(id.slice(dot + 1));
    if (seq < this.seq || (seq === this.seq && nth <= this.nth)) return false;
    this.seq = seq;
    this.nth = nth;
    return true;
  }

  private call<N extends keyof StreamHandlers>(name: N, info: Infos[N]): void {
    if (this.handlers[name] === undefined) return;
    this.waiting.push({ name, info });
    this.running ??= this.run();
  }

  private async run(): Promise<void> {
    // Never inside the step of whoever tells of an envelope.
    await undefined;
    while (this.waiting.length > 0) {
      const lot = this.waiting;
      this.waiting = [];
      for (const { name, info } of lot) {
        try {
          const handler = this.handlers[name] as ((info: unknown) => unknown) | undefined;
          const done = handler?.call(this.handlers, info);
          if (done !== undefined) await done;
        } catch (error) {
          this.failed(error);
        }
      }
    }
    this.running = undefined;
  }
}
