/**
 * Renders a session as terminal text: receives envelopes and live deltas and returns the text to print. Text of models
 * and tools is escaped and gets a quote bar. Sub-agents are indented, with a heading when the speaker changes. The
 * class keeps the state of the screen, but prints nothing itself.
 */
import type { EventContents, EventEnvelope, ToolCallContent } from '../../../protocol/events.js';
import type { Json } from '../../../protocol/json.js';
import type { LiveDelta } from '../../../protocol/live.js';
import { type Colors, createColors, QUOTE_BAR, type TextStyle } from '../terminal-text.js';
import { escapeMultiline, renderBlock } from '../untrusted-text.js';
import { type Speaker, Speakers } from './speakers.js';
import { TextWrapper } from './text-wrapper.js';
import {
  agentDoneLine,
  agentHeading,
  approvalStatusLine,
  toolCallLine,
  toolDoneLine,
  toolErrorLines,
  toolResultLines,
} from './tool-lines.js';

/** Options of `Transcript`. */
export interface TranscriptOptions {
  readonly color: boolean;
  /** Returns the width of the terminal. */
  width(): number;
  /**
   * Returns true if a user message is not rendered, because the user has typed it on this screen.
   * @default all messages are rendered
   */
  hidesUserMessage?(text: string): boolean;
  /**
   * True if the user is prompted for approvals. Pending approvals are not rendered then.
   * @default false
   */
  readonly promptsForApprovals?: boolean;
  /**
   * True if long texts, arguments and results are rendered completely.
   * @default false
   */
  readonly isFull?: boolean;
}

/** The source of streamed text. */
type StreamSource = Pick<LiveDelta, 'kind' | 'generationId' | 'toolCallId'>;

const INDENT = '  ';
const MAX_INDENT_DEPTH = 8;
const MAX_OUTPUT_ROWS = 20;
const MAX_TEXT_CHARS = 4000;

/** The text of one session. */
export class Transcript {
  private readonly options: TranscriptOptions;
  private readonly colors: Colors;
  private readonly speakers = new Speakers();
  private openStream: { readonly source: string; readonly wrapper: TextWrapper } | undefined;
  /** Streamed text of unfinished messages, and the first half of a split character or line end. */
  private readonly streamed = new Map<string, { text: string; half: string }>();
  /** The last rendered approval status of tool calls, by envelope id. */
  private readonly approvalStatuses = new Map<string, ToolCallContent['approvalStatus']>();
  private readonly renderedIds = new Set<string>();
  /** Tool calls of sub-agents whose answers have been rendered. */
  private readonly answeredToolCalls = new Set<string>();
  private lastSpeakerId = '';
  /** The generation that was stopped last. */
  private stoppedGenerationId = '';
  /** The tool call of the last line. */
  private lastToolCallId: string | undefined;

  constructor(options: TranscriptOptions) {
    this.options = options;
    this.colors = createColors(options.color);
  }

  /** Returns true if some version of an envelope has been rendered. */
  hasRendered({ id }: EventEnvelope): boolean {
    return this.renderedIds.has(id);
  }

  /** Records an envelope without rendering it. */
  markRendered(envelope: EventEnvelope): void {
    this.renderedIds.add(envelope.id);
    this.speakers.addEnvelope(envelope);
    if (envelope.type === 'tool-call') this.approvalStatuses.set(envelope.id, envelope.content.approvalStatus);
  }

  /** Returns the text for a live delta; empty for the arguments of a tool call. */
  renderDelta(delta: LiveDelta): string {
    const { kind, text, generationId, isRestart } = delta;
    const prefix = isRestart === true ? this.discardStreamed(generationId) : '';
    return prefix + (kind === 'tool-input' || text === '' ? '' : this.renderText(delta, text));
  }

  /** Returns the text for an envelope, without text that was streamed, and marks the envelope as rendered. */
  renderEnvelope(envelope: EventEnvelope): string {
    const text = this.renderNew(envelope);
    this.markRendered(envelope);
    return text;
  }

  /** Returns the text that ends the open row. */
  endRow(): string {
    const { openStream } = this;
    this.openStream = undefined;
    return openStream?.wrapper.endRow() ?? '';
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
    if (type === 'generation-failure') return this.renderOwnLine(red('✗ Failed:'), content.error);
    if (type === 'loop-triggered' && content.parentGenerationId === undefined)
      return this.renderOwnLine(dim('▸ Loop:'), `${content.triggeredBy} ${content.instructions ?? ''}`.trimEnd());
    if (type === 'trigger') return this.renderOwnLine(dim('▸ Triggered by:'), content.triggerName);
    return '';
  }

