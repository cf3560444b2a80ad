/**
 * Renders tool calls in a chat: the lines for a call, its approval, its result or error, and for agents that it runs.
 */
import type { ApprovalStatus, ToolCallContent, ToolErrorContent, ToolResultContent } from '../../../protocol/events.js';
import type { Json } from '../../../protocol/json.js';
import {
  type Colors,
  formatDuration,
  renderSpans,
  type TextSpan,
  truncateSpans,
  widthOf,
  widthOfSpans,
} from '../terminal-text.js';
import {
  escapeJsonLine,
  escapeLine,
  escapeLineToWidth,
  escapeMultiline,
  isUnifiedDiff,
  renderBlock,
} from '../untrusted-text.js';

const MAX_NAME_CHARS = 64;
const MAX_VALUE_CHARS = 1000;
const MAX_BLOCK_ROWS = 20;
const MAX_DIFF_ROWS = 100;
const MAX_BLOCK_CHARS = 20_000;

/** Returns the line of a tool call: its name and arguments. */
export function toolCallLine({ toolName, args }: ToolCallContent, colors: Colors, width: number): string {
  const name = escapeLine(toolName, MAX_NAME_CHARS);
  const argsText = escapeLineToWidth(JSON.stringify(args) ?? 'null', width - widthOf(name) - 4);
  return renderFitted(
    [
      ['● ', 'cyan'],
      [name, 'bold'],
      [` ${argsText}`, 'dim'],
    ],
    colors,
    width,
  );
}

/** Returns the line for the state of an approval. A rejected call has the lines of a tool error instead. */
export function approvalStatusLine(
  { toolName }: ToolCallContent,
  status: Exclude<ApprovalStatus, 'rejected'>,
  colors: Colors,
  width: number,
): string {
  const name = escapeLine(toolName, MAX_NAME_CHARS);
  if (status === 'pending_approval')
    return renderFitted([['? ', 'yellow'], [`${name} waits for approval`]], colors, width);
  return renderFitted(
    [
      ['✓ ', 'green'],
      [`${name} was approved`, 'dim'],
    ],
    colors,
    width,
  );
}

/** Returns the heading of an agent's output. */
export function agentHeading(name: string, colors: Colors, width: number): string {
  return renderFitted(
    [
      ['▸ ', 'dim'],
      [name === '' ? 'an agent' : escapeLine(name, MAX_NAME_CHARS), 'bold'],
    ],
    colors,
    width,
  );
}

/** Returns the line for a sub-agent that has succeeded. */
export function agentDoneLine(name: string, durationMs: number, colors: Colors, width: number): string {
  return renderFitted(
    [['✓ ', 'green'], [escapeLine(name, MAX_NAME_CHARS)], [` ${formatDuration(durationMs)}`, 'dim']],
    colors,
    width,
  );
}

/**
 * Returns the lines of a tool result: one line, and blocks for multi-line strings. `shownOutput` is the streamed output
 * of the call that is already on the screen; a string that it contains is not repeated.
 */
export function toolResultLines(
  { toolName, result }: ToolResultContent,
  colors: Colors,
  width: number,
  shownOutput: string,
): string[] {
  const { line, texts } = splitValue(result);
  const head: TextSpan[] = [
    ['✓ ', 'green'],
    [escapeLine(toolName, MAX_NAME_CHARS)],
    [line === '' ? '' : ` ${line}`, 'dim'],
  ];
  const blocks = texts.flatMap((text) => {
    if (shownOutput.includes(text.trimEnd())) return [];
    const maxRows = isUnifiedDiff(text) ? MAX_DIFF_ROWS : MAX_BLOCK_ROWS;
    return renderBlock(escapeMultiline(text, MAX_BLOCK_CHARS).trimEnd(), {
      colors,
      width,
      indent: '  ',
      style: 'dim',
      maxRows,
    });
  });
  return [renderFitted(head, colors, width), ...blocks];
}

/** Returns the line of a tool that has returned, without its result. */
export function toolDoneLine({ toolName }: ToolResultContent, colors: Colors, width: number): string {
  return renderFitted([['✓ ', 'green'], [escapeLine(toolName, MAX_NAME_CHARS)]], colors, width);
}

/** Returns the lines of a tool error or a denied approval. */
export function toolErrorLines(content: ToolErrorContent, colors: Colors, width: number): string[] {
  const { toolName, error, isUserRejection } = content;
  const name = escapeLine(toolName, MAX_NAME_CHARS);
  const head = isUserRejection === true ? `${name} was not approved` : `${name} failed`;
  const text = escapeMultiline(error, MAX_BLOCK_CHARS).trimEnd();
  const line: readonly TextSpan[] = [['✗ ', 'red'], [`${head}: `], [text, 'red']];
  if (!text.includes('\n') && widthOfSpans(line) < width) return [renderSpans(line, colors)];
  return [
    renderFitted([['✗ ', 'red'], [head]], colors, width),
    ...renderBlock(text, { colors, width, indent: '  ', maxRows: MAX_BLOCK_ROWS }),
  ];
}

function renderFitted(spans: readonly TextSpan[], colors: Colors, width: number): string {
  return renderSpans(truncateSpans(spans, width - 1), colors);
}

/** Splits a value into a one-line text and its multi-line texts. */
function splitValue(value: Json): { readonly line: string; readonly texts: readonly string[] } {
  if (typeof value === 'string')
    return value.includes('\n')
      ? { line: '', texts: [value] }
      : { line: escapeLine(value, MAX_VALUE_CHARS), texts: [] };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { line: escapeJsonLine(value, MAX_VALUE_CHARS), texts: [] };
  const members = Object.entries(value);
  const long = members.filter(([, member]) => typeof member === 'string' && member.includes('\n'));
  const short = members.filter((member) => !long.includes(member));
  const line = short.length === 0 ? '' : escapeJsonLine(Object.fromEntries(short), MAX_VALUE_CHARS);
  return { line, texts: long.map(([, member]) => String(member)) };
}
