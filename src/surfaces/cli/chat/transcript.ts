/**
 * A session as text on a terminal: takes envelopes and pieces as they come, and gives back what is to be written. What a
 * model or a tool wrote is escaped and stands behind a bar; sub-agents are indented, and named when the speaker changes.
 * Reads no clock, writes nothing.
 */
import type { EventContents, EventEnvelope, ToolCallContent } from '../../../protocol/events.js';
import type { LiveDelta } from '../../../protocol/live.js';
import { type Colors, createColors, QUOTE_BAR, type TextStyle } from '../terminal-text.js';
import { escapeMultiline, renderBlock } from '../untrusted-text.js';
import { type Speaker, Speakers } from './speakers.js';
import { TextWrapper } from './text-wrapper.js';
import {
  agentDoneLine,
  agentNameLine,
  approvalStatusLine,
  toolCallLine,
  toolErrorLines,
  toolResultLines,
} from './tool-lines.js';

export interface TranscriptOptions {
  readonly color: boolean;
  width(): number;
  /** Whether to leave out a message of the user: who typed it has seen it. */
  hidesUserMessage?(text: string): boolean;
  /** True if the reader is asked for approvals; then pending ones need no notice. */
  readonly promptsForApprovals?: boolean;
}

/** Something that comes in pieces. */
type StreamSource = Pick<LiveDelta, 'kind' | 'generationId' | 'toolCallId'>;

const INDENT = '  ';
const MAX_INDENT_DEPTH = 8;
const MAX_OUTPUT_ROWS = 20;
const MAX_TEXT_CHARS = 4000;

export class Transcript {
  private readonly options: TranscriptOptions;
  private readonly colors: Colors;
  private readonly speakers = new Speakers();
  private openStream: { readonly source: string; readonly flow: TextWrapper } | undefined;
  /** What has been written of messages that are not finished, and the half of a character that waits for the other. */
  private readonly streamed = new Map<string, { text: string; half: string }>();
  /** Calls of tools by their envelopes, as they were told last. */
  private readonly approvalStatuses = new Map<string, ToolCallContent['approvalStatus']>();
  private readonly renderedIds = new Set<string>();
  /** Calls of tools that were agents, whose answers have been told. */
  private readonly answeredToolCalls = new Set<string>();
  private lastSpeakerId = '';
  /** The turn that was stopped last. */
  private stoppedGenerationId = '';
  /** The call of a tool that the last line was about. */
  private lastToolCallId: string | undefined;

  constructor(look: TranscriptOptions) {
    this.options = look;
    this.colors = createColors(look.color);
  }

  /** Whether an envelope has been told, in some version of it. */
  hasRendered({ id }: EventEnvelope): boolean {
    return this.renderedIds.has(id);
  }

  /** Takes note of something that is not to be told. */
  markRendered(envelope: EventEnvelope): void {
    this.renderedIds.add(envelope.id);
    this.speakers.addEnvelope(envelope);
    if (envelope.type === 'tool-call') this.approvalStatuses.set(envelope.id, envelope.content.approvalStatus);
  }

  /** What to write for a piece. */
  renderDelta(delta: LiveDelta): string {
    const { kind, text, generationId, isRestart } = delta;
    const before = isRestart === true ? this.discardStreamed(generationId) : '';
    return before + (kind === 'tool-input' || text === '' ? '' : this.renderText(delta, text));
  }

  /** What to write for an envelope. */
  renderEnvelope(envelope: EventEnvelope): string {
    const told = this.renderNew(envelope);
    this.markRendered(envelope);
    return told;
  }

  /** Ends the row that is open, so that something else can be written. */
  endRow(): string {
    const { openStream } = this;
    this.openStream = undefined;
    return openStream?.flow.endRow() ?? '';
  }

