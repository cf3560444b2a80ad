/**
 * Builds a bounded model reply from the parts that a provider returns. The parts are untrusted and read field by field.
 */
import { asNonEmptyText, asNonNegativeInteger, ownProperty } from '../../base/own-property.js';
import type { Clock } from '../../journal/clock.js';
import type { OutputMeter } from '../../protocol/body.js';
import type { ModelReply } from '../model.js';
import { backendError, MAX_MESSAGE_CHARS, type SentRequest, toBackendError } from './backend-error.js';

const DEFAULT_MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** Upper bound on the tool calls of one reply. */
const MAX_TOOL_CALLS = 10_000;
const FINISH_REASONS: ReadonlySet<unknown> = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error']);

/** A piece of a reply, streamed to subscribers and never journaled. */
export interface ModelDelta {
  readonly kind: 'text' | 'reasoning' | 'tool-input';
  readonly text: string;
  /** The tool call that a piece of tool input belongs to. */
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** True if the model is called again: discard all earlier deltas of the reply. */
  readonly isRestart?: true;
}

interface ReplyBuilderOptions {
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Counts each streamed piece before it is passed on. */
  readonly outputMeter?: OutputMeter | undefined;
  readonly clock?: Pick<Clock, 'elapsed'> | undefined;
  readonly maxBytes?: number;
}

/** Collects the parts of one reply. */
export class ModelReplyBuilder {
  private readonly sent: SentRequest;
  private readonly onDelta: ((delta: ModelDelta) => void) | undefined;
  private readonly outputMeter: OutputMeter | undefined;
  private readonly maxBytes: number;
  private text = '';
  private reasoning = '';
  private readonly clock: Pick<Clock, 'elapsed'> | undefined;
  /** The start of the reasoning by the monotonic clock. `reasoningMs` is its duration so far. */
  private reasoningStartedAt: number | undefined;
  private reasoningMs: number | undefined;
  private readonly toolCalls: { id: string; name: string; input: string }[] = [];
  /** The tool call ids of the reply, each with the suffix that its next duplicate gets. */
  private nextIdSuffixes: Map<string, number> | undefined;
  /** The names of tools whose input is being streamed, by the id of the call. */
  private streamingToolNames: Map<string, string> | undefined;
  private model: string;
  /** Bytes that are part of the reply. */
  private keptBytes = 0;
  /** Bytes of ignored parts, at least one per part. They are bounded too, so that an endless stream of them ends. */
  private skippedBytes = 0;
  /** The part with the finish reason and the token usage: the last one of a stream, or a whole generated result. */
  finishPart: unknown;

  constructor(sent: SentRequest, options: ReplyBuilderOptions) {
    const { onDelta, outputMeter, clock, maxBytes = DEFAULT_MAX_REPLY_BYTES } = options;
    this.sent = sent;
    this.outputMeter = outputMeter;
    this.clock = clock;
    this.model = sent.request.model;
    this.onDelta = onDelta;
    this.maxBytes = maxBytes;
  }

  /**
   * Adds one part of a stream. Returns true for the finish part. Throws BACKEND_FAILED for an error part or excess
   * data.
   */
  addStreamPart(part: unknown): boolean {
    switch (ownProperty(part, 'type')) {
      case 'text-delta':
        return this.addText(ownProperty(part, 'delta'));
      case 'reasoning-delta':
        return this.addReasoning(ownProperty(part, 'delta'));
      case 'tool-input-start':
        this.startToolInput(part);
        return this.countSkipped('');
      case 'tool-input-delta':
        return this.addToolInput(part, ownProperty(part, 'delta'));
      case 'tool-call':
        return this.addToolCall(part);
      case 'response-metadata':
        return this.addResponseMetadata(part);
      case 'finish':
        this.finishPart = part;
        return true;
      case 'error':
        throw toBackendError(this.sent, ownProperty(part, 'error'));
      default:
        return this.countSkipped(asNonEmptyText(ownProperty(part, 'delta')) ?? '');
    }
  }

  /** Adds one content part of a generated result. Throws BACKEND_FAILED for excess data. */
  addContentPart(part: unknown): void {
    switch (ownProperty(part, 'type')) {
      case 'text':
        return void this.addText(ownProperty(part, 'text'));
      case 'reasoning':
        return void this.addReasoning(ownProperty(part, 'text'));
      case 'tool-call':
        return void this.addToolCall(part);
      default:
        return void this.countSkipped('');
    }
  }

  /** Sets the model name from the metadata of the response, if it has one. */
  addResponseMetadata(response: unknown): false {
    this.model = asNonEmptyText(ownProperty(response, 'modelId'))?.slice(0, 200) ?? this.model;
    return this.countSkipped('');
  }

