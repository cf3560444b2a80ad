// A script beside the server, on the same store: it has a loop of its own, and the definition of one loop of the server.
//
//   start                    starts a turn of its own loop and leaves it
//   finish TURN OTHER        resumes that turn, runs a loop of the server, and awaits the turn OTHER of the server

import { setTimeout as sleep } from 'node:timers/promises';
import { createRondo, defineLoop } from 'rondo';
import { delivery, paid } from './loops.mjs';

const [data = '', verb = '', own = '', other = ''] = process.argv.slice(2);

/** A loop that the server does not know. */
const report = defineLoop({
  id: 'report',
  input: { type: 'object' },
  output: { type: 'string' },
  run: async (_, scope) => {
    await scope.sleep(300);
    return 'reported';
  },
});

const rondo = await createRondo({ data });

async function start() {
  const { id } = await rondo.start(report, {}, { key: 'report-1' });
  return { turnId: id };
}

async function finish() {
  const resumed = await rondo.resume(own, report);
  const ran = await rondo.run(delivery, { name: 'second-script', ms: 100 });
  const unknown = await rondo.run('payment', { name: 'never', ms: 0 });
  await rondo.signal(other, paid, { amount: 5 }, { id: 'second-script' });
  let awaited = await rondo.turn(other).result();
  for (; awaited.status === 'paused'; awaited = await rondo.turn(other).result()) await sleep(100);
  return { resumed, ran, unknown, awaited };
}

const result = verb === 'start' ? await start() : await finish();
await rondo.close();
console.log(JSON.stringify(result));
// The connection to the sink is still open.
process.exit(0);
