// Sums vitest JSON reports into the line that CI reads. Each argument is `name=exit code=report`. A lane that fails
// without a failing test counts as one failure, so that a lint error or a crashed runner is never reported as
// "0 failed".

import { existsSync, readFileSync } from 'node:fs';

/** @param {string} file */
function readCounts(file) {
  if (!existsSync(file)) return { passed: 0, failed: 0, skipped: 0 };
  const report = JSON.parse(readFileSync(file, 'utf8'));
  /** @type {{ status: string, assertionResults: { status: string }[] }[]} */
  const files = report.testResults;
  const failedFiles = files.filter(({ status }) => status === 'failed');
  // A file that cannot be loaded fails without a failed test.
  const unloaded = failedFiles.filter(({ assertionResults }) => !assertionResults.some((t) => t.status === 'failed'));
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloaded.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

const total = { passed: 0, failed: 0, skipped: 0 };
for (const lane of process.argv.slice(2)) {
  const [name, code, file = ''] = lane.split('=');
  const counts = readCounts(file);
  if (code !== '0' && counts.failed === 0) {
    console.log(`failed outside the tests: ${name}`);
    counts.failed = 1;
  }
  total.passed += counts.passed;
  total.failed += counts.failed;
  total.skipped += counts.skipped;
}

console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 ? 0 : 1);