  /** Renders a line of Rondo, followed by quoted text. */
  private renderOwnLine(line: string, text?: string): string {
    this.lastToolCallId = undefined;
    const rows = text === undefined ? [] : this.quote(text);
    return `${this.endRow()}${[line, ...rows].join('\n')}\n`;
  }

  private quote(text: string): readonly string[] {
    return renderBlock(escapeMultiline(text, this.maxTextChars).trimEnd(), {
      colors: this.colors,
      width: this.options.width(),
    });
  }

  private get maxTextChars(): number {
    return this.options.isFull === true ? Number.POSITIVE_INFINITY : MAX_TEXT_CHARS;
  }

  /** Returns the rows of a value that its line may have shortened; none unless everything is rendered. */
  private fullValue(value: Json): readonly string[] {
    if (this.options.isFull !== true) return [];
    const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
    return renderBlock(escapeMultiline(text).trimEnd(), {
      colors: this.colors,
      width: this.options.width(),
      indent: INDENT,
      style: 'dim',
    });
  }

  private renderUserMessage(text: string): string {
    if (this.options.hidesUserMessage?.(text) === true) return '';
    const width = this.options.width();
    const rows = renderBlock(escapeMultiline(text, this.maxTextChars), {
      colors: this.colors,
      width,
      bar: '› ',
      style: 'bold',
    });
    this.lastSpeakerId = '';
    return rows.map((row) => this.renderOwnLine(row)).join('');
  }

  /** Renders lines of an agent with its indentation. */
  private renderAgentLines(generationId: string, lines: readonly string[], speaker: Speaker): string {
    const prefix = this.endRow() + this.renderSpeakerChange(generationId, speaker);
    this.lastToolCallId = undefined;
    const indent = indentOf(speaker);
    return prefix + lines.map((line) => `${indent}${line}\n`).join('');
  }

  /** Renders a heading if the speaker changes and the new one is not evident from the lines above. */
  private renderSpeakerChange(generationId: string, { depth, name, toolCallId }: Speaker): string {
    const previousId = this.lastSpeakerId;
    this.lastSpeakerId = generationId;
    // The same agent, or an ancestor of the previous one.
    if (`${previousId}/`.startsWith(`${generationId}/`)) return '';
    if (depth === 0 || (toolCallId !== undefined && toolCallId === this.lastToolCallId)) return '';
    return `${indentOf({ depth })}${agentHeading(name, this.colors, this.columnsFor({ depth }))}\n`;
  }

  private renderToolCall(id: string, generationId: string, content: ToolCallContent, speaker: Speaker): string {
    const { toolCallId, approvalStatus: status } = content;
    const width = this.columnsFor(speaker);
    const isFirst = !this.approvalStatuses.has(id);
    const lines = isFirst ? [toolCallLine(content, this.colors, width), ...this.fullValue(content.args)] : [];
    // A denied call is rendered with its tool error.
    const isNewStatus = status !== undefined && status !== 'rejected' && this.approvalStatuses.get(id) !== status;
    if (isNewStatus && !(this.options.promptsForApprovals === true && status === 'pending_approval'))
      lines.push(approvalStatusLine(content, status, this.colors, width));
    const text = lines.length === 0 ? '' : this.renderAgentLines(generationId, lines, speaker);
    if (isFirst && status === undefined) this.lastToolCallId = toolCallId;
    return text;
  }

  private renderToolResult(generationId: string, content: EventContents['tool-result'], speaker: Speaker): string {
    const { toolCallId, output } = content;
    // The answer of a sub-agent has been rendered as its own message.
    if (this.answeredToolCalls.delete(`${generationId} ${toolCallId}`)) return '';
    const source = sourceKeyOf({ kind: 'tool-output', generationId, toolCallId });
    const { colors } = this;
    const width = this.columnsFor(speaker);
    const streamed = this.streamed.get(source);
    this.streamed.delete(source);
    const unshown = output === undefined || streamed !== undefined ? '' : escapeMultiline(output).trimEnd();
    const lines =
      unshown === ''
        ? []
        : renderBlock(unshown, {
            colors,
            width,
            indent: INDENT,
            style: 'dim',
            maxRows: this.options.isFull === true ? Number.POSITIVE_INFINITY : MAX_OUTPUT_ROWS,
          });
    const shown = streamed?.text ?? output ?? '';
    const full = this.fullValue(content.result);
    const result = full.length > 0 ? [toolDoneLine(content, colors, width), ...full] : undefined;
    const resultLines = result ?? toolResultLines(content, colors, width, shown);
    return this.renderAgentLines(generationId, [...lines, ...resultLines], speaker);
  }

