// One of many processes that start the same key: imports everything, waits for the word, then opens the store and runs.

import { Host, Registry, systemClock, systemIds } from 'rondo';
import { openSqlite } from 'rondo/sqlite';
import { eachLine } from './lines.mjs';
import { loopsOf } from './plans.mjs';
import { connectSink } from './sink-client.mjs';

const [file = '', sink = '', turn = ''] = process.argv.slice(2);

/** @param {unknown} report */
const tell = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);

async function start() {
  const perform = await connectSink(sink);
  const registry = new Registry();
  for (const loop of loopsOf(perform)) registry.add(loop);
  const input = { turn, parallel: false, steps: [{ op: 'once', step: '0-once', ms: 0 }] };
  await new Promise((go) => {
    eachLine(process.stdin, go);
    tell({ ready: process.pid });
  });
  const store = await openSqlite(file);
  const host = new Host({ store, clock: systemClock, ids: systemIds, registry });
  const { turnId, status, output, error } = await host.run({ loop: 'once-steps', input, key: turn });
  tell({ turnId, status, output, error });
  await store.close();
}

try {
  await start();
  process.exit(0);
} catch (thrown) {
  const { name, code, message, data } = /** @type {Record<string, unknown>} */ (thrown ?? {});
  tell({ thrown: { name, code, message, data } });
  process.exit(1);
}
