/**
 * An approval before the eyes of who is to answer it: which tool, by which way, with which arguments. All that a model
 * or a tool had a say in is escaped, bounded and behind a bar, so nothing of it can look like a question of ours. What is left out
 * is left out of the middle, and a line of ours, without a bar, states exactly how much.
 */
import { type Excerpt, excerptOf, splitAtOmission } from '../../base/escape-text.js';
import type { Approval } from '../../protocol/approval.js';
import { breakIntoRows, type Colors, formatInteger, type TextStyle } from './terminal-text.js';
import { escapeLine, escapeMultiline, isUnifiedDiff, renderBlock } from './untrusted-text.js';

export interface RenderApprovalOptions {
  readonly colors: Colors;
  readonly width: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** True if nothing is left out. */
  readonly full?: boolean;
}

/** The most characters of the arguments, of the description, of a name, and of a path. */
const MAX_ARGUMENTS_CHARS = 2000;
const MAX_DESCRIPTION_CHARS = 8000;
const MAX_NAME_CHARS = 100;
const MAX_PATH_CHARS = 1000;

export function isExpired({ expiresAt }: Approval, now: number): boolean {
  return now > Date.parse(expiresAt);
}

/** The loops from the root to the tool, as one text. */
export function loopPathOf({ path }: Approval): string {
  return path.map((loop) => escapeLine(loop, MAX_NAME_CHARS)).join(' › ');
}

/** The lines of an approval. */
export function renderApproval(approval: Approval, look: RenderApprovalOptions): string[] {
  const { now } = look;
  const { id, tool, principal, approvers, description, requestedAt, expiresAt } = approval;
  const expired = isExpired(approval, now);
  return [
    ...factLines(
      '',
      `${escapeLine(id, MAX_NAME_CHARS)}${expired ? ' (expired)' : ''}`,
      look,
      expired ? 'red' : undefined,
    ),
    ...factLines('tool', escapeLine(tool, MAX_NAME_CHARS), look, 'bold'),
    ...factLines('path', loopPathOf(approval), look),
    ...(principal === undefined ? [] : factLines('for', escapeLine(principal, MAX_NAME_CHARS), look)),
    ...(approvers === undefined
      ? []
      : factLines('only by', approvers.map((who) => escapeLine(who, MAX_NAME_CHARS)).join(', '), look)),
    ...factLines('asked', `${requestedAt}, ${expired ? 'expired' : 'expires'} ${expiresAt}`, look),
    ...targetLines(approval, look),
    ...argumentLines(approval, look),
    '  description',
    ...excerptLines(descriptionExcerpt(description, look), look, 'the arguments are whole', id),
  ];
}

/** True if the card of this approval leaves something out that could be shown. */
export function isAbbreviated({ arguments: given, description }: Approval): boolean {
  const look = { full: false };
  return argumentsExcerpt(given, look).hiddenChars > 0 || descriptionExcerpt(description, look).hiddenChars > 0;
}

const LABEL_COLUMNS = 12;

/** A fact with its label, in as many rows as it needs: what the terminal would break by itself might pass for ours. */
function factLines(
  label: string,
  value: string,
  { colors, width }: RenderApprovalOptions,
  style?: TextStyle,
): string[] {
  const head =
    label === '' ? `${colors.yellow('?')} ${colors.bold('Approval')} ` : `  ${label.padEnd(LABEL_COLUMNS - 2)}`;
  return breakIntoRows(value, Math.max(8, width - LABEL_COLUMNS - 1)).map((row, index) => {
    const shown = style === undefined ? row : colors[style](row);
    return index === 0 ? `${head}${shown}` : `${' '.repeat(LABEL_COLUMNS)}${shown}`;
  });
}

/** What the call acts on, resolved: an approval is valid for nothing else. */
function targetLines({ target }: Approval, look: RenderApprovalOptions): string[] {
  if (target === undefined) return [];
  const { kind, path, sha256, isNew } = target;
  return [
    ...factLines(kind, `${escapeLine(path, MAX_PATH_CHARS)}${isNew === true ? ' (new)' : ''}`, look, 'bold'),
    ...(sha256 === undefined ? [] : factLines('sha256', escapeLine(sha256, MAX_NAME_CHARS), look)),
  ];
}

/** The arguments, how much they are, and what tells them from others. */
function argumentLines({ id, arguments: given, argumentsDigest }: Approval, look: RenderApprovalOptions): string[] {
  const size = Buffer.byteLength(JSON.stringify(given) ?? 'null');
  const bytes = size === 1 ? 'one byte' : `${formatInteger(size)} bytes`;
  return [
    ...factLines('arguments', `${bytes}, digest ${escapeLine(argumentsDigest, MAX_NAME_CHARS)}`, look),
    ...excerptLines(argumentsExcerpt(given, look), look, 'all of them', id),
  ];
}

function argumentsExcerpt(given: Approval['arguments'], { full }: Pick<RenderApprovalOptions, 'full'>): Excerpt {
  const { head, tail, ...sizes } = excerptOf(
    JSON.stringify(given) ?? 'null',
    full === true ? Number.POSITIVE_INFINITY : MAX_ARGUMENTS_CHARS,
  );
  return { head: escapeLine(head), tail: escapeLine(tail), ...sizes };
}

/** The description. One that was cut when it was recorded is not cut once more. */
function descriptionExcerpt(description: string, { full }: Pick<RenderApprovalOptions, 'full'>): Excerpt {
  const most = full === true ? Number.POSITIVE_INFINITY : MAX_DESCRIPTION_CHARS;
  const recorded = splitAtOmission(description);
  const isWhole = recorded !== undefined && recorded.head.length + recorded.tail.length <= most;
  const { head, tail, ...sizes } = isWhole ? recorded : excerptOf(description.replaceAll('\r\n', '\n'), most);
  return { head: escapeMultiline(head), tail: escapeMultiline(tail), ...sizes };
}

/** Head and tail behind a bar, and between them, in a line of ours, how much is left out and where all of it is. */
function excerptLines(
  { head, tail, hiddenChars, totalChars }: Excerpt,
  look: RenderApprovalOptions,
  what: string,
  id: string,
): string[] {
  const { colors, width } = look;
  const shape = { colors, width, diff: isUnifiedDiff(`${head}\n${tail}`) };
  if (hiddenChars === 0) return renderBlock(head, shape);
  const note = `… ${formatInteger(hiddenChars)} of ${formatInteger(totalChars)} characters are hidden here … (${what}: rondo approvals --full ${escapeLine(id, MAX_NAME_CHARS)})`;
  return [
    ...renderBlock(head, shape),
    ...factLines('hidden', note, look, 'yellow'),
    // guard: tail-of-command-shown
    ...renderBlock(tail, shape),
  ];
}
