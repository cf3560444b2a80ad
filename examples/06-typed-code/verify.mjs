// Loops in code, run by a host in this process, and then by the command line from the same file.

import { Host, memoryStore, Registry, scriptedProvider, systemClock, systemIds } from 'rondo';
import { tell } from '../run-example.mjs';
import { triage } from './loops/triage.mjs';

const input = { message: 'Where is my parcel? I leave tomorrow.', from: 'Ada' };

await tell('Typed code: defineLoop with zod', import.meta.url, async ({ rondo, loops, holds }) => {
  const scripted = scriptedProvider();
  const host = new Host({
    store: memoryStore(),
    clock: systemClock,
    ids: systemIds,
    registry: new Registry(),
    providers: new Map([[scripted.id, scripted]]),
  });
  const result = await host.run({ loop: triage, input });
  console.log(`\n  host.run({ loop: triage, … })\n    ${result.status} ${JSON.stringify(result.output)}`);
  // The type of the output is the schema's: a misspelt member would not compile.
  holds('the host runs it', result.status === 'ok' && result.output?.team === 'dispatch');
  const said = result.trace.find(({ type }) => type === 'desk.triaged');
  holds(
    'a fact of its own is an event of the trace',
    JSON.stringify(said?.payload) === '{"team":"dispatch","urgent":true}',
  );
  holds('the script was used up', scripted.leftovers().length === 0);
  const empty = await host.run({ loop: triage, input: { message: '' } });
  holds('zod judges the input, and an empty message starts nothing', empty.error?.code === 'INPUT_VALIDATION_FAILED');

  const args = ['--loops', loops, '--trust', loops, '--session', 'desk'];
  const ran = await rondo('run', 'triage', ...args, '--input', JSON.stringify(input));
  holds('the command line runs the same file', ran.code === 0 && JSON.parse(ran.stdout).team === 'dispatch');
  holds('with the same answer', JSON.stringify(JSON.parse(ran.stdout)) === JSON.stringify(result.output));

  const tree = (await rondo('trace', 'desk')).stdout;
  holds('and what the body said is in the tree', tree.includes('dispatch must look at this today'));
  const replayed = await rondo('replay', 'desk', '--loops', loops, '--trust', loops);
  holds('the code still does what the journal says it did', replayed.code === 0);
});
