/**
 * The process that is killed, and the one that goes on: the same file, started twice with the same arguments. It opens
 * the store, runs the order, and asks its parent about effects that are in doubt.
 */
/** @import { Resolution, Json } from 'rondo/protocol' */
import { once } from 'node:events';
import { Session, systemClock, systemIds } from 'rondo';
import { openSqlite } from 'rondo/sqlite';
import { fulfil, order } from './order.mjs';

/** @typedef {{ decision: Resolution, by: string, value?: Json }} Verdict */

/** @param {{ key: string, name: string }} doubt @returns {Promise<Verdict>} */
async function askParent(doubt) {
  process.send?.({ doubt });
  const [verdict] = await once(process, 'message');
  return verdict;
}

/** @param {string} file */
async function work(file) {
  const store = await openSqlite(file);
  const session = await Session.open(`order-${order.number}`, { store, clock: systemClock, ids: systemIds });

  let outcome = await session.run('t1', fulfil, order);
  while (outcome.status === 'paused') {
    for (const doubt of session.effectsInDoubt) {
      const { decision, by, value } = await askParent(doubt);
      await session.resolveEffect(doubt.key, decision, by, { value });
    }
    outcome = await session.run('t1', fulfil, order);
  }

  await session.close();
  await store.close();
  return outcome;
}

// It stays until its parent has heard the outcome and lets go, and never outlives its parent.
process.on('disconnect', () => process.exit());
try {
  process.send?.({ outcome: await work(process.argv[2] ?? '') });
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
