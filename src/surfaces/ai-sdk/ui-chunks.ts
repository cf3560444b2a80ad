/**
 * One turn as the pieces of one message: envelopes of the journal, pieces that come live, and how the turn ended go in,
 * chunks of the AI SDK's UI message stream come out, the same ones for a turn that streams, one that does not, and one
 * that is told long after. It knows nothing of requests. Every envelope may come again; it is told once.
 */
import { codes } from '../../base/errors.js';
import type { ChildGenerationContent, EventEnvelope, EventEnvelopeOf } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { PendingItem, TurnResult } from '../../protocol/trace.js';
import type { AgentData, UiChunk } from './chunk.js';
import { Speech } from './speech.js';
import { type ErrorText, type KindOf, ToolCalls } from './tool-calls.js';

export interface UiChunksOptions {
  /** What a name is that the model calls; without it, every name is a tool. */
  readonly kindOf?: KindOf;
  /** What may be shown of an error; what its code means, unless told: messages can hold what users should not see. */
  readonly errorText?: ErrorText;
}

/** Gets each chunk, with the number of the step that it belongs to; 0 is the message itself. */
export type Say = (chunk: UiChunk, step: number) => void;

/** The turn that a generation is part of. */
export function turnOf(generationId: string): string {
  return generationId.split('/', 1)[0] ?? '';
}

/** What a code means, in words that give nothing away. */
export const meaningOf: ErrorText = ({ code }) =>
  Object.hasOwn(codes, code) ? codes[code as keyof typeof codes].means : 'An error occurred.';

export class UiChunks {
  private readonly out: Say;
  private readonly errorText: ErrorText;
  private readonly text: Speech;
  private readonly reasoning: Speech;
  private readonly calls: ToolCalls;
  private readonly told = new Set<string>();
  private readonly agents = new Map<string, AgentData>();
  private turn: string | undefined;
  private step = 0;
  private inStep = false;
  private prompted = false;

  constructor(out: Say, options: UiChunksOptions = {}) {
    const { kindOf = () => 'tool', errorText = meaningOf } = options;
    const say = (chunk: UiChunk): void => this.say(chunk);
    this.out = out;
    this.errorText = errorText;
    this.text = new Speech('text', say);
    this.reasoning = new Speech('reasoning', say);
    this.calls = new ToolCalls(say, kindOf, errorText);
  }

  /** The turn that is told, once anything of it was heard; the message has its id. */
  get turnId(): string | undefined {
    return this.turn;
  }

  /** The id of the tool part that an envelope became. */
  partOf(envelopeId: string): string | undefined {
    return this.calls.partOf(envelopeId);
  }

  envelope(envelope: EventEnvelope): void {
    if (!this.ours(envelope.generationId)) return;
    // A call of a tool comes again when its approval stands otherwise.
    if (envelope.type !== 'tool-call') {
      if (this.told.has(envelope.id)) return;
      this.told.add(envelope.id);
    }
    if (envelope.generationId === this.turn) this.own(envelope);
    else this.below(envelope);
  }

  delta(delta: LiveDelta): void {
    const { kind, generationId, text } = delta;
    if (!this.ours(generationId)) return;
    if (kind === 'tool-output') this.calls.output(delta);
    else if (generationId === this.turn) this.piece(delta);
    else if (kind !== 'tool-input') {
      this.say({ type: 'data-rondo-agent-delta', data: { generationId, kind, text }, transient: true });
    }
  }

  /** How the turn ended, or that it paused. */
  end(result: TurnResult): void {
    this.ours(result.turnId);
    const { status, output, error, pending = [] } = result;
    if (status === 'ok' && (this.calls.done || !this.text.spoke))
      this.answer((output as { text?: unknown } | null)?.text);
    if (status === 'ok' || status === 'error') this.calls.stop(status === 'ok');
    for (const item of pending) this.waiting(item);
    this.closeStep();
    const asks = pending.some(({ kind }) => kind === 'approval');
    if (status === 'error') this.failed(error ?? { code: '', message: '' });
    else this.say({ type: 'finish', finishReason: status === 'ok' ? 'stop' : asks ? 'tool-calls' : 'other' });
  }

  /** The machinery failed: the turn stands where it stood. */
  broken(): void {
    this.closeStep();
    this.say({ type: 'error', errorText: this.errorText({ code: 'STORE_FAILED', message: '' }) });
  }

  private piece(delta: LiveDelta): void {
    const { kind, text } = delta;
    this.content();
    if (kind !== 'text') this.text.close();
    if (kind !== 'reasoning') this.reasoning.close();
    if (kind === 'text') this.text.piece(text);
    else if (kind === 'reasoning') this.reasoning.piece(text);
    else this.calls.input(delta);
  }

