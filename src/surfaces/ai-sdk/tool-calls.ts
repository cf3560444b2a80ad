/**
 * Tracks the tool calls of one message: the part that each call becomes, and its state. A tool call of the agent itself
 * is a tool part. A call of a composite or a handoff is a `data-rondo-call` instead: it may contain tool calls that
 * need an approval, and the SDK sends approval answers only when no other tool part of the step is open. Tool calls of
 * sub-agents are shown, as dynamic tool parts, only if they need an approval.
 */
import type { EventEnvelopeOf, ToolCallContent, ToolErrorContent, ToolResultContent } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { LoopKind } from '../../protocol/loop.js';
import type { CallData, UiChunk } from './chunk.js';

/** Returns the text that users see for an error. */
export type ErrorFormatter = (error: { readonly code: string; readonly message: string }) => string;

/**
 * Returns the kind of the loop behind a tool name, `handoff` for an agent that takes over; undefined for an unknown
 * name.
 */
export type ToolKindLookup = (toolName: string) => LoopKind | 'handoff' | undefined;

interface ToolCallPart {
  /** The id of the part in the message. */
  readonly id: string;
  readonly content: ToolCallContent;
  /**
   * `tool`: a call of a tool or a prompt. `call`: a call of a composite or a handoff. `leaf`: a call below the agent.
   * `deferred`: a call of an unknown tool, emitted together with its result.
   */
  readonly partKind: 'tool' | 'leaf' | 'call' | 'deferred';
  isSettled: boolean;
  approvalId: string | undefined;
  /** The result of the call. */
  output: Json | undefined;
}

const INITIAL_CALL_STATE = { isSettled: false, approvalId: undefined, output: undefined };
const STOPPED_TEXT = 'The call was stopped before it ended.';

/** The tool calls of one message. */
export class ToolCalls {
  private readonly emit: (chunk: UiChunk) => void;
  private readonly kindOf: ToolKindLookup;
  private readonly errorText: ErrorFormatter;
  private readonly byEnvelope = new Map<string, ToolCallPart>();
  private readonly byCall = new Map<string, ToolCallPart>();
  private readonly usedPartIds = new Set<string>();
  /** Part ids of the calls in this step whose arguments are being streamed, by tool call id. */
  private readonly streamingPartIds = new Map<string, string>();
  /** The agent's own calls in this step. */
  private stepCalls: ToolCallPart[] = [];

  constructor(emit: (chunk: UiChunk) => void, kindOf: ToolKindLookup, errorText: ErrorFormatter) {
    this.emit = emit;
    this.kindOf = kindOf;
    this.errorText = errorText;
  }

  /** True if the step has calls and all of them have ended. The agent's next action starts a new step. */
  get isStepDone(): boolean {
    return this.stepCalls.length > 0 && this.stepCalls.every(({ isSettled }) => isSettled);
  }

  /** Starts a step without calls. */
  nextStep(): void {
    this.stepCalls = [];
    this.streamingPartIds.clear();
  }

  /**
   * Returns the text of the agent that took over in this step, which is the answer. Returns an empty string if there is
   * none or a call of the step has not ended.
   */
  handoffText(): string {
    if (!this.isStepDone) return '';
    const handoff = this.stepCalls.find(
      (call) => this.kindOf(call.content.toolName) === 'handoff' && call.output !== undefined,
    );
    const { text } = (handoff?.output ?? {}) as { readonly text?: Json };
    return typeof text === 'string' ? text : '';
  }

  /** True if this envelope was added before. A repeated envelope only updates its approval. */
  hasEnvelope(envelopeId: string): boolean {
    return this.byEnvelope.has(envelopeId);
  }

  /** Returns the id of the part that an envelope became; undefined if it became none. */
  partIdOf(envelopeId: string): string | undefined {
    return this.byEnvelope.get(envelopeId)?.id;
  }

  /** Adds a live delta of a call's arguments. Only arguments of tools are streamed. */
  addInputDelta({ toolCallId = '', toolName = '', text }: LiveDelta): void {
    if (toolCallId === '' || this.kindOf(toolName) !== 'tool') return;
    const existingId = this.streamingPartIds.get(toolCallId);
    const id = existingId ?? this.uniquePartId(toolCallId);
    if (existingId === undefined) {
      this.streamingPartIds.set(toolCallId, id);
      this.emit({ type: 'tool-input-start', toolCallId: id, toolName });
    }
    if (text !== '') this.emit({ type: 'tool-input-delta', toolCallId: id, inputTextDelta: text });
  }

  /** Adds a live delta of a tool's output. */
  addOutputDelta({ toolCallId = '', generationId, text }: LiveDelta): void {
    const call = this.byCall.get(`${generationId} ${toolCallId}`);
    if (call === undefined || call.isSettled || text === '') return;
    this.emit({ type: 'data-rondo-tool-delta', data: { toolCallId: call.id, text }, transient: true });
  }

  /** Adds a tool call of the agent itself. */
  addCall({ id, generationId, content }: EventEnvelopeOf<'tool-call'>): void {
    const existing = this.byEnvelope.get(id);
    if (existing !== undefined) {
      this.emitApprovalRequest(existing, content);
      return;
    }
    const { toolCallId, toolName, args } = content;
    const partKind = this.partKindOf(content);
    const partId = this.streamingPartIds.get(toolCallId) ?? this.uniquePartId(toolCallId);
    const call = this.register({ id: partId, content, partKind, ...INITIAL_CALL_STATE }, id, generationId);
    if (partKind !== 'leaf') this.stepCalls.push(call);
    if (partKind === 'call') this.emitCallData(call, { status: 'running' });
    else if (partKind !== 'deferred') {
      this.emit({ type: 'tool-input-available', toolCallId: partId, toolName, input: args, ...dynamicFlagOf(call) });
    }
    this.emitApprovalRequest(call, content);
  }

