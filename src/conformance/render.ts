/**
 * Renders a conformance report as text: grouped by LSEM's five points, one line for each check and one for its note.
 */
import { type CheckResult, type CheckStatus, type ConformanceReport, conformanceVerdict } from './report.js';

const STATUS_MARKS: { readonly [S in CheckStatus]: { readonly sign: string; readonly colour: number } } = {
  pass: { sign: '✓', colour: 32 },
  fail: { sign: '✗', colour: 31 },
  'not-applicable': { sign: '–', colour: 33 },
  'known-failure': { sign: '!', colour: 33 },
};

/** The prefix of check ids and the heading of each of the five points, in order. */
const CHECK_GROUPS: readonly (readonly [family: string, heading: string])[] = [
  ['DEF', 'Definitions'],
  ['VAL', 'Validation'],
  ['LIF', 'Lifecycle'],
  ['TRC', 'Trace'],
  ['CMP', 'Composition'],
];

/**
 * Renders a conformance report as text, with ANSI colours if `color` is true. The notes of passed checks are left out.
 *
 * @example console.log(renderConformance(await checkConformance(driver), { color: process.stdout.isTTY }));
 */
export function renderConformance(report: ConformanceReport, { color }: { readonly color: boolean }): string {
  const paint = (status: CheckStatus, text: string): string =>
    color ? `\u001b[${STATUS_MARKS[status].colour}m${text}\u001b[0m` : text;
  const line = (check: CheckResult): string[] => {
    const { id, section, level, status, title, note } = check;
    const row = `  ${paint(status, STATUS_MARKS[status].sign)} ${id}  ${`§${section}`.padEnd(5)} ${level.padEnd(7)} ${title}`;
    return note === undefined || status === 'pass' ? [row] : [row, `      ${paint(status, note)}`];
  };
  const familyOf = (id: string): string => id.split('-')[0] ?? id;
  const lines = [`${report.spec} conformance of ${report.runtime}`];
  for (const [index, [family, heading]] of CHECK_GROUPS.entries()) {
    const point = report.points[index];
    const status = point?.status ?? 'not-applicable';
    lines.push('', `${index + 1}. ${heading}: ${point?.text ?? ''} ${paint(status, `[${status}]`)}`);
    lines.push(...report.checks.filter(({ id }) => familyOf(id) === family).flatMap(line));
  }
  const rest = report.checks.filter(({ id }) => CHECK_GROUPS.every(([family]) => family !== familyOf(id)));
  lines.push('', 'The suite itself', ...rest.flatMap(line), '', summaryOf(report, paint));
  return `${lines.join('\n')}\n`;
}

function summaryOf(report: ConformanceReport, paint: (status: CheckStatus, text: string) => string): string {
  const { total, passed, failed, notApplicable, knownFailures } = report.summary;
  const knownCount = knownFailures === 0 ? '' : `${knownFailures} known to fail, `;
  const counts = `${passed} passed, ${failed} failed, ${knownCount}${notApplicable} not applicable, of ${total}`;
  const { text, good } = conformanceVerdict(report);
  return `${counts}: ${paint(good ? 'pass' : 'fail', text)}`;
}
