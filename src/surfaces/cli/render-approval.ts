/**
 * Renders the card of an approval: tool, call path and arguments. Text that a model or a tool may have influenced is
 * escaped, limited and marked with a quote bar, so that it cannot imitate a prompt of Rondo. Long text is shortened in
 * the middle; a line without a bar states the exact number of hidden characters.
 */
import { type Excerpt, excerptOf, splitAtOmission } from '../../base/escape-text.js';
import type { Approval } from '../../protocol/approval.js';
import type { Json } from '../../protocol/json.js';
import { breakIntoRows, type Colors, formatInteger, type TextStyle } from './terminal-text.js';
import { escapeLine, escapeMultiline, isUnifiedDiff, renderBlock } from './untrusted-text.js';

/** Options of `renderApproval`. */
interface RenderApprovalOptions {
  readonly colors: Colors;
  readonly width: number;
  /** The current time in milliseconds since the epoch. */
  readonly now: number;
  /**
   * True if nothing is shortened.
   * @default false
   */
  readonly full?: boolean;
}

const MAX_ARGUMENTS_CHARS = 2000;
const MAX_DESCRIPTION_CHARS = 8000;
const MAX_NAME_CHARS = 100;
const MAX_PATH_CHARS = 1000;

/** Returns true if an approval has expired. */
export function isExpired({ expiresAt }: Approval, now: number): boolean {
  return now > Date.parse(expiresAt);
}

/** Returns the loops from the root to the tool in one line. */
export function loopPathOf({ path }: Approval): string {
  return path.map((loop) => escapeLine(loop, MAX_NAME_CHARS)).join(' › ');
}

/** Returns the lines of the card. */
export function renderApproval(approval: Approval, options: RenderApprovalOptions): string[] {
  const { now } = options;
  const { id, tool, principal, approvers, description, requestedAt, expiresAt } = approval;
  const expired = isExpired(approval, now);
  return [
    ...factLines(
      '',
      `${escapeLine(id, MAX_NAME_CHARS)}${expired ? ' (expired)' : ''}`,
      options,
      expired ? 'red' : undefined,
    ),
    ...factLines('tool', escapeLine(tool, MAX_NAME_CHARS), options, 'bold'),
    ...factLines('path', loopPathOf(approval), options),
    ...(principal === undefined ? [] : factLines('for', escapeLine(principal, MAX_NAME_CHARS), options)),
    ...(approvers === undefined
      ? []
      : factLines('only by', approvers.map((who) => escapeLine(who, MAX_NAME_CHARS)).join(', '), options)),
    ...factLines('asked', `${requestedAt}, ${expired ? 'expired' : 'expires'} ${expiresAt}`, options),
    ...targetLines(approval, options),
    ...fallbackLines(approval, options),
    ...argumentLines(approval, options),
    '  description',
    ...excerptLines(descriptionExcerpt(description, options), options, 'the arguments are complete', id),
  ];
}

/** Returns true if the card of this approval is shortened. */
export function isAbbreviated({ arguments: args, fallback = [], description }: Approval): boolean {
  const options = { full: false };
  const excerpts = [args, fallback as unknown as Json].map((value) => jsonExcerpt(value, options));
  return [...excerpts, descriptionExcerpt(description, options)].some(({ hiddenChars }) => hiddenChars > 0);
}

const LABEL_COLUMNS = 12;

/**
 * Returns a labelled value in as many rows as it needs. A line that the terminal wraps could imitate a line of Rondo.
 */
function factLines(
  label: string,
  value: string,
  { colors, width }: RenderApprovalOptions,
  style?: TextStyle,
): string[] {
  const head =
    label === '' ? `${colors.yellow('?')} ${colors.bold('Approval')} ` : `  ${label.padEnd(LABEL_COLUMNS - 2)}`;
  return breakIntoRows(value, Math.max(8, width - LABEL_COLUMNS - 1)).map((row, index) => {
    const styledRow = style === undefined ? row : colors[style](row);
    return index === 0 ? `${head}${styledRow}` : `${' '.repeat(LABEL_COLUMNS)}${styledRow}`;
  });
}