  /** Adds a tool call below the agent. It is emitted only if it needs an approval. */
  addDescendantCall({ id, generationId, content }: EventEnvelopeOf<'tool-call'>): void {
    const existing = this.byEnvelope.get(id);
    if (existing !== undefined) {
      this.emitApprovalRequest(existing, content);
      return;
    }
    if (content.approvalStatus === undefined) return;
    const { toolCallId, toolName, args } = content;
    const partId = this.uniquePartId(`${generationId}:${toolCallId}`);
    const call = this.register({ id: partId, content, partKind: 'leaf', ...INITIAL_CALL_STATE }, id, generationId);
    this.emit({ type: 'tool-input-available', toolCallId: partId, toolName, input: args, dynamic: true });
    this.emitApprovalRequest(call, content);
  }

  /** Settles a call with its result. A call that is unknown or settled is ignored. */
  addResult(generationId: string, { toolCallId, result, output }: ToolResultContent): void {
    const call = this.settle(generationId, toolCallId);
    if (call !== undefined) this.emitResult(call, result, output);
  }

  /** Settles a call with its error or its denial. A call that is unknown or settled is ignored. */
  addError(generationId: string, { toolCallId, error, isUserRejection = false }: ToolErrorContent): void {
    const call = this.settle(generationId, toolCallId);
    if (call === undefined) return;
    const code = call.partKind === 'deferred' ? 'TOOL_NOT_FOUND' : 'TOOL_FAILED';
    this.emitFailure(call, this.errorText({ code, message: error }), isUserRejection);
  }

  /**
   * Settles the open calls of an ended turn. After a successful turn, a call without a recorded result has the result
   * null.
   */
  settleOpenCalls(isSuccess: boolean): void {
    for (const call of this.byEnvelope.values()) {
      if (call.isSettled) continue;
      call.isSettled = true;
      if (isSuccess) this.emitResult(call, null);
      else this.emitFailure(call, STOPPED_TEXT, false);
    }
  }

  /** Returns the kind of part for a call. An unknown name with an approval is a call below the agent: a leaf. */
  private partKindOf({ toolName, approvalStatus }: ToolCallContent): ToolCallPart['partKind'] {
    const kind = this.kindOf(toolName);
    if (kind === undefined) return approvalStatus === undefined ? 'deferred' : 'leaf';
    return kind === 'composite' || kind === 'handoff' ? 'call' : 'tool';
  }

  /** Emits the approval request of a call, once. */
  private emitApprovalRequest(
    call: ToolCallPart,
    { approvalId, approvalStatus, approvalDescription }: ToolCallContent,
  ): void {
    if (approvalStatus !== 'pending_approval' || approvalId === undefined || approvalId === call.approvalId) return;
    call.approvalId = approvalId;
    const descriptor =
      approvalDescription === undefined ? {} : { approvalDescriptor: { description: approvalDescription } };
    this.emit({ type: 'tool-approval-request', approvalId, toolCallId: call.id, ...descriptor });
  }

  private emitResult(call: ToolCallPart, output: Json, streamedOutput = ''): void {
    const { id: toolCallId, partKind, content } = call;
    call.output = output;
    if (partKind === 'call') {
      this.emitCallData(call, { status: 'ok', output });
      return;
    }
    const { toolName, args: input } = content;
    if (partKind === 'deferred')
      this.emit({ type: 'tool-input-available', toolCallId, toolName, input, dynamic: true });
    const metadata = streamedOutput === '' ? {} : { toolMetadata: { streamedOutput } };
    this.emit({ type: 'tool-output-available', toolCallId, output, ...dynamicFlagOf(call), ...metadata });
  }

  private emitFailure(call: ToolCallPart, errorText: string, isDenied: boolean): void {
    const { id: toolCallId, partKind, content } = call;
    if (partKind === 'call') {
      this.emitCallData(call, isDenied ? { status: 'denied' } : { status: 'error', errorText });
      return;
    }
    const { toolName, args: input } = content;
    if (partKind === 'deferred')
      this.emit({ type: 'tool-input-error', toolCallId, toolName, input, errorText, dynamic: true });
    if (isDenied) this.emit({ type: 'tool-output-denied', toolCallId });
    else this.emit({ type: 'tool-output-error', toolCallId, errorText, ...dynamicFlagOf(call) });
  }

  private emitCallData({ id, content }: ToolCallPart, state: Pick<CallData, 'status' | 'output' | 'errorText'>): void {
    const { toolName: name, args: input } = content;
    this.emit({ type: 'data-rondo-call', id, data: { toolCallId: id, name, input, ...state } });
  }

  private register(call: ToolCallPart, envelopeId: string, generationId: string): ToolCallPart {
    this.byEnvelope.set(envelopeId, call);
    this.byCall.set(`${generationId} ${call.content.toolCallId}`, call);
    return call;
  }

  private settle(generationId: string, toolCallId: string): ToolCallPart | undefined {
    const call = this.byCall.get(`${generationId} ${toolCallId}`);
    if (call === undefined || call.isSettled) return undefined;
    call.isSettled = true;
    return call;
  }

  /** Returns an unused part id. Models reuse tool call ids; the part ids of a message must be unique. */
  private uniquePartId(baseId: string): string {
    let id = baseId;
    for (let suffix = 2; this.usedPartIds.has(id); suffix++) id = `${baseId}#${suffix}`;
    this.usedPartIds.add(id);
    return id;
  }
}

function dynamicFlagOf({ partKind }: ToolCallPart): { readonly dynamic?: true } {
  return partKind === 'leaf' || partKind === 'deferred' ? { dynamic: true } : {};
}
