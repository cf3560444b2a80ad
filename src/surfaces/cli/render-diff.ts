/** Renders the differences of two turns: the calls in tree order, then the differences of the outputs. */
import { shortVersion } from '../../base/short-version.js';
import type { CallChange, CallDiff, OutputDiff, TurnDiff } from '../../views/turn-diff.js';
import {
  createColors,
  formatCount,
  formatDuration,
  renderSpans,
  sanitizeText,
  type TextSpan,
  truncateSpans,
  wrapWords,
} from './terminal-text.js';

/** Options of `renderDiff`. */
interface RenderDiffOptions {
  readonly color: boolean;
  readonly width: number;
}

const MAX_INDENT_LEVELS = 12;
const NAME_OPTIONS = { max: 64 };

const FIELD_LABELS: Readonly<Record<CallChange['what'], string>> = {
  loop: 'loop',
  version: 'version',
  status: 'status',
  error: 'error',
  model: 'model',
  inputTokens: 'tokens in',
  outputTokens: 'tokens out',
  durationMs: 'duration',
};

/** Renders a diff without a trailing newline. Values of the first turn are red, those of the second green. */
export function renderDiff(diff: TurnDiff, { color, width }: RenderDiffOptions): string {
  const { calls, output } = diff;
  const lines = calls.flatMap(callLines);
  if (output !== undefined && output.differs.length > 0) {
    lines.push([['output', 'bold']], ...output.differs.map(outputLine));
    if (output.more) lines.push([['  … and more', 'dim']]);
  }
  lines.push(...wrapWords(diffSummaryOf(diff), width, 5).map((text): TextSpan[] => [[text, 'dim']]));
  const colors = createColors(color);
  return lines.map((line) => renderSpans(truncateSpans(line, width), colors)).join('\n');
}

function callLines({ loopId, path, depth, only, calls, changes }: CallDiff): (readonly TextSpan[])[] {
  const indent = '  '.repeat(Math.min(MAX_INDENT_LEVELS, depth));
  const mark: TextSpan = only === undefined ? ['~', 'yellow'] : only === 'a' ? ['-', 'red'] : ['+', 'green'];
  const callCount = calls === 1 ? '' : `, ${formatCount(calls)} calls`;
  const sideNote = only === undefined ? '' : `  only in the ${only === 'a' ? 'first' : 'second'} turn${callCount}`;
  const location = path === '' ? '' : ` ${sanitizeText(path, NAME_OPTIONS)}`;
  const head: TextSpan[] = [
    [indent],
    mark,
    [' '],
    [sanitizeText(loopId, NAME_OPTIONS) || '(unknown)', 'bold'],
    [location, 'dim'],
    [sideNote],
  ];
  const labelWidth = changes.reduce((widest, { what }) => Math.max(widest, FIELD_LABELS[what].length), 0);
  return [
    head,
    ...changes.map((change): TextSpan[] => [
      [`${indent}    ${FIELD_LABELS[change.what].padEnd(labelWidth)}  `, 'dim'],
      ...changeSpans(formatChange(change.what, change.a), formatChange(change.what, change.b)),
    ]),
  ];
}

function formatChange(what: CallChange['what'], value: string | number): string {
  if (typeof value === 'string') return what === 'version' ? shortVersion(value) : value;
  return what === 'durationMs' ? formatDuration(value) : formatCount(value);
}

function outputLine({ path, a, b }: OutputDiff): TextSpan[] {
  return [[`  ${sanitizeText(path, { max: 200 }) || '(root)'}  `], ...changeSpans(a ?? '', b ?? '')];
}

function changeSpans(a: string, b: string): TextSpan[] {
  return [
    [sanitizeText(a) || '(none)', 'red'],
    [' → ', 'dim'],
    [sanitizeText(b) || '(none)', 'green'],
  ];
}

function diffSummaryOf({ same, shared, calls, output }: TurnDiff): string {
  const changed = calls.filter(({ only }) => only === undefined).length;
  const sum = (side: 'a' | 'b'): number =>
    calls.reduce((total, { only, calls: count }) => total + (only === side ? count : 0), 0);
  const [first, second] = [sum('a'), sum('b')];
  const parts = [
    `${formatCount(shared)} ${shared === 1 ? 'call' : 'calls'} in both`,
    changed > 0 ? `${formatCount(changed)} ${changed === 1 ? 'differs' : 'differ'}` : '',
    first > 0 ? `${formatCount(first)} only in the first` : '',
    second > 0 ? `${formatCount(second)} only in the second` : '',
    output === undefined ? '' : output.differs.length === 0 ? 'same output' : 'different output',
    same ? (changed > 0 ? 'only times differ' : 'no difference') : '',
  ];
  return parts.filter((part) => part !== '').join(' · ');
}
