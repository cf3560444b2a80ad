/** An answer in the making: parts as they come, of shapes that nobody has checked, become a reply in bounds. */
import { nonEmptyText, nonNegativeInteger, ownProperty } from '../../base/own-property.js';
import type { Clock } from '../../journal/clock.js';
import type { ModelReply } from '../model.js';
import { backendError, MAX_MESSAGE_CHARS, type SentRequest, toBackendError } from './backend-error.js';

const DEFAULT_MAX_REPLY_BYTES = 8 * 1024 * 1024;
/** The most calls that one answer may make. */
const MAX_TOOL_CALLS = 10_000;
const FINISH_REASONS: ReadonlySet<unknown> = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error']);

/** A piece of an answer, for those who watch. */
export interface ModelDelta {
  readonly kind: 'text' | 'reasoning' | 'tool-input';
  readonly text: string;
  /** Of a tool's input: which call it is of. */
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** What came before is void: the model is asked again. */
  readonly isRestart?: true;
}

interface ReplyBuilderOptions {
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  readonly clock?: Pick<Clock, 'elapsed'> | undefined;
  readonly maxBytes?: number;
}

export class ModelReplyBuilder {
  readonly #sent: SentRequest;
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined;
  readonly #maxBytes: number;
  #text = '';
  #reasoning = '';
  readonly #clock: Pick<Clock, 'elapsed'> | undefined;
  /** When the thinking began, and how long it has taken. */
  #reasoningStartedAt: number | undefined;
  #reasoningMs: number | undefined;
  readonly #toolCalls: { id: string; name: string; input: string }[] = [];
  /** The ids that are taken, each with the number that its next double gets. */
  #nextIdSuffixes: Map<string, number> | undefined;
  /** The tools whose input is coming in, by the id of the call. */
  #streamingToolNames: Map<string, string> | undefined;
  #model: string;
  /** Bytes that are kept, and the cost of what is only passing: each must end somewhere. */
  #keptBytes = 0;
  #skippedBytes = 0;
  /** The last part, or the whole answer: what tells how it ended and what it used. */
  finishPart: unknown;

  constructor(sent: SentRequest, { onDelta, clock, maxBytes = DEFAULT_MAX_REPLY_BYTES }: ReplyBuilderOptions) {
    this.#sent = sent;
    this.#clock = clock;
    this.#model = sent.request.model;
    this.#onDelta = onDelta;
    this.#maxBytes = maxBytes;
  }

