/**
 * An approval before the eyes of who is to answer it: which tool, by which way, with which arguments. All that a model
 * or a tool had a say in is escaped, bounded and behind a bar, so nothing of it can look like a question of ours. What is left out
 * is left out of the middle, and a line of ours, without a bar, states exactly how much.
 */
import { type Excerpt, excerptOf, splitAtMark } from '../../base/excerpt.js';
import type { Approval } from '../../protocol/approval.js';
import { broken, exact, type Paint, type Style } from './paint.js';
import { block, inLine, isDiff, safe } from './untrusted.js';

export interface CardLook {
  readonly colors: Paint;
  readonly width: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** True if nothing is left out. */
  readonly full?: boolean;
}

/** The most characters of the arguments, of the description, of a name, and of a path. */
const ARGUMENTS = 2000;
const DESCRIPTION = 8000;
const NAME = 100;
const PATH = 1000;

export function isExpired({ expiresAt }: Approval, now: number): boolean {
  return now > Date.parse(expiresAt);
}

/** The loops from the root to the tool, as one text. */
export function pathOf({ path }: Approval): string {
  return path.map((loop) => inLine(loop, NAME)).join(' › ');
}

/** The lines of an approval. */
export function cardOf(approval: Approval, look: CardLook): string[] {
  const { now } = look;
  const { id, tool, principal, approvers, description, requestedAt, expiresAt } = approval;
  const expired = isExpired(approval, now);
  return [
    ...factLines('', `${inLine(id, NAME)}${expired ? ' (expired)' : ''}`, look, expired ? 'red' : undefined),
    ...factLines('tool', inLine(tool, NAME), look, 'bold'),
    ...factLines('path', pathOf(approval), look),
    ...(principal === undefined ? [] : factLines('for', inLine(principal, NAME), look)),
    ...(approvers === undefined
      ? []
      : factLines('only by', approvers.map((who) => inLine(who, NAME)).join(', '), look)),
    ...factLines('asked', `${requestedAt}, ${expired ? 'expired' : 'expires'} ${expiresAt}`, look),
    ...targetLines(approval, look),
    ...argumentLines(approval, look),
    '  description',
    ...excerptLines(describedOf(description, look), look, 'the arguments are whole', id),
  ];
}

/** True if the card of this approval leaves something out that could be shown. */
export function isCut({ arguments: given, description }: Approval): boolean {
  const look = { full: false };
  return argumentsOf(given, look).hidden > 0 || describedOf(description, look).hidden > 0;
}

const LABEL = 12;

/** A fact with its label, in as many rows as it needs: what the terminal would break by itself might pass for ours. */
function factLines(label: string, value: string, { colors, width }: CardLook, style?: Style): string[] {
  const head = label === '' ? `${colors.yellow('?')} ${colors.bold('Approval')} ` : `  ${label.padEnd(LABEL - 2)}`;
  return broken(value, Math.max(8, width - LABEL - 1)).map((row, index) => {
    const shown = style === undefined ? row : colors[style](row);
    return index === 0 ? `${head}${shown}` : `${' '.repeat(LABEL)}${shown}`;
  });
}

/** What the call acts on, resolved: an approval is valid for nothing else. */
function targetLines({ target }: Approval, look: CardLook): string[] {
  if (target === undefined) return [];
  const { kind, path, sha256, isNew } = target;
  return [
    ...factLines(kind, `${inLine(path, PATH)}${isNew === true ? ' (new)' : ''}`, look, 'bold'),
    ...(sha256 === undefined ? [] : factLines('sha256', inLine(sha256, NAME), look)),
  ];
}

/** The arguments, how much they are, and what tells them from others. */
function argumentLines({ id, arguments: given, argumentsDigest }: Approval, look: CardLook): string[] {
  const size = Buffer.byteLength(JSON.stringify(given) ?? 'null');
  const bytes = size === 1 ? 'one byte' : `${exact(size)} bytes`;
  return [
    ...factLines('arguments', `${bytes}, digest ${inLine(argumentsDigest, NAME)}`, look),
    ...excerptLines(argumentsOf(given, look), look, 'all of them', id),
  ];
}

function argumentsOf(given: Approval['arguments'], { full }: Pick<CardLook, 'full'>): Excerpt {
  const { head, tail, ...sizes } = excerptOf(
    JSON.stringify(given) ?? 'null',
    full === true ? Number.POSITIVE_INFINITY : ARGUMENTS,
  );
  return { head: inLine(head), tail: inLine(tail), ...sizes };
}

/** The description. One that was cut when it was recorded is not cut once more. */
function describedOf(description: string, { full }: Pick<CardLook, 'full'>): Excerpt {
  const most = full === true ? Number.POSITIVE_INFINITY : DESCRIPTION;
  const recorded = splitAtMark(description);
  const isWhole = recorded !== undefined && recorded.head.length + recorded.tail.length <= most;
  const { head, tail, ...sizes } = isWhole ? recorded : excerptOf(description.replaceAll('\r\n', '\n'), most);
  return { head: safe(head), tail: safe(tail), ...sizes };
}

/** Head and tail behind a bar, and between them, in a line of ours, how much is left out and where all of it is. */
function excerptLines({ head, tail, hidden, total }: Excerpt, look: CardLook, what: string, id: string): string[] {
  const { colors, width } = look;
  const shape = { colors, width, diff: isDiff(`${head}\n${tail}`) };
  if (hidden === 0) return block(head, shape);
  const note = `… ${exact(hidden)} of ${exact(total)} characters are hidden here … (${what}: rondo approvals --full ${inLine(id, NAME)})`;
  return [
    ...block(head, shape),
    ...factLines('hidden', note, look, 'yellow'),
    // guard: tail-of-command-shown
    ...block(tail, shape),
  ];
}
