// Runs loops in code in this process, then from the command line.

import { createRondo } from 'rondo';
import { scriptedProvider } from 'rondo/host';
import { runExample } from '../run-example.mjs';
import { triage } from './loops/triage.mjs';

const input = { message: 'Where is my parcel? I leave tomorrow.', from: 'Ada' };

await runExample('Typed code: defineLoop with zod', import.meta.url, async ({ rondo, loops, check }) => {
  const scripted = scriptedProvider();
  const runtime = await createRondo({ store: 'memory:', models: { scripted } });
  const result = await runtime.run(triage, input);
  // Only a result with the status `ok` has an output, which is typed by the schema: a misspelt member would not compile.
  const output = result.status === 'ok' ? result.output : undefined;
  console.log(`\n  rondo.run(triage, …)\n    ${result.status} ${JSON.stringify(output)}`);
  check('the library runs the loop', output?.team === 'dispatch');
  const recorded = result.trace.find(({ type }) => type === 'desk.triaged');
  check(
    'a recorded fact is an event in the trace',
    JSON.stringify(recorded?.payload) === '{"team":"dispatch","urgent":true}',
  );
  check('every scripted answer was used', scripted.unfinishedScripts().length === 0);
  const empty = await runtime.run('triage', { message: '' });
  const code = empty.status === 'error' ? empty.error.code : undefined;
  check('an empty message does not match the zod schema', code === 'INPUT_VALIDATION_FAILED');
  await runtime.close();

  const args = ['--loops', loops, '--trust', loops, '--session', 'desk'];
  const printed = await rondo('run', 'triage', ...args, '--input', JSON.stringify(input));
  check('the command line runs the same file', printed.code === 0 && JSON.parse(printed.stdout).team === 'dispatch');
  check('both outputs are equal', JSON.stringify(JSON.parse(printed.stdout)) === JSON.stringify(output));

  const tree = (await rondo('trace', 'desk')).stdout;
  check('the trace tree shows the log message of the body', tree.includes('dispatch must look at this today'));
  const replayed = await rondo('replay', 'desk', '--loops', loops, '--trust', loops);
  check('a replay takes the recorded steps', replayed.code === 0);
});