  private renderNew(envelope: EventEnvelope): string {
    const { type, generationId, content } = envelope;
    const { yellow, red, dim } = this.colors;
    const speaker = this.speakers.speakerOf(generationId);
    if (type === 'assistant-message' || type === 'other-agent-message')
      return this.renderFinishedMessage({ kind: 'text', generationId }, content.text);
    if (type === 'reasoning') return this.renderFinishedMessage({ kind: 'reasoning', generationId }, content.text);
    if (type === 'user-message') return this.renderUserMessage(content.text);
    if (type === 'tool-call') return this.renderToolCall(envelope.id, generationId, content, speaker);
    if (type === 'tool-result') return this.renderToolResult(generationId, content, speaker);
    if (type === 'tool-error') return this.renderToolError(generationId, content, speaker);
    if (type === 'child-generation') return this.renderChildEnd(generationId, content, speaker);
    if (type === 'user-abort') {
      this.stoppedGenerationId = generationId;
      return this.renderOwnLine(yellow('■ Stopped.'));
    }
    if (type === 'generation-failure') return this.renderOwnLine(red('✗ It failed:'), content.error);
    if (type === 'trigger') return this.renderOwnLine(dim('▸ Triggered by:'), content.triggerName);
    return '';
  }

  /** A line of ours, and what others have to say about it. */
  private renderOwnLine(line: string, text?: string): string {
    this.lastToolCallId = undefined;
    const rows = text === undefined ? [] : this.quote(text);
    return `${this.endRow()}${[line, ...rows].join('\n')}\n`;
  }

  private quote(text: string): readonly string[] {
    return renderBlock(escapeMultiline(text, MAX_TEXT_CHARS).trimEnd(), {
      colors: this.colors,
      width: this.options.width(),
    });
  }

  private renderUserMessage(text: string): string {
    if (this.options.hidesUserMessage?.(text) === true) return '';
    const width = this.options.width();
    const rows = renderBlock(escapeMultiline(text, MAX_TEXT_CHARS), {
      colors: this.colors,
      width,
      bar: '› ',
      style: 'bold',
    });
    this.lastSpeakerId = '';
    return rows.map((row) => this.renderOwnLine(row)).join('');
  }

  /** Lines of an agent, where it stands. */
  private renderAgentLines(generationId: string, lines: readonly string[], speaker: Speaker): string {
    const before = this.endRow() + this.renderSpeakerChange(generationId, speaker);
    this.lastToolCallId = undefined;
    const indent = indentOf(speaker);
    return before + lines.map((line) => `${indent}${line}\n`).join('');
  }

  /** Says who speaks now, unless that is plain to see. */
  private renderSpeakerChange(generationId: string, { depth, name, toolCallId }: Speaker): string {
    const before = this.lastSpeakerId;
    this.lastSpeakerId = generationId;
    // Back to the speaker that started it, or to the same one.
    if (`${before}/`.startsWith(`${generationId}/`)) return '';
    if (depth === 0 || (toolCallId !== undefined && toolCallId === this.lastToolCallId)) return '';
    return `${indentOf({ depth })}${agentNameLine(name, this.colors, this.room({ depth }))}\n`;
  }

  private renderToolCall(id: string, generationId: string, content: ToolCallContent, speaker: Speaker): string {
    const { toolCallId, approvalStatus: status } = content;
    const width = this.room(speaker);
    const first = !this.approvalStatuses.has(id);
    const lines = first ? [toolCallLine(content, this.colors, width)] : [];
    // A call that was not approved is told as one that failed.
    const news = status !== undefined && status !== 'rejected' && this.approvalStatuses.get(id) !== status;
    if (news && !(this.options.promptsForApprovals === true && status === 'pending_approval'))
      lines.push(approvalStatusLine(content, status, this.colors, width));
    const out = lines.length === 0 ? '' : this.renderAgentLines(generationId, lines, speaker);
    if (first && status === undefined) this.lastToolCallId = toolCallId;
    return out;
  }

  private renderToolResult(generationId: string, content: EventContents['tool-result'], speaker: Speaker): string {
    const { toolCallId, output } = content;
    // An agent that was a tool has said its answer itself.
    if (this.answeredToolCalls.delete(`${generationId} ${toolCallId}`)) return '';
    const source = sourceKeyOf({ kind: 'tool-output', generationId, toolCallId });
    const { colors } = this;
    const width = this.room(speaker);
    const streamed = this.streamed.get(source);
    this.streamed.delete(source);
    const said = output === undefined || streamed !== undefined ? '' : escapeMultiline(output).trimEnd();
    const lines =
      said === '' ? [] : renderBlock(said, { colors, width, indent: INDENT, style: 'dim', maxRows: MAX_OUTPUT_ROWS });
    const shown = streamed?.text ?? output ?? '';
    return this.renderAgentLines(generationId, [...lines, ...toolResultLines(content, colors, width, shown)], speaker);
  }

