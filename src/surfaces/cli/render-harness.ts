/** Renders the report of a harness: a line for each case, what differs, and a summary. */
import type { Difference } from '../harness/differences.js';
import type { CaseReport, HarnessReport } from '../harness/run-harness.js';
import { type Colors, formatDuration, sanitizeText } from './terminal-text.js';
import { escapeJsonLine } from './untrusted-text.js';

const MAX_VALUE_CHARS = 300;

/** Returns the lines of a case. */
export function renderCase({ name, ok, status, reason, durationMs, differences }: CaseReport, colors: Colors): string {
  const mark = ok ? colors.green('ok    ') : colors.red('FAILED');
  const line = `${mark}  ${sanitizeText(name)}  ${colors.dim(formatDuration(durationMs))}`;
  const ending = ok || reason === undefined ? [] : [`        ${status}: ${sanitizeText(reason)}`];
  return `${[line, ...ending, ...differences.flatMap(linesOfDifference)].join('\n')}\n`;
}

/** Returns the line that ends the report. */
export function renderSummary({ ok, cases }: HarnessReport, colors: Colors): string {
  const total = `${cases.length} ${cases.length === 1 ? 'case' : 'cases'}`;
  const failed = cases.filter((item) => !item.ok).length;
  return ok ? `${colors.green(`${total}: all ok`)}\n` : `${colors.red(`${total}: ${failed} failed`)}\n`;
}

function linesOfDifference({ path, expected, actual }: Difference): readonly string[] {
  return [
    `        ${sanitizeText(path)}`,
    `          expected  ${valueText(expected)}`,
    `          actual    ${valueText(actual)}`,
  ];
}

function valueText(value: Difference['expected']): string {
  return value === undefined ? 'nothing' : escapeJsonLine(value, MAX_VALUE_CHARS);
}
