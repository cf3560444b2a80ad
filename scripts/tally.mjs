// Sums vitest JSON reports into the line that CI reads. Each argument is `name=exit code=report`. A lane that fails
// without a failing test counts as one failure, so that a lint error or a crashed runner is never reported as
// "0 failed". Each failure is named before the sum, because what a log keeps of a long run is often its end.

import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

const SHOWN_LINES = 12;

/**
 * @typedef {{ status: string, fullName: string, failureMessages?: string[] }} TestResult
 * @typedef {{ name: string, status: string, message: string, assertionResults: TestResult[] }} FileResult
 */

/** @param {string} text */
const shorten = (text) =>
  text
    .split('\n')
    .slice(0, SHOWN_LINES)
    .map((line) => `    ${line}`)
    .join('\n');

/**
 * What failed in one file, one text per failure. A file that cannot be loaded fails without a failed test.
 * @param {FileResult} file
 */
function failuresOf({ name, status, message, assertionResults }) {
  const file = relative(process.cwd(), name);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (status === 'failed' && failed.length === 0) return [`${file}\n${shorten(message)}`];
  return failed.map((test) => `${file}: ${test.fullName}\n${shorten((test.failureMessages ?? []).join('\n'))}`);
}

/** @param {string} file */
function readLane(file) {
  if (!existsSync(file)) return { passed: 0, failures: [], skipped: 0 };
  const report = JSON.parse(readFileSync(file, 'utf8'));
  return {
    passed: report.numPassedTests,
    failures: /** @type {FileResult[]} */ (report.testResults).flatMap(failuresOf),
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

const total = { passed: 0, failed: 0, skipped: 0 };
for (const argument of process.argv.slice(2)) {
  const [name, code, file = ''] = argument.split('=');
  const lane = readLane(file);
  const failures = code !== '0' && lane.failures.length === 0 ? ['outside the tests'] : lane.failures;
  for (const failure of failures) console.log(`failed in ${name}: ${failure}`);
  total.passed += lane.passed;
  total.failed += failures.length;
  total.skipped += lane.skipped;
}

console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 ? 0 : 1);
