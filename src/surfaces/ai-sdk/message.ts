/**
 * Converts the history of a session to messages of the AI SDK, for the initial load of a page. The envelopes produce
 * the same chunks as a live turn, so a loaded message equals the streamed one. A turn becomes a user message, if it has
 * a prompt, and an assistant message, if it has output.
 */
import type { EventEnvelope, ToolCallContent } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { DataChunk, UiChunk } from './chunk.js';
import { turnIdOf, UiChunks, type UiChunksOptions } from './ui-chunks.js';

interface RequestedApproval {
  readonly id: string;
  /** The question for the approver; see `approvalText`. */
  readonly descriptor?: { readonly description: string };
}

interface AnsweredApproval<A extends boolean> extends RequestedApproval {
  readonly approved: A;
}

/** The state of a tool call. */
type ToolPartState =
  | { readonly state: 'input-available' }
  | { readonly state: 'approval-requested'; readonly approval: RequestedApproval }
  | { readonly state: 'approval-responded'; readonly approval: AnsweredApproval<boolean> }
  | { readonly state: 'output-available'; readonly output: Json; readonly approval?: AnsweredApproval<true> }
  | { readonly state: 'output-error'; readonly errorText: string; readonly approval?: AnsweredApproval<true> }
  | { readonly state: 'output-denied'; readonly approval: AnsweredApproval<false> };

/** A tool call. Its type is `tool-NAME`, or `dynamic-tool` with the name in `toolName`. */
export type UiToolPart = (
  | { readonly type: `tool-${string}` }
  | { readonly type: 'dynamic-tool'; readonly toolName: string }
) & {
  readonly toolCallId: string;
  readonly input: Json;
  readonly toolMetadata?: { streamedOutput: string };
} & ToolPartState;

/** A part of a message. */
export type UiPart =
  | { readonly type: 'step-start' }
  | { readonly type: 'text' | 'reasoning'; readonly text: string; readonly state: 'done' }
  | UiToolPart
  | { readonly type: DataChunk['type']; readonly id: string; readonly data: DataChunk['data'] };

/** A message for `useChat`. */
export interface UiMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: UiPart[];
}

/**
 * Converts the envelopes (events with an id) of a session to messages for `useChat`.
 *
 * @example const messages = uiMessages(await rondo.events(sessionId), { kindOf: toolKinds(rondo, support) });
 */
export function uiMessages(envelopes: Iterable<EventEnvelope>, options: UiChunksOptions = {}): UiMessage[] {
  const turns = new Map<string, TurnMessages>();
  for (const envelope of envelopes) {
    const id = turnIdOf(envelope.generationId);
    if (id === '') continue;
    const turn = turns.get(id) ?? new TurnMessages(id, options);
    turns.set(id, turn);
    turn.addEnvelope(envelope);
  }
  return [...turns.values()].flatMap((turn) => turn.toMessages());
}

/** A tool part whose members are not yet consistent with its state. */
interface ToolPartDraft {
  readonly type: UiToolPart['type'];
  readonly toolName?: string;
  readonly toolCallId: string;
  readonly input: Json;
  readonly state: ToolPartState['state'];
  readonly output?: Json;
  readonly errorText?: string;
  readonly toolMetadata?: { streamedOutput: string };
  readonly approval?: RequestedApproval & { readonly approved?: boolean };
}

/** Builds the user message and the assistant message of one turn. */
class TurnMessages {
  private readonly id: string;
  private readonly chunks: UiChunks;
  private readonly parts: UiPart[] = [];
  /** Indexes of the parts that later chunks may replace. */
  private readonly partIndexes = new Map<string, number>();
  private prompt: string | undefined;

  constructor(id: string, options: UiChunksOptions) {
    this.id = id;
    this.chunks = new UiChunks((chunk) => this.applyChunk(chunk), options);
  }

  addEnvelope(envelope: EventEnvelope): void {
    if (envelope.type === 'user-message') this.prompt ??= envelope.content.text;
    this.chunks.addEnvelope(envelope);
    if (envelope.type !== 'tool-call') return;
    const partId = this.chunks.partIdOf(envelope.id);
    if (partId !== undefined) this.recordAnswer(partId, envelope.content);
  }

