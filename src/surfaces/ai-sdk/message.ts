/**
 * The history of a session as messages of the AI SDK, for a page that loads: the envelopes go through the same chunks
 * as a live turn, so what is loaded is what was streamed. A turn is one user message and one assistant message.
 */
import type { ApprovalStatus, EventEnvelope } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { DataChunk, UiChunk } from './chunk.js';
import { turnIdOf, UiChunks, type UiChunksOptions } from './ui-chunks.js';

interface AnsweredApproval<A extends boolean> {
  readonly id: string;
  readonly approved: A;
}

/** How a call of a tool stands. */
type ToolPartState =
  | { readonly state: 'input-available' }
  | {
      readonly state: 'approval-requested';
      readonly approval: { readonly id: string; readonly descriptor?: { readonly description: string } };
    }
  | { readonly state: 'approval-responded'; readonly approval: AnsweredApproval<boolean> }
  | { readonly state: 'output-available'; readonly output: Json; readonly approval?: AnsweredApproval<true> }
  | { readonly state: 'output-error'; readonly errorText: string; readonly approval?: AnsweredApproval<true> }
  | { readonly state: 'output-denied'; readonly approval: AnsweredApproval<false> };

/** A call of a tool: `tool-NAME`, or `dynamic-tool` with the name beside it. */
export type UiToolPart = (
  | { readonly type: `tool-${string}` }
  | { readonly type: 'dynamic-tool'; readonly toolName: string }
) & { readonly toolCallId: string; readonly input: Json; readonly toolMetadata?: { said: string } } & ToolPartState;

export type UiPart =
  | { readonly type: 'step-start' }
  | { readonly type: 'text' | 'reasoning'; readonly text: string; readonly state: 'done' }
  | UiToolPart
  | { readonly type: DataChunk['type']; readonly id: string; readonly data: DataChunk['data'] };

/** A message as `useChat` takes it. */
export interface UiMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: UiPart[];
}

/** The messages of a session, rebuilt from its envelopes. */
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

/** A tool part in the making. */
interface ToolPartDraft {
  readonly type: UiToolPart['type'];
  readonly toolName?: string;
  readonly toolCallId: string;
  readonly input: Json;
  readonly state: ToolPartState['state'];
  readonly output?: Json;
  readonly errorText?: string;
  readonly toolMetadata?: { said: string };
  readonly approval?: {
    readonly id: string;
    readonly approved?: boolean;
    readonly descriptor?: { readonly description: string };
  };
}

/** The two messages of one turn. */
class TurnMessages {
  private readonly id: string;
  private readonly chunks: UiChunks;
  private readonly parts: UiPart[] = [];
  /** Where the parts are that can change. */
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
    const part = this.chunks.partIdOf(envelope.id);
    if (part !== undefined) this.recordAnswer(part, envelope.content.approvalStatus);
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
        const more = toolMetadata === undefined ? {} : { toolMetadata };
        this.updateTool(chunk.toolCallId, { state: 'output-available', output, ...more });
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
    const named = dynamic ? { type: 'dynamic-tool' as const, toolName } : { type: `tool-${toolName}` as const };
    this.putPart(`tool ${toolCallId}`, { ...named, toolCallId, state: 'input-available', input });
  }

  /** An approval that was answered: the tool has not run, or it has and the answer stands beside its end. */
  private recordAnswer(toolCallId: string, status: ApprovalStatus | undefined): void {
    if (status !== 'approved' && status !== 'rejected') return;
    const part = this.findTool(toolCallId);
    const approval = { id: part?.approval?.id ?? toolCallId, approved: status === 'approved' };
    const open = part?.state === 'input-available' || part?.state === 'approval-requested';
    this.updateTool(toolCallId, { ...(open && { state: 'approval-responded' }), approval });
  }

  private updateTool(toolCallId: string, more: Partial<ToolPartDraft>): void {
    const part = this.findTool(toolCallId);
    if (part === undefined) return;
    const { approval, ...next } = { ...part, ...more };
    // What failed although it was refused was never asked in earnest: it ran out of time, or its turn ended.
    const shown = approval !== undefined && !(next.state === 'output-error' && approval.approved === false);
    this.putPart(`tool ${toolCallId}`, (shown ? { ...next, approval } : next) as UiToolPart);
  }

  private findTool(toolCallId: string): ToolPartDraft | undefined {
    return this.parts[this.partIndexes.get(`tool ${toolCallId}`) ?? -1] as ToolPartDraft | undefined;
  }

  private putData({ type, id = '', data, transient = false }: DataChunk): void {
    if (!transient) this.putPart(`${type} ${id}`, { type, id, data });
  }

  private putPart(name: string, part: UiPart): void {
    const place = this.partIndexes.get(name) ?? this.parts.length;
    this.partIndexes.set(name, place);
    this.parts[place] = part;
  }
}
