/**
 * An approval before the eyes of who is to answer it: which tool, by which way, with which arguments. All that a model
 * or a tool had a say in is escaped, bounded and behind a bar, so nothing of it can look like a question of ours.
 */
import type { Approval } from '../../protocol/approval.js';
import { broken, count, type Paint, type Style } from './paint.js';
import { block, inLine, jsonLine, safe } from './untrusted.js';

export interface CardLook {
  readonly colors: Paint;
  readonly width: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
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
  const { colors, width, now } = look;
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
    ...block(safe(description, DESCRIPTION), { colors, width }),
  ];
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
function argumentLines({ arguments: given, argumentsDigest }: Approval, look: CardLook): string[] {
  const { colors, width } = look;
  const whole = JSON.stringify(given) ?? 'null';
  const size = Buffer.byteLength(whole);
  const bytes = size === 1 ? 'one byte' : `${count(size)} bytes`;
  const cut = whole.length > ARGUMENTS;
  return [
    ...factLines('arguments', `${bytes}, digest ${inLine(argumentsDigest, NAME)}`, look),
    ...block(jsonLine(given, ARGUMENTS), { colors, width }),
    ...(cut
      ? [colors.yellow(`  Only the first ${count(ARGUMENTS)} characters are shown; all: rondo approvals --json`)]
      : []),
  ];
}
