/**
 * The worker: the process that is killed, and the process that finishes. Both run this file with the same arguments. It
 * opens the store, runs the order, and requests a resolution from its parent for each effect in doubt.
 */
/** @import { Resolution, Json } from 'rondo/protocol' */
import { once } from 'node:events';
import { Session, systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { fulfil, order } from './order.mjs';

/** @typedef {{ resolution: Resolution, by: string, value?: Json }} ResolutionMessage */

/** @param {{ key: string, name: string }} effectInDoubt @returns {Promise<ResolutionMessage>} */
async function requestResolution(effectInDoubt) {
  process.send?.({ effectInDoubt });
  const [message] = await once(process, 'message');
  return message;
}

/** @param {string} file */
async function runOrder(file) {
  const store = await openSqlite(file);
  const session = await Session.open(`order-${order.number}`, { store, clock: systemClock, ids: systemIds });

  let outcome = await session.run('t1', fulfil, order);
  while (outcome.status === 'paused') {
    for (const effectInDoubt of session.effectsInDoubt) {
      const { resolution, by, value } = await requestResolution(effectInDoubt);
      await session.resolveEffect(effectInDoubt.key, resolution, by, { value });
    }
    outcome = await session.run('t1', fulfil, order);
  }

  await session.close();
  await store.close();
  return outcome;
}

// The worker exits when the channel to its parent closes: after the parent has received the outcome, or when it dies.
process.on('disconnect', () => process.exit());
try {
  process.send?.({ outcome: await runOrder(process.argv[2] ?? '') });
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
