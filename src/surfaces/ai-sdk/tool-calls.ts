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
export type ErrorText = (error: { readonly code: string; readonly message: string }) => string;

/** What a name is that the model calls, `handoff` for an agent that takes over; undefined if there is no such tool. */
export type KindOf = (toolName: string) => LoopKind | 'handoff' | undefined;

interface Call {
  /** Of its part in the message. */
  readonly id: string;
  readonly content: ToolCallContent;
  /** `held`: a tool that is not there; how that went is told when it is known. */
  readonly as: 'tool' | 'leaf' | 'call' | 'held';
  settled: boolean;
  approvalId: string | undefined;
  /** What it gave back. */
  output: Json | undefined;
}

const OPEN = { settled: false, approvalId: undefined, output: undefined };
const STOPPED = 'It was stopped before it ended.';

export class ToolCalls {
  private readonly say: (chunk: UiChunk) => void;
  private readonly kindOf: KindOf;
  private readonly errorText: ErrorText;
  private readonly byEnvelope = new Map<string, Call>();
  private readonly byCall = new Map<string, Call>();
  private readonly used = new Set<string>();
  /** Calls of this step whose arguments are being streamed, with the ids of their parts. */
  private readonly streaming = new Map<string, string>();
  /** The agent's own calls in this step. */
  private step: Call[] = [];

  constructor(say: (chunk: UiChunk) => void, kindOf: KindOf, errorText: ErrorText) {
    this.say = say;
    this.kindOf = kindOf;
    this.errorText = errorText;
  }

  /** Whether the step has calls, and all of them have ended: what the agent does next is another step. */
  get done(): boolean {
    return this.step.length > 0 && this.step.every(({ settled }) => settled);
  }

  nextStep(): void {
    this.step = [];
    this.streaming.clear();
  }

  /** What the agent says that this step handed over to, once all calls have ended: it is the answer. */
  handedOver(): string {
    if (!this.done) return '';
    const taken = this.step.find(
      (call) => this.kindOf(call.content.toolName) === 'handoff' && call.output !== undefined,
    );
    const { text } = (taken?.output ?? {}) as { readonly text?: Json };
    return typeof text === 'string' ? text : '';
  }

  /** Whether this envelope was told of before: then it only says how the approval stands now. */
  knows(envelopeId: string): boolean {
    return this.byEnvelope.has(envelopeId);
  }

  /** The id of the part that an envelope became. */
  partOf(envelopeId: string): string | undefined {
    return this.byEnvelope.get(envelopeId)?.id;
  }

  /** Arguments that come live. */
  input({ toolCallId = '', toolName = '', text }: LiveDelta): void {
    if (toolCallId === '' || this.kindOf(toolName) !== 'tool') return;
    const known = this.streaming.get(toolCallId);
    const id = known ?? this.fresh(toolCallId);
    if (known === undefined) {
      this.streaming.set(toolCallId, id);
      this.say({ type: 'tool-input-start', toolCallId: id, toolName });
    }
    if (text !== '') this.say({ type: 'tool-input-delta', toolCallId: id, inputTextDelta: text });
  }

  /** What a tool puts out, live. */
  output({ toolCallId = '', generationId, text }: LiveDelta): void {
    const call = this.byCall.get(`${generationId} ${toolCallId}`);
    if (call === undefined || call.settled || text === '') return;
    this.say({ type: 'data-rondo-tool-delta', data: { toolCallId: call.id, text }, transient: true });
  }

  /** A call of the agent itself. */
  asked({ id, generationId, content }: EventEnvelopeOf<'tool-call'>): void {
    const known = this.byEnvelope.get(id);
    if (known !== undefined) {
      this.stands(known, content);
      return;
    }
    const { toolCallId, toolName, args } = content;
    const as = this.shownAs(content);
    const part = this.streaming.get(toolCallId) ?? this.fresh(toolCallId);
    const call = this.open({ id: part, content, as, ...OPEN }, id, generationId);
    if (as !== 'leaf') this.step.push(call);
    if (as === 'call') this.tellCall(call, { status: 'running' });
    else if (as !== 'held') {
      this.say({ type: 'tool-input-available', toolCallId: part, toolName, input: args, ...dynamic(call) });
    }
    this.stands(call, content);
  }