  toMessages(): UiMessage[] {
    const { id, parts, prompt } = this;
    const messages: UiMessage[] = [];
    if (prompt !== undefined) {
      messages.push({ id: `${id}:user`, role: 'user', parts: [{ type: 'text', text: prompt, state: 'done' }] });
    }
    if (parts.length > 0) messages.push({ id, role: 'assistant', parts });
    return messages;
  }

  private applyChunk(chunk: UiChunk): void {
    switch (chunk.type) {
      case 'start-step':
        this.parts.push({ type: 'step-start' });
        break;
      case 'text-delta':
        this.parts.push({ type: 'text', text: chunk.delta, state: 'done' });
        break;
      case 'reasoning-delta':
        this.parts.push({ type: 'reasoning', text: chunk.delta, state: 'done' });
        break;
      case 'tool-input-available':
      case 'tool-input-error':
        this.beginTool(chunk);
        break;
      case 'tool-approval-request': {
        const { approvalId: id, approvalDescriptor: descriptor } = chunk;
        const approval = descriptor === undefined ? { id } : { id, descriptor };
        this.updateTool(chunk.toolCallId, { state: 'approval-requested', approval });
        break;
      }
      case 'tool-output-available': {
        const { output, toolMetadata } = chunk;
        const metadata = toolMetadata === undefined ? {} : { toolMetadata };
        this.updateTool(chunk.toolCallId, { state: 'output-available', output, ...metadata });
        break;
      }
      case 'tool-output-error':
        this.updateTool(chunk.toolCallId, { state: 'output-error', errorText: chunk.errorText });
        break;
      case 'tool-output-denied':
        this.updateTool(chunk.toolCallId, { state: 'output-denied' });
        break;
      default:
        if ('data' in chunk) this.putData(chunk);
    }
  }

  private beginTool(chunk: Extract<UiChunk, { readonly input: Json }>): void {
    const { toolCallId, toolName, input, dynamic = false } = chunk;
    const typed = dynamic ? { type: 'dynamic-tool' as const, toolName } : { type: `tool-${toolName}` as const };
    this.putPart(`tool ${toolCallId}`, { ...typed, toolCallId, state: 'input-available', input });
  }

  /** Adds the answer of an approval. A tool call without a result changes its state; one with a result keeps it. */
  private recordAnswer(
    toolCallId: string,
    { approvalStatus, approvalId, approvalDescription: description }: ToolCallContent,
  ): void {
    if (approvalStatus !== 'approved' && approvalStatus !== 'rejected') return;
    const part = this.findTool(toolCallId);
    const descriptor = description === undefined ? {} : { descriptor: { description } };
    const id = approvalId ?? part?.approval?.id ?? toolCallId;
    const approval = { id, ...descriptor, approved: approvalStatus === 'approved' };
    const isOpen = part?.state === 'input-available' || part?.state === 'approval-requested';
    this.updateTool(toolCallId, { ...(isOpen && { state: 'approval-responded' }), approval });
  }

  private updateTool(toolCallId: string, changes: Partial<ToolPartDraft>): void {
    const part = this.findTool(toolCallId);
    if (part === undefined) return;
    const { approval, ...next } = { ...part, ...changes };
    // A denied tool call that failed was not denied by a user: the approval expired, or the turn ended.
    const hasApproval = approval !== undefined && !(next.state === 'output-error' && approval.approved === false);
    this.putPart(`tool ${toolCallId}`, (hasApproval ? { ...next, approval } : next) as UiToolPart);
  }

  private findTool(toolCallId: string): ToolPartDraft | undefined {
    return this.parts[this.partIndexes.get(`tool ${toolCallId}`) ?? -1] as ToolPartDraft | undefined;
  }

  private putData({ type, id = '', data, transient = false }: DataChunk): void {
    if (!transient) this.putPart(`${type} ${id}`, { type, id, data });
  }

  private putPart(key: string, part: UiPart): void {
    const index = this.partIndexes.get(key) ?? this.parts.length;
    this.partIndexes.set(key, index);
    this.parts[index] = part;
  }
}
