/**
 * One turn as the pieces of one message: envelopes of the journal, pieces that come live, and how the turn ended go in,
 * chunks of the AI SDK's UI message stream come out, the same ones for a turn that streams, one that does not, and one
 * that is told long after. It knows nothing of requests. Every envelope may come again; it is told once.
 */
import { errorCodes } from '../../base/errors.js';
import type { ChildGenerationContent, EventEnvelope, EventEnvelopeOf } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { PendingItem, TurnResult } from '../../protocol/trace.js';
import type { AgentData, UiChunk } from './chunk.js';
import { TextPartWriter } from './text-part-writer.js';
import { type ErrorFormatter, ToolCalls, type ToolKindLookup } from './tool-calls.js';

export interface UiChunksOptions {
  /** What a name is that the model calls; without it, every name is a tool. */
  readonly kindOf?: ToolKindLookup;
  /** What may be shown of an error; what its code means, unless told: messages can hold what users should not see. */
  readonly errorText?: ErrorFormatter;
}

/** Gets each chunk, with the number of the step that it belongs to; 0 is the message itself. */
export type ChunkSink = (chunk: UiChunk, step: number) => void;

/** The turn that a generation is part of. */
export function turnIdOf(generationId: string): string {
  return generationId.split('/', 1)[0] ?? '';
}

/** What a code means, in words that give nothing away. */
export const genericErrorText: ErrorFormatter = ({ code }) =>
  Object.hasOwn(errorCodes, code) ? errorCodes[code as keyof typeof errorCodes].meaning : 'An error occurred.';

export class UiChunks {
  private readonly sink: ChunkSink;
  private readonly errorText: ErrorFormatter;
  private readonly text: TextPartWriter;
  private readonly reasoning: TextPartWriter;
  private readonly calls: ToolCalls;
  private readonly seenEnvelopeIds = new Set<string>();
  private readonly agents = new Map<string, AgentData>();
  private currentTurnId: string | undefined;
  private stepNumber = 0;
  private isInStep = false;
  private hasPrompt = false;

  constructor(out: ChunkSink, options: UiChunksOptions = {}) {
    const { kindOf = () => 'tool', errorText = genericErrorText } = options;
    const say = (chunk: UiChunk): void => this.emit(chunk);
    this.sink = out;
    this.errorText = errorText;
    this.text = new TextPartWriter('text', say);
    this.reasoning = new TextPartWriter('reasoning', say);
    this.calls = new ToolCalls(say, kindOf, errorText);
  }

  /** The turn that is told, once anything of it was heard; the message has its id. */
  get turnId(): string | undefined {
    return this.currentTurnId;
  }

  /** The id of the tool part that an envelope became. */
  partIdOf(envelopeId: string): string | undefined {
    return this.calls.partIdOf(envelopeId);
  }

  addEnvelope(envelope: EventEnvelope): void {
    if (!this.acceptsTurnOf(envelope.generationId)) return;
    // A call of a tool comes again when its approval stands otherwise.
    if (envelope.type !== 'tool-call') {
      if (this.seenEnvelopeIds.has(envelope.id)) return;
      this.seenEnvelopeIds.add(envelope.id);
    }
    if (envelope.generationId === this.currentTurnId) this.addOwnEnvelope(envelope);
    else this.addDescendantEnvelope(envelope);
  }

  addDelta(delta: LiveDelta): void {
    const { kind, generationId, text } = delta;
    if (!this.acceptsTurnOf(generationId)) return;
    if (kind === 'tool-output') this.calls.addOutputDelta(delta);
    else if (generationId === this.currentTurnId) this.addOwnDelta(delta);
    else if (kind !== 'tool-input') {
      this.emit({ type: 'data-rondo-agent-delta', data: { generationId, kind, text }, transient: true });
    }
  }

  /** How the turn ended, or that it paused. */
  end(result: TurnResult): void {
    this.acceptsTurnOf(result.turnId);
    const { status, output, error, pending = [] } = result;
    if (status === 'ok' && (this.calls.isStepDone || !this.text.hasText))
      this.emitAnswer((output as { text?: unknown } | null)?.text);
    if (status === 'ok' || status === 'error') this.calls.settleOpenCalls(status === 'ok');
    for (const item of pending) this.emitPendingItem(item);
    this.closeStep();
    const asks = pending.some(({ kind }) => kind === 'approval');
    if (status === 'error') this.emitError(error ?? { code: '', message: '' });
    else this.emit({ type: 'finish', finishReason: status === 'ok' ? 'stop' : asks ? 'tool-calls' : 'other' });
  }

  /** The machinery failed: the turn stands where it stood. */
  fail(): void {
    this.closeStep();
    this.emit({ type: 'error', errorText: this.errorText({ code: 'STORE_FAILED', message: '' }) });
  }

  private addOwnDelta(delta: LiveDelta): void {
    const { kind, text } = delta;
    this.ensureStep();
    if (kind !== 'text') this.text.close();
    if (kind !== 'reasoning') this.reasoning.close();
    if (kind === 'text') this.text.appendDelta(text);
    else if (kind === 'reasoning') this.reasoning.appendDelta(text);
    else this.calls.addInputDelta(delta);
  }

