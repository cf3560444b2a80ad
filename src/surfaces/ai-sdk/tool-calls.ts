/**
 * The calls of tools in one message: which part each call is, and how it stands. A call of the agent itself is a tool
 * part. A call of a loop that is more than a tool is a `data-rondo-call`: it can wait for leaf tools that ask for approval,
 * and the SDK sends answers only when no other tool part of the step is open. Of what sub-agents call, only what asks is
 * shown, as a dynamic tool part.
 */
import type { EventEnvelopeOf, ToolCallContent, ToolErrorContent, ToolResultContent } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { LoopKind } from '../../protocol/loop.js';
import type { CallData, UiChunk } from './chunk.js';

/** What may be shown of an error. */
export type ErrorFormatter = (error: { readonly code: string; readonly message: string }) => string;

/** What a name is that the model calls, `handoff` for an agent that takes over; undefined if there is no such tool. */
export type ToolKindLookup = (toolName: string) => LoopKind | 'handoff' | undefined;

interface ToolCallPart {
  /** Of its part in the message. */
  readonly id: string;
  readonly content: ToolCallContent;
  /** `held`: a tool that is not there; how that went is told when it is known. */
  readonly partKind: 'tool' | 'leaf' | 'call' | 'deferred';
  isSettled: boolean;
  approvalId: string | undefined;
  /** What it gave back. */
  output: Json | undefined;
}

const INITIAL_CALL_STATE = { isSettled: false, approvalId: undefined, output: undefined };
const STOPPED_TEXT = 'It was stopped before it ended.';

export class ToolCalls {
  private readonly emit: (chunk: UiChunk) => void;
  private readonly kindOf: ToolKindLookup;
  private readonly errorText: ErrorFormatter;
  private readonly byEnvelope = new Map<string, ToolCallPart>();
  private readonly byCall = new Map<string, ToolCallPart>();
  private readonly usedPartIds = new Set<string>();
  /** Calls of this step whose arguments are being streamed, with the ids of their parts. */
  private readonly streamingPartIds = new Map<string, string>();
  /** The agent's own calls in this step. */
  private stepCalls: ToolCallPart[] = [];

  constructor(say: (chunk: UiChunk) => void, kindOf: ToolKindLookup, errorText: ErrorFormatter) {
    this.emit = say;
    this.kindOf = kindOf;
    this.errorText = errorText;
  }

  /** Whether the step has calls, and all of them have ended: what the agent does next is another step. */
  get isStepDone(): boolean {
    return this.stepCalls.length > 0 && this.stepCalls.every(({ isSettled }) => isSettled);
  }

  nextStep(): void {
    this.stepCalls = [];
    this.streamingPartIds.clear();
  }

  /** What the agent says that this step handed over to, once all calls have ended: it is the answer. */
  handoffText(): string {
    if (!this.isStepDone) return '';
    const taken = this.stepCalls.find(
      (call) => this.kindOf(call.content.toolName) === 'handoff' && call.output !== undefined,
    );
    const { text } = (taken?.output ?? {}) as { readonly text?: Json };
    return typeof text === 'string' ? text : '';
  }

  /** Whether this envelope was told of before: then it only says how the approval stands now. */
  hasEnvelope(envelopeId: string): boolean {
    return this.byEnvelope.has(envelopeId);
  }

  /** The id of the part that an envelope became. */
  partIdOf(envelopeId: string): string | undefined {
    return this.byEnvelope.get(envelopeId)?.id;
  }

  /** Arguments that come live. */
  addInputDelta({ toolCallId = '', toolName = '', text }: LiveDelta): void {
    if (toolCallId === '' || this.kindOf(toolName) !== 'tool') return;
    const known = this.streamingPartIds.get(toolCallId);
    const id = known ?? this.uniquePartId(toolCallId);
    if (known === undefined) {
      this.streamingPartIds.set(toolCallId, id);
      this.emit({ type: 'tool-input-start', toolCallId: id, toolName });
    }
    if (text !== '') this.emit({ type: 'tool-input-delta', toolCallId: id, inputTextDelta: text });
  }

  /** What a tool puts out, live. */
  addOutputDelta({ toolCallId = '', generationId, text }: LiveDelta): void {
    const call = this.byCall.get(`${generationId} ${toolCallId}`);
    if (call === undefined || call.isSettled || text === '') return;
    this.emit({ type: 'data-rondo-tool-delta', data: { toolCallId: call.id, text }, transient: true });
  }

  /** A call of the agent itself. */
  addCall({ id, generationId, content }: EventEnvelopeOf<'tool-call'>): void {
    const known = this.byEnvelope.get(id);
    if (known !== undefined) {
      this.emitApprovalRequest(known, content);
      return;
    }
    const { toolCallId, toolName, args } = content;
    const as = this.partKindOf(content);
    const part = this.streamingPartIds.get(toolCallId) ?? this.uniquePartId(toolCallId);
    const call = this.register({ id: part, content, partKind: as, ...INITIAL_CALL_STATE }, id, generationId);
    if (as !== 'leaf') this.stepCalls.push(call);
    if (as === 'call') this.emitCallData(call, { status: 'running' });
    else if (as !== 'deferred') {
      this.emit({ type: 'tool-input-available', toolCallId: part, toolName, input: args, ...dynamicFlagOf(call) });
    }
    this.emitApprovalRequest(call, content);
  }