  private renderToolError(generationId: string, content: EventContents['tool-error'], speaker: Speaker): string {
    // What was stopped has no result: that goes without saying.
    if (`${generationId}/`.startsWith(`${this.stoppedGenerationId}/`)) return '';
    return this.renderAgentLines(generationId, toolErrorLines(content, this.colors, this.room(speaker)), speaker);
  }

  private renderChildEnd(generationId: string, content: EventContents['child-generation'], speaker: Speaker): string {
    const { childGenerationId, status, item, durationMs } = content;
    const { toolCallId } = this.speakers.speakerOf(childGenerationId);
    if (toolCallId !== undefined && status === 'ok') this.answeredToolCalls.add(`${generationId} ${toolCallId}`);
    // What failed is told with its reason, as what a tool came to.
    if (status !== 'ok') return '';
    return this.renderAgentLines(
      generationId,
      [agentDoneLine(item, durationMs, this.colors, this.room(speaker))],
      speaker,
    );
  }

  /** A finished message: what was not written yet of it. */
  private renderFinishedMessage(piece: StreamSource, text: string): string {
    const source = sourceKeyOf(piece);
    const { text: written = '' } = this.streamed.get(source) ?? {};
    if (!text.startsWith(written)) {
      this.streamed.delete(source);
      const note =
        this.endRow() + this.colors.dim(`${indentOf(this.speakers.speakerOf(piece.generationId))}(in full)\n`);
      return note + this.renderText(piece, text) + this.finishSource(source);
    }
    return this.renderText(piece, text.slice(written.length)) + this.finishSource(source);
  }

  /** What was written of a message does not hold: the model is asked again. */
  private discardStreamed(generationId: string): string {
    const sources = (['text', 'reasoning'] as const).map((kind) => sourceKeyOf({ kind, generationId }));
    const written = sources.filter((source) => this.streamed.delete(source));
    if (written.length === 0) return '';
    return this.endRow() + this.colors.dim(`${indentOf(this.speakers.speakerOf(generationId))}(once more)\n`);
  }

  private finishSource(source: string): string {
    this.streamed.delete(source);
    return this.openStream?.source === source ? this.endRow() : '';
  }

  private renderText(piece: StreamSource, text: string): string {
    const source = sourceKeyOf(piece);
    const known = this.streamed.get(source) ?? { text: '', half: '' };
    if (text === '' && known.half === '') return '';
    const before = this.openStream?.source === source ? '' : this.beginStream(source, piece);
    const all = known.half + text;
    // Half a character, or half a line end, is nothing yet.
    const half = /[\r\ud800-\udbff]$/.exec(all)?.[0] ?? '';
    this.streamed.set(source, { text: known.text + text, half });
    return before + (this.openStream?.flow.feed(escapeMultiline(all.slice(0, all.length - half.length))) ?? '');
  }

  private beginStream(source: string, { kind, generationId }: StreamSource): string {
    const speaker = this.speakers.speakerOf(generationId);
    const before = this.endRow() + this.renderSpeakerChange(generationId, speaker);
    this.lastToolCallId = undefined;
    const indent = indentOf(speaker) + (kind === 'tool-output' ? INDENT : '');
    const { colors } = this;
    const style: TextStyle | undefined = kind === 'text' ? undefined : 'dim';
    const flow = new TextWrapper({
      bar: `${indent}${kind === 'text' ? colors.cyan(QUOTE_BAR) : colors.dim(QUOTE_BAR)}`,
      maxColumns: () => Math.max(8, this.options.width() - indent.length - QUOTE_BAR.length - 1),
      style: (words) => (style === undefined ? words : colors[style](words)),
    });
    this.openStream = { source, flow };
    return before;
  }

  private room(speaker: Pick<Speaker, 'depth'>): number {
    return Math.max(20, this.options.width() - indentOf(speaker).length);
  }
}

function indentOf({ depth }: Pick<Speaker, 'depth'>): string {
  return INDENT.repeat(Math.min(MAX_INDENT_DEPTH, depth));
}

function sourceKeyOf({ kind, generationId, toolCallId = '' }: StreamSource): string {
  return `${kind} ${generationId} ${toolCallId}`;
}