  private addOwnEnvelope(envelope: EventEnvelope): void {
    const { id, type, content } = envelope;
    if (type === 'user-message') this.addUserMessage(id, content.text);
    else if (type === 'assistant-message' || type === 'reasoning') {
      this.ensureStep();
      (type === 'reasoning' ? this.reasoning : this.text).complete(content.text);
    } else if (type === 'tool-call') {
      if (!this.calls.hasEnvelope(id)) this.ensureStep();
      this.calls.addCall(envelope);
    } else if (type === 'trigger') {
      const { triggerName: name, ...more } = content;
      this.hasPrompt = true;
      this.emit({ type: 'data-rondo-trigger', id, data: { name, ...more } });
    } else if (type === 'generation-failure') {
      const { error } = content;
      const code = error.slice(0, Math.max(0, error.indexOf(':')));
      const errorText = this.errorText({ code, message: error.slice(code.length + 2) });
      this.emit({ type: 'data-rondo-failure', id, data: { code, errorText } });
    } else this.addCommonEnvelope(envelope);
  }

  private addDescendantEnvelope(envelope: EventEnvelope): void {
    const { type, generationId, content } = envelope;
    if (type === 'loop-triggered') this.updateAgent(generationId, {});
    else if (type === 'assistant-message') this.appendAgentText(generationId, content.text);
    else if (type === 'tool-call') this.calls.addDescendantCall(envelope);
    else if (type === 'generation-failure') this.updateAgent(generationId, { status: 'error' });
    else this.addCommonEnvelope(envelope);
  }

  /** What means the same wherever it happens. */
  private addCommonEnvelope(envelope: EventEnvelope): void {
    const { type, generationId, content } = envelope;
    if (type === 'tool-result' || type === 'tool-error') {
      if (type === 'tool-result') this.calls.addResult(generationId, content);
      else this.calls.addError(generationId, content);
      this.emitAnswer(this.calls.handoffText());
    } else if (type === 'child-generation') this.addChildGeneration(content);
    else if (type === 'other-agent-message') this.addOtherAgentMessage(envelope);
  }

  /** The prompt is the client's own message; what the user says later stands where the agent heard it. */
  private addUserMessage(id: string, text: string): void {
    if (this.hasPrompt) this.emit({ type: 'data-rondo-heard', id, data: { text } });
    this.hasPrompt = true;
  }

  private addOtherAgentMessage({ id, generationId, content }: EventEnvelopeOf<'other-agent-message'>): void {
    const named = content.agent === undefined ? {} : { agent: content.agent };
    this.appendAgentText(generationId === this.currentTurnId ? id : generationId, content.text, named);
  }

  private appendAgentText(generationId: string, text: string, more: Pick<AgentData, 'agent'> = {}): void {
    const before = this.agents.get(generationId)?.text;
    this.updateAgent(generationId, { ...more, text: before === undefined ? text : `${before}\n\n${text}` });
  }

  private addChildGeneration({ childGenerationId, item, status, summary }: ChildGenerationContent): void {
    this.updateAgent(childGenerationId, { agent: item, status, ...(summary !== undefined && { summary }) });
  }

  private updateAgent(generationId: string, more: Partial<AgentData>): void {
    const data = { generationId, status: 'running' as const, ...this.agents.get(generationId), ...more };
    this.agents.set(generationId, data);
    this.emit({ type: 'data-rondo-agent', id: generationId, data });
  }

  /** An answer that the agent's own model has not said. */
  private emitAnswer(text: unknown): void {
    if (typeof text !== 'string' || text === '') return;
    this.ensureStep();
    this.text.complete(text);
  }

  private emitPendingItem({ kind, name }: PendingItem): void {
    if (kind === 'approval') return;
    this.emit({ type: 'data-rondo-waiting', data: { kind, ...(name !== undefined && { name }) }, transient: true });
  }

  private emitError(error: { readonly code: string; readonly message: string }): void {
    if (error.code === 'CANCELLED') this.emit({ type: 'abort' });
    else this.emit({ type: 'error', errorText: this.errorText(error) });
  }

  /** Whether it is of the turn that is told; the first that is heard says which that is. */
  private acceptsTurnOf(generationId: string): boolean {
    const turn = turnIdOf(generationId);
    if (turn !== '' && this.currentTurnId === undefined) {
      this.currentTurnId = turn;
      this.emit({ type: 'start', messageId: turn });
    }
    return this.currentTurnId === turn;
  }

  /** The agent says or does something: a new step, if all that it called has ended. */
  private ensureStep(): void {
    if (this.isInStep && !this.calls.isStepDone) return;
    this.closeStep();
    this.calls.nextStep();
    this.stepNumber += 1;
    this.isInStep = true;
    this.emit({ type: 'start-step' });
  }

  private closeStep(): void {
    this.text.nextStep();
    this.reasoning.nextStep();
    if (this.isInStep) this.emit({ type: 'finish-step' });
    this.isInStep = false;
  }

  private emit(chunk: UiChunk): void {
    const { type } = chunk;
    const whole = type === 'start' || type === 'finish' || type === 'error' || type === 'abort';
    this.sink(chunk, whole ? 0 : this.stepNumber);
  }
}
