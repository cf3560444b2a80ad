/** How two turns differ, as text: the calls in the order of the tree, then the places of their outputs. */
import type { CallDiff, Change, OutputDiff, TurnDiff } from '../../views/diff.js';
import { count, drawn, duration, paint, plain, type Span, within, wrap } from './paint.js';

export interface DiffOptions {
  readonly color: boolean;
  readonly width: number;
}

const LEVELS = 12;
const NAME = { max: 64 };

const WORDS: Readonly<Record<Change['what'], string>> = {
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
export function renderDiff(diff: TurnDiff, { color, width }: DiffOptions): string {
  const { calls, output } = diff;
  const lines = calls.flatMap(callLines);
  if (output !== undefined && output.differs.length > 0) {
    lines.push([['output', 'bold']], ...output.differs.map(outputLine));
    if (output.more) lines.push([['  … and more', 'dim']]);
  }
  lines.push(...wrap(summaryOf(diff), width, 5).map((text): Span[] => [[text, 'dim']]));
  const colors = paint(color);
  return lines.map((line) => drawn(within(line, width), colors)).join('\n');
}

function callLines({ loopId, path, depth, only, calls, changes }: CallDiff): (readonly Span[])[] {
  const indent = '  '.repeat(Math.min(LEVELS, depth));
  const mark: Span = only === undefined ? ['~', 'yellow'] : only === 'a' ? ['-', 'red'] : ['+', 'green'];
  const more = calls === 1 ? '' : `, ${count(calls)} calls`;
  const told = only === undefined ? '' : `  only in the ${only === 'a' ? 'first' : 'second'} turn${more}`;
  const place = path === '' ? '' : ` ${plain(path, NAME)}`;
  const head: Span[] = [[indent], mark, [' '], [plain(loopId, NAME) || '(unknown)', 'bold'], [place, 'dim'], [told]];
  const room = changes.reduce((widest, { what }) => Math.max(widest, WORDS[what].length), 0);
  return [
    head,
    ...changes.map((change): Span[] => [
      [`${indent}    ${WORDS[change.what].padEnd(room)}  `, 'dim'],
      ...sides(shown(change.what, change.a), shown(change.what, change.b)),
    ]),
  ];
}

function shown(what: Change['what'], value: string | number): string {
  if (typeof value === 'string') return value;
  return what === 'durationMs' ? duration(value) : count(value);
}

function outputLine({ path, a, b }: OutputDiff): Span[] {
  return [[`  ${plain(path, { max: 200 }) || '(all of it)'}  `], ...sides(a ?? '', b ?? '')];
}

function sides(a: string, b: string): Span[] {
  return [
    [plain(a) || '(none)', 'red'],
    [' → ', 'dim'],
    [plain(b) || '(none)', 'green'],
  ];
}

function summaryOf({ same, shared, calls, output }: TurnDiff): string {
  const changed = calls.filter(({ only }) => only === undefined).length;
  const sum = (side: 'a' | 'b'): number =>
    calls.reduce((total, { only, calls: told }) => total + (only === side ? told : 0), 0);
  const [first, second] = [sum('a'), sum('b')];
  const parts = [
    `${count(shared)} ${shared === 1 ? 'call' : 'calls'} in both`,
    changed > 0 ? `${count(changed)} ${changed === 1 ? 'differs' : 'differ'}` : '',
    first > 0 ? `${count(first)} only in the first` : '',
    second > 0 ? `${count(second)} only in the second` : '',
    output === undefined ? '' : output.differs.length === 0 ? 'same output' : 'other output',
    same ? (changed > 0 ? 'nothing differs but time' : 'no difference') : '',
  ];
  return parts.filter((part) => part !== '').join(' · ');
}