  private renderToolError(generationId: string, content: EventContents['tool-error'], speaker: Speaker): string {
    // The errors of a stopped generation are evident.
    if (`${generationId}/`.startsWith(`${this.stoppedGenerationId}/`)) return '';
    return this.renderAgentLines(generationId, toolErrorLines(content, this.colors, this.columnsFor(speaker)), speaker);
  }

  private renderChildEnd(generationId: string, content: EventContents['child-generation'], speaker: Speaker): string {
    const { childGenerationId, status, item, durationMs } = content;
    const { toolCallId } = this.speakers.speakerOf(childGenerationId);
    if (toolCallId !== undefined && status === 'ok') this.answeredToolCalls.add(`${generationId} ${toolCallId}`);
    // A failed sub-agent is rendered with its tool error, which has the reason.
    if (status !== 'ok') return '';
    return this.renderAgentLines(
      generationId,
      [agentDoneLine(item, durationMs, this.colors, this.columnsFor(speaker))],
      speaker,
    );
  }

  /** Renders the part of a finished message that was not streamed. */
  private renderFinishedMessage(streamSource: StreamSource, text: string): string {
    const key = sourceKeyOf(streamSource);
    const { text: streamedText = '' } = this.streamed.get(key) ?? {};
    if (!text.startsWith(streamedText)) {
      this.streamed.delete(key);
      const note =
        this.endRow() + this.colors.dim(`${indentOf(this.speakers.speakerOf(streamSource.generationId))}(in full)\n`);
      return note + this.renderText(streamSource, text) + this.finishSource(key);
    }
    return this.renderText(streamSource, text.slice(streamedText.length)) + this.finishSource(key);
  }

  /** Discards the streamed text of a message when the model call is retried. */
  private discardStreamed(generationId: string): string {
    const sources = (['text', 'reasoning'] as const).map((kind) => sourceKeyOf({ kind, generationId }));
    const discarded = sources.filter((source) => this.streamed.delete(source));
    if (discarded.length === 0) return '';
    return this.endRow() + this.colors.dim(`${indentOf(this.speakers.speakerOf(generationId))}(retry)\n`);
  }

  private finishSource(source: string): string {
    this.streamed.delete(source);
    return this.openStream?.source === source ? this.endRow() : '';
  }

  private renderText(streamSource: StreamSource, text: string): string {
    const key = sourceKeyOf(streamSource);
    const streamed = this.streamed.get(key) ?? { text: '', half: '' };
    if (text === '' && streamed.half === '') return '';
    const prefix = this.openStream?.source === key ? '' : this.beginStream(key, streamSource);
    const pending = streamed.half + text;
    // A surrogate pair or a CRLF may be split between two deltas.
    const half = /[\r\ud800-\udbff]$/.exec(pending)?.[0] ?? '';
    this.streamed.set(key, { text: streamed.text + text, half });
    const complete = escapeMultiline(pending.slice(0, pending.length - half.length));
    return prefix + (this.openStream?.wrapper.feed(complete) ?? '');
  }

  private beginStream(source: string, { kind, generationId }: StreamSource): string {
    const speaker = this.speakers.speakerOf(generationId);
    const prefix = this.endRow() + this.renderSpeakerChange(generationId, speaker);
    this.lastToolCallId = undefined;
    const indent = indentOf(speaker) + (kind === 'tool-output' ? INDENT : '');
    const { colors } = this;
    const style: TextStyle | undefined = kind === 'text' ? undefined : 'dim';
    const wrapper = new TextWrapper({
      bar: `${indent}${kind === 'text' ? colors.cyan(QUOTE_BAR) : colors.dim(QUOTE_BAR)}`,
      maxColumns: () => Math.max(8, this.options.width() - indent.length - QUOTE_BAR.length - 1),
      style: (text) => (style === undefined ? text : colors[style](text)),
    });
    this.openStream = { source, wrapper };
    return prefix;
  }

  private columnsFor(speaker: Pick<Speaker, 'depth'>): number {
    return Math.max(20, this.options.width() - indentOf(speaker).length);
  }
}

function indentOf({ depth }: Pick<Speaker, 'depth'>): string {
  return INDENT.repeat(Math.min(MAX_INDENT_DEPTH, depth));
}

function sourceKeyOf({ kind, generationId, toolCallId = '' }: StreamSource): string {
  return `${kind} ${generationId} ${toolCallId}`;
}
