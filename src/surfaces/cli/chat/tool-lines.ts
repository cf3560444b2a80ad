/** What is told of a call of a tool: a line when it begins, and what came of it; diffs are shown as such. */
import type { ApprovalStatus, ToolCallContent, ToolErrorContent, ToolResultContent } from '../../../protocol/events.js';
import type { Json } from '../../../protocol/json.js';
import { drawn, duration, type Paint, type Span, widthOf, widthOfSpans, within } from '../paint.js';
import { block, fittedLine, inLine, isDiff, jsonLine, safe } from '../untrusted.js';

/** The most characters of a name, and of a value that has one line. */
const NAME = 64;
const VALUE = 1000;
const ROWS = 20;
const DIFF_ROWS = 100;
const BLOCK = 20_000;

/** Name and arguments in one line. */
export function callLine({ toolName, args }: ToolCallContent, colors: Paint, width: number): string {
  const name = inLine(toolName, NAME);
  const given = fittedLine(JSON.stringify(args) ?? 'null', width - widthOf(name) - 4);
  return fitted(
    [
      ['● ', 'cyan'],
      [name, 'bold'],
      [` ${given}`, 'dim'],
    ],
    colors,
    width,
  );
}

/** How its approval stands. */
export function statusLine(
  { toolName }: ToolCallContent,
  status: Exclude<ApprovalStatus, 'rejected'>,
  colors: Paint,
  width: number,
): string {
  const name = inLine(toolName, NAME);
  if (status === 'pending_approval') return fitted([['? ', 'yellow'], [`${name} waits for approval`]], colors, width);
  return fitted(
    [
      ['✓ ', 'green'],
      [`${name} was approved`, 'dim'],
    ],
    colors,
    width,
  );
}

/** Which agent speaks from here on. */
export function nameLine(name: string, colors: Paint, width: number): string {
  return fitted(
    [
      ['▸ ', 'dim'],
      [name === '' ? 'an agent' : inLine(name, NAME), 'bold'],
    ],
    colors,
    width,
  );
}

/** An agent that was a tool has answered. */
export function doneLine(name: string, durationMs: number, colors: Paint, width: number): string {
  return fitted([['✓ ', 'green'], [inLine(name, NAME)], [` ${duration(durationMs)}`, 'dim']], colors, width);
}

/** What a tool gave back: in one line, or as a block below it, but for what it has shown already. */
export function resultLines(
  { toolName, result }: ToolResultContent,
  colors: Paint,
  width: number,
  shown: string,
): string[] {
  const { line, texts } = partsOf(result);
  const head: Span[] = [['✓ ', 'green'], [inLine(toolName, NAME)], [line === '' ? '' : ` ${line}`, 'dim']];
  const blocks = texts.flatMap((text) => {
    if (shown.includes(text.trimEnd())) return [];
    const rows = isDiff(text) ? DIFF_ROWS : ROWS;
    return block(safe(text, BLOCK).trimEnd(), { colors, width, indent: '  ', style: 'dim', rows });
  });
  return [fitted(head, colors, width), ...blocks];
}

/** Why there is no result. */
export function errorLines(content: ToolErrorContent, colors: Paint, width: number): string[] {
  const { toolName, error, isUserRejection } = content;
  const name = inLine(toolName, NAME);
  const head = isUserRejection === true ? `${name} was not approved` : `${name} failed`;
  const text = safe(error, BLOCK).trimEnd();
  const line: readonly Span[] = [['✗ ', 'red'], [`${head}: `], [text, 'red']];
  if (!text.includes('\n') && widthOfSpans(line) < width) return [drawn(line, colors)];
  return [fitted([['✗ ', 'red'], [head]], colors, width), ...block(text, { colors, width, indent: '  ', rows: ROWS })];
}

function fitted(spans: readonly Span[], colors: Paint, width: number): string {
  return drawn(within(spans, width - 1), colors);
}

/** A value as what fits into a line, and the texts in it that need more. */
function partsOf(value: Json): { readonly line: string; readonly texts: readonly string[] } {
  if (typeof value === 'string')
    return value.includes('\n') ? { line: '', texts: [value] } : { line: inLine(value, VALUE), texts: [] };
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { line: jsonLine(value, VALUE), texts: [] };
  const members = Object.entries(value);
  const long = members.filter(([, member]) => typeof member === 'string' && member.includes('\n'));
  const short = members.filter((member) => !long.includes(member));
  const line = short.length === 0 ? '' : jsonLine(Object.fromEntries(short), VALUE);
  return { line, texts: long.map(([, member]) => String(member)) };
}
