/**
 * A session as text on a terminal: takes envelopes and pieces as they come, and gives back what is to be written. What a
 * model or a tool wrote is escaped and stands behind a bar; sub-agents are indented, and named when the speaker changes.
 * Reads no clock, writes nothing.
 */
import type { EventContents, EventEnvelope, ToolCallContent } from '../../../protocol/events.js';
import type { LiveDelta } from '../../../protocol/live.js';
import { BAR, type Paint, paint, type Style } from '../paint.js';
import { block, safe } from '../untrusted.js';
import { Cast, type Speaker } from './cast.js';
import { Flow } from './flow.js';
import { callLine, doneLine, errorLines, nameLine, resultLines, statusLine } from './tool-lines.js';

export interface TranscriptLook {
  readonly color: boolean;
  width(): number;
  /** Whether to leave out a message of the user: who typed it has seen it. */
  silent?(text: string): boolean;
  /** Whether whoever reads this is asked about approvals; then that one waits need not be told. */
  readonly asks?: boolean;
}

/** Something that comes in pieces. */
type Piece = Pick<LiveDelta, 'kind' | 'generationId' | 'toolCallId'>;

const INDENT = '  ';
const DEEPEST = 8;
const OUTPUT_ROWS = 20;
const LONGEST = 4000;

export class Transcript {
  private readonly look: TranscriptLook;
  private readonly colors: Paint;
  private readonly cast = new Cast();
  private open: { readonly source: string; readonly flow: Flow } | undefined;
  /** What has been written of messages that are not finished, and the half of a character that waits for the other. */
  private readonly streamed = new Map<string, { text: string; half: string }>();
  /** Calls of tools by their envelopes, as they were told last. */
  private readonly calls = new Map<string, ToolCallContent['approvalStatus']>();
  private readonly told = new Set<string>();
  /** Calls of tools that were agents, whose answers have been told. */
  private readonly answered = new Set<string>();
  private spoke = '';
  /** The turn that was stopped last. */
  private stopped = '';
  /** The call of a tool that the last line was about. */
  private above: string | undefined;

  constructor(look: TranscriptLook) {
    this.look = look;
    this.colors = paint(look.color);
  }

  /** Whether an envelope has been told, in some version of it. */
  knows({ id }: EventEnvelope): boolean {
    return this.told.has(id);
  }

  /** Takes note of something that is not to be told. */
  learn(envelope: EventEnvelope): void {
    this.told.add(envelope.id);
    this.cast.hear(envelope);
    if (envelope.type === 'tool-call') this.calls.set(envelope.id, envelope.content.approvalStatus);
  }

  /** What to write for a piece. */
  delta(delta: LiveDelta): string {
    const { kind, text, generationId, again } = delta;
    const before = again === true ? this.takeBack(generationId) : '';
    return before + (kind === 'tool-input' || text === '' ? '' : this.pour(delta, text));
  }

  /** What to write for an envelope. */
  envelope(envelope: EventEnvelope): string {
    const told = this.tell(envelope);
    this.learn(envelope);
    return told;
  }

  /** Ends the row that is open, so that something else can be written. */
  rest(): string {
    const { open } = this;
    this.open = undefined;
    return open?.flow.rest() ?? '';
  }

  private tell(envelope: EventEnvelope): string {
    const { type, generationId, content } = envelope;
    const { yellow, red, dim } = this.colors;
    const speaker = this.cast.speaker(generationId);
    if (type === 'assistant-message' || type === 'other-agent-message')
      return this.whole({ kind: 'text', generationId }, content.text);
    if (type === 'reasoning') return this.whole({ kind: 'reasoning', generationId }, content.text);
    if (type === 'user-message') return this.user(content.text);
    if (type === 'tool-call') return this.call(envelope.id, generationId, content, speaker);
    if (type === 'tool-result') return this.result(generationId, content, speaker);
    if (type === 'tool-error') return this.error(generationId, content, speaker);
    if (type === 'child-generation') return this.child(generationId, content, speaker);
    if (type === 'user-abort') {
      this.stopped = generationId;
      return this.own(yellow('■ Stopped.'));
    }
    if (type === 'generation-failure') return this.own(red('✗ It failed:'), content.error);
    if (type === 'trigger') return this.own(dim('▸ Triggered by:'), content.triggerName);
    return '';
  }

  /** A line of ours, and what others have to say about it. */
  private own(line: string, text?: string): string {
    this.above = undefined;
    const rows = text === undefined ? [] : this.block(text);
    return `${this.rest()}${[line, ...rows].join('\n')}\n`;
  }

  private block(text: string): readonly string[] {
    return block(safe(text, LONGEST).trimEnd(), { colors: this.colors, width: this.look.width() });
  }

  private user(text: string): string {
    if (this.look.silent?.(text) === true) return '';
    const width = this.look.width();
    const rows = block(safe(text, LONGEST), { colors: this.colors, width, bar: '› ', style: 'bold' });
    this.spoke = '';
    return rows.map((row) => this.own(row)).join('');
  }

  /** Lines of an agent, where it stands. */
  private lines(generationId: string, lines: readonly string[], speaker: Speaker): string {
    const before = this.rest() + this.enter(generationId, speaker);
    this.above = undefined;
    const indent = indentOf(speaker);
    return before + lines.map((line) => `${indent}${line}\n`).join('');
  }

