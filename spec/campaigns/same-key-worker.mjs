// One of the processes that start the same key. It connects to the sink, waits for a line on stdin, opens the store and
// runs the turn.

import { Host, Registry, systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { eachLine } from './json-lines.mjs';
import { loopsOf } from './plans.mjs';
import { connectSink } from './sink-client.mjs';

const [file = '', sink = '', turn = ''] = process.argv.slice(2);

/** Prints a report as a line of JSON. @param {unknown} report */
const printReport = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);

async function runTurn() {
  const perform = await connectSink(sink);
  const registry = new Registry();
  for (const loop of loopsOf(perform)) registry.add(loop);
  const input = { turn, parallel: false, steps: [{ op: 'once', step: '0-once', ms: 0 }] };
  await new Promise((resolve) => {
    eachLine(process.stdin, resolve);
    printReport({ ready: process.pid });
  });
  const store = await openSqlite(file);
  const host = new Host({ store, clock: systemClock, ids: systemIds, registry });
  const { trace: _, ...result } = await host.run({ loop: 'once-steps', input, key: turn });
  printReport(result);
  await store.close();
}

try {
  await runTurn();
  process.exit(0);
} catch (caught) {
  const { name, code, message, data } = /** @type {Record<string, unknown>} */ (caught ?? {});
  printReport({ thrown: { name, code, message, data } });
  process.exit(1);
}