  /** Takes one part of a stream, of a shape that nobody has checked; true when it was the last. */
  addStreamPart(part: unknown): boolean {
    switch (ownProperty(part, 'type')) {
      case 'text-delta':
        return this.#addText(ownProperty(part, 'delta'));
      case 'reasoning-delta':
        return this.#addReasoning(ownProperty(part, 'delta'));
      case 'tool-input-start':
        this.#startToolInput(part);
        return this.#countSkipped('');
      case 'tool-input-delta':
        return this.#addToolInput(part, ownProperty(part, 'delta'));
      case 'tool-call':
        return this.#addToolCall(part);
      case 'response-metadata':
        return this.addResponseMetadata(part);
      case 'finish':
        this.finishPart = part;
        return true;
      case 'error':
        throw toBackendError(this.#sent, ownProperty(part, 'error'), true);
      default:
        return this.#countSkipped(nonEmptyText(ownProperty(part, 'delta')) ?? '');
    }
  }

  /** Takes one piece of an answer that came whole, of a shape that nobody has checked. */
  addContentPart(piece: unknown): void {
    switch (ownProperty(piece, 'type')) {
      case 'text':
        return void this.#addText(ownProperty(piece, 'text'));
      case 'reasoning':
        return void this.#addReasoning(ownProperty(piece, 'text'));
      case 'tool-call':
        return void this.#addToolCall(piece);
      default:
        return void this.#countSkipped('');
    }
  }

  /** Takes what is told of the answer itself. */
  addResponseMetadata(response: unknown): false {
    this.#model = nonEmptyText(ownProperty(response, 'modelId'))?.slice(0, 200) ?? this.#model;
    return this.#countSkipped('');
  }

  build(): ModelReply {
    const unified = ownProperty(ownProperty(this.finishPart, 'finishReason'), 'unified');
    const finish = FINISH_REASONS.has(unified) ? String(unified) : 'other';
    if (finish === 'error') throw backendError(this.#sent, 'says that it failed, and not why', { retryable: true });
    if (this.#text === '' && this.#toolCalls.length === 0) {
      // The same request would be cut short or filtered again.
      const retryable = finish !== 'length' && finish !== 'content-filter';
      throw backendError(this.#sent, `answered nothing (finish reason: ${finish})`, { retryable });
    }
    const usage = ownProperty(this.finishPart, 'usage');
    const inputTokens = nonNegativeInteger(ownProperty(ownProperty(usage, 'inputTokens'), 'total'));
    const outputTokens = nonNegativeInteger(ownProperty(ownProperty(usage, 'outputTokens'), 'total'));
    const reply: { -readonly [K in keyof ModelReply]: ModelReply[K] } = {
      text: this.#text,
      model: this.#model,
      finish,
    };
    if (inputTokens !== undefined) reply.inputTokens = inputTokens;
    if (outputTokens !== undefined) reply.outputTokens = outputTokens;
    if (this.#reasoning !== '') reply.reasoning = this.#reasoning;
    if (this.#reasoningMs !== undefined) reply.reasoningMs = this.#reasoningMs;
    if (this.#toolCalls.length > 0) reply.toolCalls = this.#toolCalls;
    return reply;
  }

  #addText(piece: unknown): false {
    if (!this.#countKept(piece)) return false;
    this.#text += piece;
    this.#onDelta?.({ kind: 'text', text: piece });
    return false;
  }

  #addReasoning(piece: unknown): false {
    if (!this.#countKept(piece)) return false;
    this.#reasoning += piece;
    this.#measureReasoning();
    this.#onDelta?.({ kind: 'reasoning', text: piece });
    return false;
  }

  #addToolCall(part: unknown): false {
    const id = nonEmptyText(ownProperty(part, 'toolCallId'));
    const name = nonEmptyText(ownProperty(part, 'toolName'));
    const input = ownProperty(part, 'input');
    const ours = ownProperty(part, 'providerExecuted') !== true;
    if (id === undefined || name === undefined || typeof input !== 'string' || !ours) return this.#countSkipped('');
    if (this.#toolCalls.length === MAX_TOOL_CALLS) {
      const what = `made more than ${MAX_TOOL_CALLS} calls in one answer; ask for fewer`;
      throw backendError(this.#sent, what, { retryable: false });
    }
    if (this.#countKept(`${id}${name}${input}`)) this.#toolCalls.push({ id: this.#uniqueToolCallId(id), name, input });
    return false;
  }

  /** Two calls under one id would be one to everybody who comes after. */
  #uniqueToolCallId(id: string): string {
    const [first] = this.#toolCalls;
    if (first === undefined) return id;
    this.#nextIdSuffixes ??= new Map([[first.id, 2]]);
    const ids = this.#nextIdSuffixes;
    let own = id;
    let n = ids.get(id) ?? 2;
    while (ids.has(own)) own = `${id}-${n++}`;
    ids.set(own, 2).set(id, n);
    return own;
  }

  #measureReasoning(): void {
    const at = this.#clock?.elapsed();
    if (at === undefined) return;
    this.#reasoningStartedAt ??= at;
    this.#reasoningMs = Math.max(0, Math.floor(at - this.#reasoningStartedAt));
  }

  #startToolInput(part: unknown): void {
    const id = nonEmptyText(ownProperty(part, 'id'));
    const name = nonEmptyText(ownProperty(part, 'toolName'));
    if (id === undefined || name === undefined || this.#onDelta === undefined) return;
    this.#streamingToolNames ??= new Map();
    if (this.#streamingToolNames.size < MAX_TOOL_CALLS)
      this.#streamingToolNames.set(id, name.slice(0, MAX_MESSAGE_CHARS));
  }

  #addToolInput(part: unknown, delta: unknown): false {
    const id = nonEmptyText(ownProperty(part, 'id'));
    const toolName = id === undefined ? undefined : this.#streamingToolNames?.get(id);
    if (id !== undefined && toolName !== undefined && typeof delta === 'string')
      this.#onDelta?.({ kind: 'tool-input', text: delta, toolCallId: id, toolName });
    return this.#countSkipped(nonEmptyText(delta) ?? '');
  }

  /** Counts what is kept; false for what is not text, or is none. */
  #countKept(piece: unknown): piece is string {
    if (typeof piece !== 'string' || piece === '') return this.#countSkipped('');
    this.#keptBytes += Buffer.byteLength(piece);
    if (this.#keptBytes > this.#maxBytes) this.#throwTooLong();
    return true;
  }

  /** Counts what is not kept, so that an endless stream of nothing ends too. */
  #countSkipped(piece: string): false {
    this.#skippedBytes += Math.max(1, Buffer.byteLength(piece));
    if (this.#skippedBytes > this.#maxBytes) this.#throwTooLong();
    return false;
  }

  #throwTooLong(): never {
    throw backendError(this.#sent, `answered more than ${this.#maxBytes} bytes; ask for less`, { retryable: false });
  }
}