/** Returns the resolved target of the call. The approval is valid for this target only. */
function targetLines({ target }: Approval, options: RenderApprovalOptions): string[] {
  if (target === undefined) return [];
  const { kind, path, sha256, isNew } = target;
  return [
    ...factLines(kind, `${escapeLine(path, MAX_PATH_CHARS)}${isNew === true ? ' (new)' : ''}`, options, 'bold'),
    ...(sha256 === undefined ? [] : factLines('sha256', escapeLine(sha256, MAX_NAME_CHARS), options)),
  ];
}

/** Returns the models that get the same request if the first one fails, with their options. */
function fallbackLines({ id, fallback }: Approval, options: RenderApprovalOptions): string[] {
  if (fallback === undefined) return [];
  const models = fallback.map((ref) => escapeLine(ref.id, MAX_NAME_CHARS)).join(', ');
  const excerpt = jsonExcerpt(fallback as unknown as Json, options);
  return [...factLines('fallback', models, options, 'bold'), ...excerptLines(excerpt, options, 'show all', id)];
}

/** Returns the arguments with their size and digest. */
function argumentLines({ id, arguments: args, argumentsDigest }: Approval, options: RenderApprovalOptions): string[] {
  const size = Buffer.byteLength(JSON.stringify(args) ?? 'null');
  const bytes = size === 1 ? 'one byte' : `${formatInteger(size)} bytes`;
  return [
    ...factLines('arguments', `${bytes}, digest ${escapeLine(argumentsDigest, MAX_NAME_CHARS)}`, options),
    ...excerptLines(jsonExcerpt(args, options), options, 'show all', id),
  ];
}

function jsonExcerpt(value: Json, { full }: Pick<RenderApprovalOptions, 'full'>): Excerpt {
  const { head, tail, ...sizes } = excerptOf(
    JSON.stringify(value) ?? 'null',
    full === true ? Number.POSITIVE_INFINITY : MAX_ARGUMENTS_CHARS,
  );
  return { head: escapeLine(head), tail: escapeLine(tail), ...sizes };
}

/**
 * Returns the excerpt of a description. A description that was shortened when it was recorded is not shortened again.
 */
function descriptionExcerpt(description: string, { full }: Pick<RenderApprovalOptions, 'full'>): Excerpt {
  const maxChars = full === true ? Number.POSITIVE_INFINITY : MAX_DESCRIPTION_CHARS;
  const recorded = splitAtOmission(description);
  const fits = recorded !== undefined && recorded.head.length + recorded.tail.length <= maxChars;
  const { head, tail, ...sizes } = fits ? recorded : excerptOf(description.replaceAll('\r\n', '\n'), maxChars);
  return { head: escapeMultiline(head), tail: escapeMultiline(tail), ...sizes };
}

/** Returns head and tail with a quote bar. A line without a bar between them counts the hidden characters. */
function excerptLines(
  { head, tail, hiddenChars, totalChars }: Excerpt,
  options: RenderApprovalOptions,
  hint: string,
  id: string,
): string[] {
  const { colors, width } = options;
  const blockOptions = { colors, width, diff: isUnifiedDiff(`${head}\n${tail}`) };
  if (hiddenChars === 0) return renderBlock(head, blockOptions);
  const note = `… ${formatInteger(hiddenChars)} of ${formatInteger(totalChars)} characters are hidden here … (${hint}: rondo approvals --full ${escapeLine(id, MAX_NAME_CHARS)})`;
  return [
    ...renderBlock(head, blockOptions),
    ...factLines('hidden', note, options, 'yellow'),
    // guard: tail-of-command-shown
    ...renderBlock(tail, blockOptions),
  ];
}
