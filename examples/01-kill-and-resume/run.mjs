/**
 * Runs the demo in a temporary directory. Exits with code 1 and the reasons if a check fails. The option --keep keeps
 * the directory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bold, dim, heading, line, red } from './print.mjs';

const timeoutMs = 240_000;
const keepsFiles = process.argv[2] === '--keep';

/** Prints the reason and ends the process. @param {string} reason @param {number} [code] @returns {never} */
function fail(reason, code = 1) {
  console.error(`\n${red('The demo failed.')} ${reason.trim()}`);
  process.exit(code);
}

/** @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error);
  const isMissingModule = 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
  return isMissingModule ? 'Rondo is not built yet. Run "npm ci" and then "npm run build".' : error.message;
}

if (process.argv.length > (keepsFiles ? 3 : 2)) fail('The only option is --keep.', 2);

const folder = mkdtempSync(join(tmpdir(), 'rondo-demo-'));
process.once('exit', () => {
  if (keepsFiles) console.log(`\nThe journal and the reports of the sink are in ${folder}`);
  else rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});
process.once('SIGINT', () => process.exit(130));
setTimeout(() => fail(`It did not end within ${timeoutMs / 1000} seconds.`), timeoutMs).unref();

console.log(bold('Rondo: kill a process in the middle, nothing is done twice'));
line('Process 1 fulfils an order and is killed with SIGKILL while a bank and a printer work for it.');
line('Process 2 finishes the order from the journal of process 1.');
line('The sink, a third process, records every request and every effect.');

try {
  const { runScenario } = await import('./scenario.mjs');
  const problems = await runScenario(folder);
  if (problems.length > 0) fail(`Failed checks:\n  ${problems.join('\n  ')}`);
} catch (error) {
  fail(reasonOf(error));
}

heading('Next');
line(`${'order.mjs'.padEnd(18)}${dim('the code that was killed, in examples/01-kill-and-resume')}`);
line(`${'examples/'.padEnd(18)}${dim('more examples, by number')}`);
line(`${'ARCHITECTURE.md'.padEnd(18)}${dim('why it works')}`);