  private own(envelope: EventEnvelope): void {
    const { id, type, content } = envelope;
    if (type === 'user-message') this.heard(id, content.text);
    else if (type === 'assistant-message' || type === 'reasoning') {
      this.content();
      (type === 'reasoning' ? this.reasoning : this.text).whole(content.text);
    } else if (type === 'tool-call') {
      if (!this.calls.knows(id)) this.content();
      this.calls.asked(envelope);
    } else if (type === 'trigger') {
      const { triggerName: name, ...more } = content;
      this.prompted = true;
      this.say({ type: 'data-rondo-trigger', id, data: { name, ...more } });
    } else if (type === 'generation-failure') {
      const { error } = content;
      const code = error.slice(0, Math.max(0, error.indexOf(':')));
      const errorText = this.errorText({ code, message: error.slice(code.length + 2) });
      this.say({ type: 'data-rondo-failure', id, data: { code, errorText } });
    } else this.shared(envelope);
  }

  private below(envelope: EventEnvelope): void {
    const { type, generationId, content } = envelope;
    if (type === 'loop-triggered') this.agent(generationId, {});
    else if (type === 'assistant-message') this.spoken(generationId, content.text);
    else if (type === 'tool-call') this.calls.askedBelow(envelope);
    else if (type === 'generation-failure') this.agent(generationId, { status: 'error' });
    else this.shared(envelope);
  }

  /** What means the same wherever it happens. */
  private shared(envelope: EventEnvelope): void {
    const { type, generationId, content } = envelope;
    if (type === 'tool-result' || type === 'tool-error') {
      if (type === 'tool-result') this.calls.returned(generationId, content);
      else this.calls.failed(generationId, content);
      this.answer(this.calls.handedOver());
    } else if (type === 'child-generation') this.child(content);
    else if (type === 'other-agent-message') this.otherAgent(envelope);
  }

  /** The prompt is the client's own message; what the user says later stands where the agent heard it. */
  private heard(id: string, text: string): void {
    if (this.prompted) this.say({ type: 'data-rondo-heard', id, data: { text } });
    this.prompted = true;
  }

  private otherAgent({ id, generationId, content }: EventEnvelopeOf<'other-agent-message'>): void {
    const named = content.agent === undefined ? {} : { agent: content.agent };
    this.spoken(generationId === this.turn ? id : generationId, content.text, named);
  }

  private spoken(generationId: string, text: string, more: Pick<AgentData, 'agent'> = {}): void {
    const before = this.agents.get(generationId)?.text;
    this.agent(generationId, { ...more, text: before === undefined ? text : `${before}\n\n${text}` });
  }

  private child({ childGenerationId, item, status, summary }: ChildGenerationContent): void {
    this.agent(childGenerationId, { agent: item, status, ...(summary !== undefined && { summary }) });
  }

  private agent(generationId: string, more: Partial<AgentData>): void {
    const data = { generationId, status: 'running' as const, ...this.agents.get(generationId), ...more };
    this.agents.set(generationId, data);
    this.say({ type: 'data-rondo-agent', id: generationId, data });
  }

  /** An answer that the agent's own model has not said. */
  private answer(text: unknown): void {
    if (typeof text !== 'string' || text === '') return;
    this.content();
    this.text.whole(text);
  }

  private waiting({ kind, name }: PendingItem): void {
    if (kind === 'approval') return;
    this.say({ type: 'data-rondo-waiting', data: { kind, ...(name !== undefined && { name }) }, transient: true });
  }

  private failed(error: { readonly code: string; readonly message: string }): void {
    if (error.code === 'CANCELLED') this.say({ type: 'abort' });
    else this.say({ type: 'error', errorText: this.errorText(error) });
  }

  /** Whether it is of the turn that is told; the first that is heard says which that is. */
  private ours(generationId: string): boolean {
    const turn = turnOf(generationId);
    if (turn !== '' && this.turn === undefined) {
      this.turn = turn;
      this.say({ type: 'start', messageId: turn });
    }
    return this.turn === turn;
  }

  /** The agent says or does something: a new step, if all that it called has ended. */
  private content(): void {
    if (this.inStep && !this.calls.done) return;
    this.closeStep();
    this.calls.nextStep();
    this.step += 1;
    this.inStep = true;
    this.say({ type: 'start-step' });
  }

  private closeStep(): void {
    this.text.nextStep();
    this.reasoning.nextStep();
    if (this.inStep) this.say({ type: 'finish-step' });
    this.inStep = false;
  }

  private say(chunk: UiChunk): void {
    const { type } = chunk;
    const whole = type === 'start' || type === 'finish' || type === 'error' || type === 'abort';
    this.out(chunk, whole ? 0 : this.step);
  }
}
