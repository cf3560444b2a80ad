/**
 * Says what will happen, tells the story in a folder of its own, and ends with code 1 and a
 * reason if anything in it does not hold. With --keep the folder stays.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bold, dim, heading, line, red } from './print.mjs';

const patience = 240_000;
const keep = process.argv[2] === '--keep';

/** @param {string} why @param {number} [code] @returns {never} */
function giveUp(why, code = 1) {
  console.error(`\n${red('The demo failed.')} ${why.trim()}`);
  process.exit(code);
}

/** @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error);
  const absent = 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
  return absent ? 'Rondo is not built yet. Run "npm ci" and then "npm run build".' : error.message;
}

if (process.argv.length > (keep ? 3 : 2)) giveUp('It takes no argument but --keep.', 2);

const folder = mkdtempSync(join(tmpdir(), 'rondo-demo-'));
process.once('exit', () => {
  if (keep) console.log(`\nThe journal and the sink's notes are kept in ${folder}`);
  else rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});
process.once('SIGINT', () => process.exit(130));
setTimeout(() => giveUp(`It did not end within ${patience / 1000} seconds.`), patience).unref();

console.log(bold('Rondo: kill it in the middle, nothing is done twice'));
line('A process takes an order and gets a SIGKILL while bank and printer are at work for it.');
line('A second process finishes the order from the journal of the first.');
line('A sink, outside of both, writes down what really happened.');

try {
  const { tellStory } = await import('./story.mjs');
  const faults = await tellStory(folder);
  if (faults.length > 0) giveUp(`What does not hold:\n  ${faults.join('\n  ')}`);
} catch (error) {
  giveUp(reasonOf(error));
}

heading('Next');
line(`${'order.mjs'.padEnd(18)}${dim('the code that was killed, in examples/01-kill-and-resume')}`);
line(`${'examples/'.padEnd(18)}${dim('more of them, by number')}`);
line(`${'ARCHITECTURE.md'.padEnd(18)}${dim('why it works')}`);