  /** A call of somebody below the agent: it is shown if it asks. */
  askedBelow({ id, generationId, content }: EventEnvelopeOf<'tool-call'>): void {
    const known = this.byEnvelope.get(id);
    if (known !== undefined) {
      this.stands(known, content);
      return;
    }
    if (content.approvalStatus === undefined) return;
    const { toolCallId, toolName, args } = content;
    const part = this.fresh(`${generationId}:${toolCallId}`);
    const call = this.open({ id: part, content, as: 'leaf', ...OPEN }, id, generationId);
    this.say({ type: 'tool-input-available', toolCallId: part, toolName, input: args, dynamic: true });
    this.stands(call, content);
  }

  returned(generationId: string, { toolCallId, result, output }: ToolResultContent): void {
    const call = this.settle(generationId, toolCallId);
    if (call !== undefined) this.tellResult(call, result, output);
  }

  failed(generationId: string, { toolCallId, error, isUserRejection = false }: ToolErrorContent): void {
    const call = this.settle(generationId, toolCallId);
    if (call === undefined) return;
    const code = call.as === 'held' ? 'TOOL_NOT_FOUND' : 'TOOL_FAILED';
    this.tellFailure(call, this.errorText({ code, message: error }), isUserRejection);
  }

  /** The turn ended: whatever is still open will not end any more. What was merely asked for has no result of its own. */
  stop(well: boolean): void {
    for (const call of this.byEnvelope.values()) {
      if (call.settled) continue;
      call.settled = true;
      if (well) this.tellResult(call, null);
      else this.tellFailure(call, STOPPED, false);
    }
  }

  /** An action that asks from further down is no tool of the agent's, and shown as itself. */
  private shownAs({ toolName, approvalStatus }: ToolCallContent): Call['as'] {
    const kind = this.kindOf(toolName);
    if (kind === undefined) return approvalStatus === undefined ? 'held' : 'leaf';
    return kind === 'composite' || kind === 'handoff' ? 'call' : 'tool';
  }

  /** How the approval of a call stands. */
  private stands(call: Call, { approvalId, approvalStatus, approvalDescription }: ToolCallContent): void {
    if (approvalStatus !== 'pending_approval' || approvalId === undefined || approvalId === call.approvalId) return;
    call.approvalId = approvalId;
    const described = approvalDescription === undefined ? undefined : { description: approvalDescription };
    const shown = described === undefined ? {} : { approvalDescriptor: described };
    this.say({ type: 'tool-approval-request', approvalId, toolCallId: call.id, ...shown });
  }

  private tellResult(call: Call, output: Json, said = ''): void {
    const { id: toolCallId, as, content } = call;
    call.output = output;
    if (as === 'call') {
      this.tellCall(call, { status: 'ok', output });
      return;
    }
    const { toolName, args: input } = content;
    if (as === 'held') this.say({ type: 'tool-input-available', toolCallId, toolName, input, dynamic: true });
    const streamed = said === '' ? {} : { toolMetadata: { said } };
    this.say({ type: 'tool-output-available', toolCallId, output, ...dynamic(call), ...streamed });
  }

  private tellFailure(call: Call, errorText: string, denied: boolean): void {
    const { id: toolCallId, as, content } = call;
    if (as === 'call') {
      this.tellCall(call, denied ? { status: 'denied' } : { status: 'error', errorText });
      return;
    }
    const { toolName, args: input } = content;
    if (as === 'held') this.say({ type: 'tool-input-error', toolCallId, toolName, input, errorText, dynamic: true });
    if (denied) this.say({ type: 'tool-output-denied', toolCallId });
    else this.say({ type: 'tool-output-error', toolCallId, errorText, ...dynamic(call) });
  }

  private tellCall({ id, content }: Call, stands: Pick<CallData, 'status' | 'output' | 'errorText'>): void {
    const { toolName: name, args: input } = content;
    this.say({ type: 'data-rondo-call', id, data: { toolCallId: id, name, input, ...stands } });
  }

  private open(call: Call, envelopeId: string, generationId: string): Call {
    this.byEnvelope.set(envelopeId, call);
    this.byCall.set(`${generationId} ${call.content.toolCallId}`, call);
    return call;
  }

  private settle(generationId: string, toolCallId: string): Call | undefined {
    const call = this.byCall.get(`${generationId} ${toolCallId}`);
    if (call === undefined || call.settled) return undefined;
    call.settled = true;
    return call;
  }

  /** Models use ids again; parts of one message do not. */
  private fresh(wanted: string): string {
    let id = wanted;
    for (let again = 2; this.used.has(id); again++) id = `${wanted}#${again}`;
    this.used.add(id);
    return id;
  }
}

function dynamic({ as }: Call): { readonly dynamic?: true } {
  return as === 'leaf' || as === 'held' ? { dynamic: true } : {};
}
