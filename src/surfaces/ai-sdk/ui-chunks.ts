/**
 * Converts one turn to the chunks of one UI message. The input is the turn's envelopes, its live deltas and its result.
 * The chunks make the same message whether the turn is streamed live or converted later from the journal. An envelope
 * (an event with an id) may be added repeatedly; it is converted once, apart from changes of its approval.
 */
import type { ChildGenerationContent, EventEnvelope, EventEnvelopeOf } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { PendingItem, TurnResult } from '../../protocol/trace.js';
import type { AgentData, UiChunk } from './chunk.js';
import { genericErrorText, isFaultCode } from './operator-problem.js';
import { TextPartWriter } from './text-part-writer.js';
import { type ErrorFormatter, ToolCalls, type ToolKindLookup } from './tool-calls.js';

/** Options of `UiChunks` and `uiMessages`. */
export interface UiChunksOptions {
  /**
   * Returns the kind of the loop behind a tool name; see `toolKinds`.
   * @default every name is a tool
   */
  readonly kindOf?: ToolKindLookup;
  /**
   * Returns the text that users see for an error. Error messages may contain confidential data.
   * @default the general meaning of the error code, or that the chat cannot continue at the moment
   */
  readonly errorText?: ErrorFormatter;
}

/** Receives each chunk with the number of its step. Chunks of the message as a whole have the number 0. */
export type ChunkSink = (chunk: UiChunk, step: number) => void;

/** Returns the id of the turn that a generation (one call of an agent) belongs to. */
export function turnIdOf(generationId: string): string {
  return generationId.split('/', 1)[0] ?? '';
}