  /** Returns the reply. Throws BACKEND_FAILED if the provider reported an error or the reply is empty. */
  build(): ModelReply {
    const reason = ownProperty(this.finishPart, 'finishReason');
    const unified = ownProperty(reason, 'unified');
    const finish = FINISH_REASONS.has(unified) ? String(unified) : 'other';
    // Provider packages report a connection that broke off, and a server without a reason, as `other` without `raw`.
    if (unified === 'other' && ownProperty(reason, 'raw') === undefined)
      throw backendError(this.sent, 'ended its reply without a finish reason', { retryable: true });
    if (finish === 'error') throw backendError(this.sent, 'reported an error without a reason', { retryable: true });
    if (this.text === '' && this.toolCalls.length === 0) {
      // The same request would be truncated or filtered again.
      const retryable = finish !== 'length' && finish !== 'content-filter';
      throw backendError(this.sent, `returned an empty reply (finish reason: ${finish})`, { retryable });
    }
    const usage = ownProperty(this.finishPart, 'usage');
    const inputTokens = asNonNegativeInteger(ownProperty(ownProperty(usage, 'inputTokens'), 'total'));
    const outputTokens = asNonNegativeInteger(ownProperty(ownProperty(usage, 'outputTokens'), 'total'));
    const reply: { -readonly [K in keyof ModelReply]: ModelReply[K] } = {
      text: this.text,
      model: this.model,
      finish,
    };
    if (inputTokens !== undefined) reply.inputTokens = inputTokens;
    if (outputTokens !== undefined) reply.outputTokens = outputTokens;
    if (this.reasoning !== '') reply.reasoning = this.reasoning;
    if (this.reasoningMs !== undefined) reply.reasoningMs = this.reasoningMs;
    if (this.toolCalls.length > 0) reply.toolCalls = this.toolCalls;
    return reply;
  }

  private addText(piece: unknown): false {
    if (!this.countKept(piece)) return false;
    this.outputMeter?.addPiece(piece);
    this.text += piece;
    this.onDelta?.({ kind: 'text', text: piece });
    return false;
  }

  private addReasoning(piece: unknown): false {
    if (!this.countKept(piece)) return false;
    this.outputMeter?.addPiece(piece);
    this.reasoning += piece;
    this.measureReasoning();
    this.onDelta?.({ kind: 'reasoning', text: piece });
    return false;
  }

  private addToolCall(part: unknown): false {
    const id = asNonEmptyText(ownProperty(part, 'toolCallId'));
    const name = asNonEmptyText(ownProperty(part, 'toolName'));
    const input = ownProperty(part, 'input');
    const isExecuted = ownProperty(part, 'providerExecuted') === true;
    if (id === undefined || name === undefined || typeof input !== 'string' || isExecuted) return this.countSkipped('');
    if (this.toolCalls.length === MAX_TOOL_CALLS) {
      const problem = `made more than ${MAX_TOOL_CALLS} tool calls in one reply; request fewer`;
      throw backendError(this.sent, problem, { retryable: false });
    }
    if (this.countKept(`${id}${name}${input}`)) this.toolCalls.push({ id: this.uniqueToolCallId(id), name, input });
    return false;
  }

  /** Returns the id, with a suffix if the reply already uses it: the ids of a reply must be unique. */
  private uniqueToolCallId(id: string): string {
    const [first] = this.toolCalls;
    if (first === undefined) return id;
    this.nextIdSuffixes ??= new Map([[first.id, 2]]);
    const ids = this.nextIdSuffixes;
    let uniqueId = id;
    let suffix = ids.get(id) ?? 2;
    while (ids.has(uniqueId)) uniqueId = `${id}-${suffix++}`;
    ids.set(uniqueId, 2).set(id, suffix);
    return uniqueId;
  }

  private measureReasoning(): void {
    const now = this.clock?.elapsed();
    if (now === undefined) return;
    this.reasoningStartedAt ??= now;
    this.reasoningMs = Math.max(0, Math.floor(now - this.reasoningStartedAt));
  }

  private startToolInput(part: unknown): void {
    const id = asNonEmptyText(ownProperty(part, 'id'));
    const name = asNonEmptyText(ownProperty(part, 'toolName'));
    if (id === undefined || name === undefined || this.onDelta === undefined) return;
    this.streamingToolNames ??= new Map();
    if (this.streamingToolNames.size < MAX_TOOL_CALLS)
      this.streamingToolNames.set(id, name.slice(0, MAX_MESSAGE_CHARS));
  }

  private addToolInput(part: unknown, delta: unknown): false {
    const id = asNonEmptyText(ownProperty(part, 'id'));
    const toolName = id === undefined ? undefined : this.streamingToolNames?.get(id);
    this.countSkipped(asNonEmptyText(delta) ?? '');
    if (id !== undefined && toolName !== undefined && typeof delta === 'string')
      this.onDelta?.({ kind: 'tool-input', text: delta, toolCallId: id, toolName });
    return false;
  }

  /** Counts text that becomes part of the reply. Returns false for an empty text and for a value that is not text. */
  private countKept(piece: unknown): piece is string {
    if (typeof piece !== 'string' || piece === '') return this.countSkipped('');
    this.keptBytes += Buffer.byteLength(piece);
    if (this.keptBytes > this.maxBytes) this.throwTooLong();
    return true;
  }

  /** Counts data that does not become part of the reply. */
  private countSkipped(piece: string): false {
    // guard: unused-pieces-metered
    if (piece !== '') this.outputMeter?.addPiece(piece);
    this.skippedBytes += Math.max(1, Buffer.byteLength(piece));
    if (this.skippedBytes > this.maxBytes) this.throwTooLong();
    return false;
  }

  private throwTooLong(): never {
    throw backendError(this.sent, `returned more than ${this.maxBytes} bytes; request a shorter reply`, {
      retryable: false,
    });
  }
}
