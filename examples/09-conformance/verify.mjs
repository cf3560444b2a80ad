// A runtime that is another process, judged through a driver: once in full, and once with a driver that is none.

import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tell } from '../run-example.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const driver = relative(root, process.argv[2] ?? `${here}driver.mjs`);

await tell('Conformance: any runtime, held against LSEM', import.meta.url, async ({ rondo, holds }) => {
  const judged = await rondo('conformance', '--driver', driver, '--json');
  const { runtime, checks, summary } = JSON.parse(judged.stdout);
  /** @param {string} status */
  const ids = (status) =>
    checks.flatMap((/** @type {{ id: string, status: string }} */ row) => (row.status === status ? [row.id] : []));
  holds('the report is on the runtime of the driver', runtime === 'tiny');
  holds('it is conformant: every MUST holds, and the exit code is 0', summary.conformant && judged.code === 0);
  holds('what it falls short of is a SHOULD: its schemas are not Draft 2020-12', ids('fail').join() === 'DEF-08');
  holds('what its driver leaves out is not applicable', ids('not-applicable').includes('LIF-13'));

  const few = ['conformance', '--driver', driver, '--only'];
  const one = await rondo(...few, 'DEF-08');
  holds('one check is judged by itself, and its failure ends with exit code 3', one.code === 3);

  const none = await rondo('conformance', '--driver', relative(root, `${here}../run-example.mjs`));
  holds('what exports no driver is refused, with exit code 64', none.code === 64);
  holds('and the message says what to export', none.stderr.includes('export default driver'));
});