  /** A call of somebody below the agent: it is shown if it asks. */
  addDescendantCall({ id, generationId, content }: EventEnvelopeOf<'tool-call'>): void {
    const known = this.byEnvelope.get(id);
    if (known !== undefined) {
      this.emitApprovalRequest(known, content);
      return;
    }
    if (content.approvalStatus === undefined) return;
    const { toolCallId, toolName, args } = content;
    const part = this.uniquePartId(`${generationId}:${toolCallId}`);
    const call = this.register({ id: part, content, partKind: 'leaf', ...INITIAL_CALL_STATE }, id, generationId);
    this.emit({ type: 'tool-input-available', toolCallId: part, toolName, input: args, dynamic: true });
    this.emitApprovalRequest(call, content);
  }

  addResult(generationId: string, { toolCallId, result, output }: ToolResultContent): void {
    const call = this.settle(generationId, toolCallId);
    if (call !== undefined) this.emitResult(call, result, output);
  }

  addError(generationId: string, { toolCallId, error, isUserRejection = false }: ToolErrorContent): void {
    const call = this.settle(generationId, toolCallId);
    if (call === undefined) return;
    const code = call.partKind === 'deferred' ? 'TOOL_NOT_FOUND' : 'TOOL_FAILED';
    this.emitFailure(call, this.errorText({ code, message: error }), isUserRejection);
  }

  /** The turn ended: whatever is still open will not end any more. What was merely asked for has no result of its own. */
  settleOpenCalls(well: boolean): void {
    for (const call of this.byEnvelope.values()) {
      if (call.isSettled) continue;
      call.isSettled = true;
      if (well) this.emitResult(call, null);
      else this.emitFailure(call, STOPPED_TEXT, false);
    }
  }

  /** An action that asks from further down is no tool of the agent's, and shown as itself. */
  private partKindOf({ toolName, approvalStatus }: ToolCallContent): ToolCallPart['partKind'] {
    const kind = this.kindOf(toolName);
    if (kind === undefined) return approvalStatus === undefined ? 'deferred' : 'leaf';
    return kind === 'composite' || kind === 'handoff' ? 'call' : 'tool';
  }

  /** How the approval of a call stands. */
  private emitApprovalRequest(
    call: ToolCallPart,
    { approvalId, approvalStatus, approvalDescription }: ToolCallContent,
  ): void {
    if (approvalStatus !== 'pending_approval' || approvalId === undefined || approvalId === call.approvalId) return;
    call.approvalId = approvalId;
    const described = approvalDescription === undefined ? undefined : { description: approvalDescription };
    const shown = described === undefined ? {} : { approvalDescriptor: described };
    this.emit({ type: 'tool-approval-request', approvalId, toolCallId: call.id, ...shown });
  }

  private emitResult(call: ToolCallPart, output: Json, said = ''): void {
    const { id: toolCallId, partKind, content } = call;
    call.output = output;
    if (partKind === 'call') {
      this.emitCallData(call, { status: 'ok', output });
      return;
    }
    const { toolName, args: input } = content;
    if (partKind === 'deferred')
      this.emit({ type: 'tool-input-available', toolCallId, toolName, input, dynamic: true });
    const streamed = said === '' ? {} : { toolMetadata: { said } };
    this.emit({ type: 'tool-output-available', toolCallId, output, ...dynamicFlagOf(call), ...streamed });
  }

  private emitFailure(call: ToolCallPart, errorText: string, denied: boolean): void {
    const { id: toolCallId, partKind, content } = call;
    if (partKind === 'call') {
      this.emitCallData(call, denied ? { status: 'denied' } : { status: 'error', errorText });
      return;
    }
    const { toolName, args: input } = content;
    if (partKind === 'deferred')
      this.emit({ type: 'tool-input-error', toolCallId, toolName, input, errorText, dynamic: true });
    if (denied) this.emit({ type: 'tool-output-denied', toolCallId });
    else this.emit({ type: 'tool-output-error', toolCallId, errorText, ...dynamicFlagOf(call) });
  }

  private emitCallData({ id, content }: ToolCallPart, stands: Pick<CallData, 'status' | 'output' | 'errorText'>): void {
    const { toolName: name, args: input } = content;
    this.emit({ type: 'data-rondo-call', id, data: { toolCallId: id, name, input, ...stands } });
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

  /** Models use ids again; parts of one message do not. */
  private uniquePartId(wanted: string): string {
    let id = wanted;
    for (let again = 2; this.usedPartIds.has(id); again++) id = `${wanted}#${again}`;
    this.usedPartIds.add(id);
    return id;
  }
}

function dynamicFlagOf({ partKind }: ToolCallPart): { readonly dynamic?: true } {
  return partKind === 'leaf' || partKind === 'deferred' ? { dynamic: true } : {};
}
