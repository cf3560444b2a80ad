/** How two turns differ, as text: the calls in the order of the tree, then the places of their outputs. */
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

export interface RenderDiffOptions {
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

/** The differences of two turns, the first one's in red and the second one's in green. No line end at the end. */
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
  const more = calls === 1 ? '' : `, ${formatCount(calls)} calls`;
  const told = only === undefined ? '' : `  only in the ${only === 'a' ? 'first' : 'second'} turn${more}`;
  const place = path === '' ? '' : ` ${sanitizeText(path, NAME_OPTIONS)}`;
  const head: TextSpan[] = [
    [indent],
    mark,
    [' '],
    [sanitizeText(loopId, NAME_OPTIONS) || '(unknown)', 'bold'],
    [place, 'dim'],
    [told],
  ];
  const room = changes.reduce((widest, { what }) => Math.max(widest, FIELD_LABELS[what].length), 0);
  return [
    head,
    ...changes.map((change): TextSpan[] => [
      [`${indent}    ${FIELD_LABELS[change.what].padEnd(room)}  `, 'dim'],
      ...changeSpans(formatChange(change.what, change.a), formatChange(change.what, change.b)),
    ]),
  ];
}

function formatChange(what: CallChange['what'], value: string | number): string {
  if (typeof value === 'string') return value;
  return what === 'durationMs' ? formatDuration(value) : formatCount(value);
}

function outputLine({ path, a, b }: OutputDiff): TextSpan[] {
  return [[`  ${sanitizeText(path, { max: 200 }) || '(all of it)'}  `], ...changeSpans(a ?? '', b ?? '')];
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
    calls.reduce((total, { only, calls: told }) => total + (only === side ? told : 0), 0);
  const [first, second] = [sum('a'), sum('b')];
  const parts = [
    `${formatCount(shared)} ${shared === 1 ? 'call' : 'calls'} in both`,
    changed > 0 ? `${formatCount(changed)} ${changed === 1 ? 'differs' : 'differ'}` : '',
    first > 0 ? `${formatCount(first)} only in the first` : '',
    second > 0 ? `${formatCount(second)} only in the second` : '',
    output === undefined ? '' : output.differs.length === 0 ? 'same output' : 'other output',
    same ? (changed > 0 ? 'nothing differs but time' : 'no difference') : '',
  ];
  return parts.filter((part) => part !== '').join(' · ');
}
