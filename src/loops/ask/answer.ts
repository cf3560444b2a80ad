/** An answer in the making: parts as they come, of shapes that nobody has checked, become a reply in bounds. */
import { nonEmptyText, nonNegativeInteger, ownProperty } from '../../base/own-property.js';
import type { Clock } from '../../journal/clock.js';
import type { ModelReply } from '../model.js';
import { failed, failureOf, MAX_MESSAGE, type Sent } from './failure.js';

const MAX_BYTES = 8 * 1024 * 1024;
/** The most calls that one answer may make. */
const MOST_CALLS = 10_000;
const FINISHES: ReadonlySet<unknown> = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error']);

/** A piece of an answer, for those who watch. */
export interface ModelDelta {
  readonly kind: 'text' | 'reasoning' | 'tool-input';
  readonly text: string;
  /** Of a tool's input: which call it is of. */
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** What came before is void: the model is asked again. */
  readonly again?: true;
}

interface AnswerOptions {
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  readonly clock?: Pick<Clock, 'elapsed'> | undefined;
  readonly maxBytes?: number;
}

export class Answer {
  readonly #sent: Sent;
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined;
  readonly #max: number;
  #text = '';
  #reasoning = '';
  readonly #clock: Pick<Clock, 'elapsed'> | undefined;
  /** When the thinking began, and how long it has taken. */
  #began: number | undefined;
  #thought: number | undefined;
  readonly #toolCalls: { id: string; name: string; input: string }[] = [];
  /** The ids that are taken, each with the number that its next double gets. */
  #ids: Map<string, number> | undefined;
  /** The tools whose input is coming in, by the id of the call. */
  #coming: Map<string, string> | undefined;
  #model: string;
  /** Bytes that are kept, and the cost of what is only passing: each must end somewhere. */
  #kept = 0;
  #passing = 0;
  /** The last part, or the whole answer: what tells how it ended and what it used. */
  finish: unknown;

  constructor(sent: Sent, { onDelta, clock, maxBytes = MAX_BYTES }: AnswerOptions) {
    this.#sent = sent;
    this.#clock = clock;
    this.#model = sent.request.model;
    this.#onDelta = onDelta;
    this.#max = maxBytes;
  }