/**
 * Converts the envelopes, deltas and result of one turn to chunks.
 *
 * @example
 * const chunks = new UiChunks((chunk) => send(chunk));
 * for (const envelope of await host.archive.events(sessionId)) chunks.addEnvelope(envelope);
 * chunks.end(result);
 */
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

  constructor(sink: ChunkSink, options: UiChunksOptions = {}) {
    const { kindOf = () => 'tool', errorText = genericErrorText } = options;
    const emit = (chunk: UiChunk): void => this.emit(chunk);
    this.sink = sink;
    this.errorText = errorText;
    this.text = new TextPartWriter('text', emit);
    this.reasoning = new TextPartWriter('reasoning', emit);
    this.calls = new ToolCalls(emit, kindOf, errorText);
  }

  /** The id of the turn, which is also the id of the message; undefined until something was added. */
  get turnId(): string | undefined {
    return this.currentTurnId;
  }

  /** Returns the id of the tool part that an envelope became; undefined if it became none. */
  partIdOf(envelopeId: string): string | undefined {
    return this.calls.partIdOf(envelopeId);
  }

  /** Adds an envelope. Envelopes of other turns are ignored; a repeated tool call only updates its approval. */
  addEnvelope(envelope: EventEnvelope): void {
    if (!this.acceptsTurnOf(envelope.generationId)) return;
    // The envelope of a tool call is repeated when the state of its approval changes.
    if (envelope.type !== 'tool-call') {
      if (this.seenEnvelopeIds.has(envelope.id)) return;
      this.seenEnvelopeIds.add(envelope.id);
    }
    if (envelope.generationId === this.currentTurnId) this.addOwnEnvelope(envelope);
    else this.addDescendantEnvelope(envelope);
  }

  /** Adds a live delta. Deltas of other turns are ignored. */
  addDelta(delta: LiveDelta): void {
    const { kind, generationId, text } = delta;
    if (!this.acceptsTurnOf(generationId)) return;
    if (kind === 'tool-output') this.calls.addOutputDelta(delta);
    else if (generationId === this.currentTurnId) this.addOwnDelta(delta);
    else if (kind !== 'tool-input') {
      this.emit({ type: 'data-rondo-agent-delta', data: { generationId, kind, text }, transient: true });
    }
  }

  /** Adds the result of a turn that ended or paused, and finishes the message. */
  end(result: TurnResult): void {
    this.acceptsTurnOf(result.turnId);
    const { status } = result;
    const pending = result.status === 'paused' ? result.pending : [];
    if (result.status === 'ok' && (this.calls.isStepDone || !this.text.hasText))
      this.emitAnswer((result.output as { text?: unknown } | null)?.text);
    // A turn that cannot continue is still open, and so are its calls.
    const hasFailed = result.status === 'error' && !isFaultCode(result.error.code);
    if (status === 'ok' || status === 'cancelled' || hasFailed) this.calls.settleOpenCalls(status === 'ok');
    for (const item of pending) this.emitPendingItem(item);
    this.closeStep();
    const needsApproval = pending.some(({ kind }) => kind === 'approval');
    if (result.status === 'error') this.emit({ type: 'error', errorText: this.errorText(result.error) });
    else if (result.status === 'cancelled') this.emit({ type: 'abort' });
    else this.emit({ type: 'finish', finishReason: status === 'ok' ? 'stop' : needsApproval ? 'tool-calls' : 'other' });
  }

  /** Finishes the message with an error that leaves the state of the turn as it is. */
  fail(error: Parameters<ErrorFormatter>[0] = { code: 'STORE_FAILED', message: '' }): void {
    this.closeStep();
    this.emit({ type: 'error', errorText: this.errorText(error) });
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
      const { triggerName: name, ...details } = content;
      this.hasPrompt = true;
      this.emit({ type: 'data-rondo-trigger', id, data: { name, ...details } });
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

  /** Adds an envelope that means the same for the agent and for its descendants. */
  private addCommonEnvelope(envelope: EventEnvelope): void {
    const { type, generationId, content } = envelope;
    if (type === 'tool-result' || type === 'tool-error') {
      if (type === 'tool-result') this.calls.addResult(generationId, content);
      else this.calls.addError(generationId, content);
      this.emitAnswer(this.calls.handoffText());
    } else if (type === 'child-generation') this.addChildGeneration(content);
    else if (type === 'other-agent-message') this.addOtherAgentMessage(envelope);
  }

  /**
   * Adds a user message. The first one is the prompt, which the client has; it is not emitted. Later ones appear where
   * the agent received them.
   */
  private addUserMessage(id: string, text: string): void {
    if (this.hasPrompt) this.emit({ type: 'data-rondo-user-message', id, data: { text } });
    this.hasPrompt = true;
  }

  private addOtherAgentMessage({ id, generationId, content }: EventEnvelopeOf<'other-agent-message'>): void {
    const author = content.agent === undefined ? {} : { agent: content.agent };
    this.appendAgentText(generationId === this.currentTurnId ? id : generationId, content.text, author);
  }

  private appendAgentText(generationId: string, text: string, author: Pick<AgentData, 'agent'> = {}): void {
    const earlierText = this.agents.get(generationId)?.text;
    const fullText = earlierText === undefined ? text : `${earlierText}\n\n${text}`;
    this.updateAgent(generationId, { ...author, text: fullText });
  }

  private addChildGeneration({ childGenerationId, item, status, summary }: ChildGenerationContent): void {
    this.updateAgent(childGenerationId, { agent: item, status, ...(summary !== undefined && { summary }) });
  }

  private updateAgent(generationId: string, changes: Partial<AgentData>): void {
    const data = { generationId, status: 'running' as const, ...this.agents.get(generationId), ...changes };
    this.agents.set(generationId, data);
    this.emit({ type: 'data-rondo-agent', id: generationId, data });
  }

  /** Emits an answer that did not come from the agent's own model. */
  private emitAnswer(text: unknown): void {
    if (typeof text !== 'string' || text === '') return;
    this.ensureStep();
    this.text.complete(text);
  }

  private emitPendingItem({ kind, name }: PendingItem): void {
    if (kind === 'approval') return;
    this.emit({ type: 'data-rondo-waiting', data: { kind, ...(name !== undefined && { name }) }, transient: true });
  }

  /** Returns true if a generation belongs to this turn. The first generation determines the turn. */
  private acceptsTurnOf(generationId: string): boolean {
    const turn = turnIdOf(generationId);
    if (turn !== '' && this.currentTurnId === undefined) {
      this.currentTurnId = turn;
      this.emit({ type: 'start', messageId: turn });
    }
    return this.currentTurnId === turn;
  }

  /** Starts a step if none is open, or if all calls of the open one have ended. */
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
    const isMessageChunk = type === 'start' || type === 'finish' || type === 'error' || type === 'abort';
    this.sink(chunk, isMessageChunk ? 0 : this.stepNumber);
  }
}