  /** Says who speaks now, unless that is plain to see. */
  private enter(generationId: string, { depth, name, toolCallId }: Speaker): string {
    const before = this.spoke;
    this.spoke = generationId;
    // Back to whoever it was begun by, or to the same.
    if (`${before}/`.startsWith(`${generationId}/`)) return '';
    if (depth === 0 || (toolCallId !== undefined && toolCallId === this.above)) return '';
    return `${indentOf({ depth })}${nameLine(name, this.colors, this.room({ depth }))}\n`;
  }

  private call(id: string, generationId: string, content: ToolCallContent, speaker: Speaker): string {
    const { toolCallId, approvalStatus: status } = content;
    const width = this.room(speaker);
    const first = !this.calls.has(id);
    const lines = first ? [callLine(content, this.colors, width)] : [];
    // A call that was not approved is told as one that failed.
    const news = status !== undefined && status !== 'rejected' && this.calls.get(id) !== status;
    if (news && !(this.look.asks === true && status === 'pending_approval'))
      lines.push(statusLine(content, status, this.colors, width));
    const out = lines.length === 0 ? '' : this.lines(generationId, lines, speaker);
    if (first && status === undefined) this.above = toolCallId;
    return out;
  }

  private result(generationId: string, content: EventContents['tool-result'], speaker: Speaker): string {
    const { toolCallId, output } = content;
    // An agent that was a tool has said its answer itself.
    if (this.answered.delete(`${generationId} ${toolCallId}`)) return '';
    const source = sourceOf({ kind: 'tool-output', generationId, toolCallId });
    const { colors } = this;
    const width = this.room(speaker);
    const streamed = this.streamed.get(source);
    this.streamed.delete(source);
    const said = output === undefined || streamed !== undefined ? '' : safe(output).trimEnd();
    const lines = said === '' ? [] : block(said, { colors, width, indent: INDENT, style: 'dim', rows: OUTPUT_ROWS });
    const shown = streamed?.text ?? output ?? '';
    return this.lines(generationId, [...lines, ...resultLines(content, colors, width, shown)], speaker);
  }

  private error(generationId: string, content: EventContents['tool-error'], speaker: Speaker): string {
    // What was stopped has no result: that goes without saying.
    if (`${generationId}/`.startsWith(`${this.stopped}/`)) return '';
    return this.lines(generationId, errorLines(content, this.colors, this.room(speaker)), speaker);
  }

  private child(generationId: string, content: EventContents['child-generation'], speaker: Speaker): string {
    const { childGenerationId, status, item, durationMs } = content;
    const { toolCallId } = this.cast.speaker(childGenerationId);
    if (toolCallId !== undefined && status === 'ok') this.answered.add(`${generationId} ${toolCallId}`);
    // What failed is told with its reason, as what a tool came to.
    if (status !== 'ok') return '';
    return this.lines(generationId, [doneLine(item, durationMs, this.colors, this.room(speaker))], speaker);
  }

  /** A finished message: what was not written yet of it. */
  private whole(piece: Piece, text: string): string {
    const source = sourceOf(piece);
    const { text: written = '' } = this.streamed.get(source) ?? {};
    if (!text.startsWith(written)) {
      this.streamed.delete(source);
      const note = this.rest() + this.colors.dim(`${indentOf(this.cast.speaker(piece.generationId))}(in full)\n`);
      return note + this.pour(piece, text) + this.finish(source);
    }
    return this.pour(piece, text.slice(written.length)) + this.finish(source);
  }

  /** What was written of a message does not hold: the model is asked again. */
  private takeBack(generationId: string): string {
    const sources = (['text', 'reasoning'] as const).map((kind) => sourceOf({ kind, generationId }));
    const written = sources.filter((source) => this.streamed.delete(source));
    if (written.length === 0) return '';
    return this.rest() + this.colors.dim(`${indentOf(this.cast.speaker(generationId))}(once more)\n`);
  }

  private finish(source: string): string {
    this.streamed.delete(source);
    return this.open?.source === source ? this.rest() : '';
  }

  private pour(piece: Piece, text: string): string {
    const source = sourceOf(piece);
    const known = this.streamed.get(source) ?? { text: '', half: '' };
    if (text === '' && known.half === '') return '';
    const before = this.open?.source === source ? '' : this.begin(source, piece);
    const all = known.half + text;
    // Half a character, or half a line end, is nothing yet.
    const half = /[\r\ud800-\udbff]$/.exec(all)?.[0] ?? '';
    this.streamed.set(source, { text: known.text + text, half });
    return before + (this.open?.flow.feed(safe(all.slice(0, all.length - half.length))) ?? '');
  }

  private begin(source: string, { kind, generationId }: Piece): string {
    const speaker = this.cast.speaker(generationId);
    const before = this.rest() + this.enter(generationId, speaker);
    this.above = undefined;
    const indent = indentOf(speaker) + (kind === 'tool-output' ? INDENT : '');
    const { colors } = this;
    const style: Style | undefined = kind === 'text' ? undefined : 'dim';
    const flow = new Flow({
      bar: `${indent}${kind === 'text' ? colors.cyan(BAR) : colors.dim(BAR)}`,
      room: () => Math.max(8, this.look.width() - indent.length - BAR.length - 1),
      style: (words) => (style === undefined ? words : colors[style](words)),
    });
    this.open = { source, flow };
    return before;
  }

  private room(speaker: Pick<Speaker, 'depth'>): number {
    return Math.max(20, this.look.width() - indentOf(speaker).length);
  }
}

function indentOf({ depth }: Pick<Speaker, 'depth'>): string {
  return INDENT.repeat(Math.min(DEEPEST, depth));
}

function sourceOf({ kind, generationId, toolCallId = '' }: Piece): string {
  return `${kind} ${generationId} ${toolCallId}`;
}