  /** Takes one part of a stream, of a shape that nobody has checked; true when it was the last. */
  take(part: unknown): boolean {
    switch (ownProperty(part, 'type')) {
      case 'text-delta':
        return this.#say(ownProperty(part, 'delta'));
      case 'reasoning-delta':
        return this.#reason(ownProperty(part, 'delta'));
      case 'tool-input-start':
        this.#comes(part);
        return this.#pass('');
      case 'tool-input-delta':
        return this.#inputComes(part, ownProperty(part, 'delta'));
      case 'tool-call':
        return this.#call(part);
      case 'response-metadata':
        return this.takeAbout(part);
      case 'finish':
        this.finish = part;
        return true;
      case 'error':
        throw failureOf(this.#sent, ownProperty(part, 'error'), true);
      default:
        return this.#pass(nonEmptyText(ownProperty(part, 'delta')) ?? '');
    }
  }

  /** Takes one piece of an answer that came whole, of a shape that nobody has checked. */
  takeWhole(piece: unknown): void {
    switch (ownProperty(piece, 'type')) {
      case 'text':
        return void this.#say(ownProperty(piece, 'text'));
      case 'reasoning':
        return void this.#reason(ownProperty(piece, 'text'));
      case 'tool-call':
        return void this.#call(piece);
      default:
        return void this.#pass('');
    }
  }

  /** Takes what is told of the answer itself. */
  takeAbout(response: unknown): false {
    this.#model = nonEmptyText(ownProperty(response, 'modelId'))?.slice(0, 200) ?? this.#model;
    return this.#pass('');
  }

  reply(): ModelReply {
    const unified = ownProperty(ownProperty(this.finish, 'finishReason'), 'unified');
    const finish = FINISHES.has(unified) ? String(unified) : 'other';
    if (finish === 'error') throw failed(this.#sent, 'says that it failed, and not why', { retryable: true });
    if (this.#text === '' && this.#toolCalls.length === 0) {
      // The same request would be cut short or filtered again.
      const retryable = finish !== 'length' && finish !== 'content-filter';
      throw failed(this.#sent, `answered nothing (finish reason: ${finish})`, { retryable });
    }
    const usage = ownProperty(this.finish, 'usage');
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
    if (this.#thought !== undefined) reply.reasoningMs = this.#thought;
    if (this.#toolCalls.length > 0) reply.toolCalls = this.#toolCalls;
    return reply;
  }

  #say(piece: unknown): false {
    if (!this.#keeps(piece)) return false;
    this.#text += piece;
    this.#onDelta?.({ kind: 'text', text: piece });
    return false;
  }

  #reason(piece: unknown): false {
    if (!this.#keeps(piece)) return false;
    this.#reasoning += piece;
    this.#think();
    this.#onDelta?.({ kind: 'reasoning', text: piece });
    return false;
  }

  #call(part: unknown): false {
    const id = nonEmptyText(ownProperty(part, 'toolCallId'));
    const name = nonEmptyText(ownProperty(part, 'toolName'));
    const input = ownProperty(part, 'input');
    const ours = ownProperty(part, 'providerExecuted') !== true;
    if (id === undefined || name === undefined || typeof input !== 'string' || !ours) return this.#pass('');
    if (this.#toolCalls.length === MOST_CALLS) {
      const what = `made more than ${MOST_CALLS} calls in one answer; ask for fewer`;
      throw failed(this.#sent, what, { retryable: false });
    }
    if (this.#keeps(`${id}${name}${input}`)) this.#toolCalls.push({ id: this.#own(id), name, input });
    return false;
  }

  /** Two calls under one id would be one to everybody who comes after. */
  #own(id: string): string {
    const [first] = this.#toolCalls;
    if (first === undefined) return id;
    this.#ids ??= new Map([[first.id, 2]]);
    const ids = this.#ids;
    let own = id;
    let n = ids.get(id) ?? 2;
    while (ids.has(own)) own = `${id}-${n++}`;
    ids.set(own, 2).set(id, n);
    return own;
  }

  #think(): void {
    const at = this.#clock?.elapsed();
    if (at === undefined) return;
    this.#began ??= at;
    this.#thought = Math.max(0, Math.floor(at - this.#began));
  }

  #comes(part: unknown): void {
    const id = nonEmptyText(ownProperty(part, 'id'));
    const name = nonEmptyText(ownProperty(part, 'toolName'));
    if (id === undefined || name === undefined || this.#onDelta === undefined) return;
    this.#coming ??= new Map();
    if (this.#coming.size < MOST_CALLS) this.#coming.set(id, name.slice(0, MAX_MESSAGE));
  }

  #inputComes(part: unknown, delta: unknown): false {
    const id = nonEmptyText(ownProperty(part, 'id'));
    const toolName = id === undefined ? undefined : this.#coming?.get(id);
    if (id !== undefined && toolName !== undefined && typeof delta === 'string')
      this.#onDelta?.({ kind: 'tool-input', text: delta, toolCallId: id, toolName });
    return this.#pass(nonEmptyText(delta) ?? '');
  }

  /** Counts what is kept; false for what is not text, or is none. */
  #keeps(piece: unknown): piece is string {
    if (typeof piece !== 'string' || piece === '') return this.#pass('');
    this.#kept += Buffer.byteLength(piece);
    if (this.#kept > this.#max) this.#refuse();
    return true;
  }

  /** Counts what is not kept, so that an endless stream of nothing ends too. */
  #pass(piece: string): false {
    this.#passing += Math.max(1, Buffer.byteLength(piece));
    if (this.#passing > this.#max) this.#refuse();
    return false;
  }

  #refuse(): never {
    throw failed(this.#sent, `answered more than ${this.#max} bytes; ask for less`, { retryable: false });
  }
}
