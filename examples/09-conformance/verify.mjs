// Checks a runtime in another process through a driver, then runs a single check and a file that exports no driver.

import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runExample } from '../run-example.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const driver = relative(root, process.argv[2] ?? `${here}driver.mjs`);

await runExample('Conformance: check any runtime against LSEM', import.meta.url, async ({ rondo, check }) => {
  const all = await rondo('conformance', '--driver', driver, '--json');
  const { runtime, checks, summary } = JSON.parse(all.stdout);
  /** @param {string} status */
  const ids = (status) =>
    checks.flatMap((/** @type {{ id: string, status: string }} */ row) => (row.status === status ? [row.id] : []));
  check('the report names the runtime of the driver', runtime === 'tiny');
  check('it is conformant: every MUST passes, and the exit code is 0', summary.conformant && all.code === 0);
  check('the only failure is a SHOULD: its schemas are not Draft 2020-12', ids('fail').join() === 'DEF-08');
  check('a check of a feature that the driver leaves out is not applicable', ids('not-applicable').includes('LIF-13'));

  const onlyArgs = ['conformance', '--driver', driver, '--only'];
  const single = await rondo(...onlyArgs, 'DEF-08');
  check('a single check can be run, and its failure ends with exit code 3', single.code === 3);

  const noDriver = await rondo('conformance', '--driver', relative(root, `${here}../run-example.mjs`));
  check('a file that exports no driver is refused, with exit code 64', noDriver.code === 64);
  check('the message explains what to export', noDriver.stderr.includes('export default driver'));
});
