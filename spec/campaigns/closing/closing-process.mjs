// A process of the campaign of closing: it ends a turn in each way and closes just then, by itself or at SIGTERM. It
// prints the ids of the turns whose cancellation or denial was accepted.

import { setTimeout as sleep } from 'node:timers/promises';
import { createRondo } from 'rondo';
import { fail, finish, nap, pay } from './loops.mjs';

const [store = '', how = '', closeAfterMs = '0'] = process.argv.slice(2);
const rondo = await createRondo({ store, loops: [finish, fail, pay, nap] });
/** @type {Promise<unknown>} */
const terminated = new Promise((resolve) => process.once('SIGTERM', resolve));
const [denied, cancelled] = [await rondo.start(pay, null), await rondo.start(nap, null)];
const [approval] = await denied.approvals();
/** @param {Promise<unknown>} accepting @param {string} turnId */
const accepted = async (accepting, turnId) => {
  await accepting;
  process.stdout.write(`${turnId}\n`);
};
const endings = [
  rondo.run(finish, null),
  rondo.run(fail, null),
  accepted(rondo.deny(approval?.id ?? '', { by: 'ada' }), denied.id),
  accepted(cancelled.cancel('enough'), cancelled.id),
];
process.stdout.write('ending\n');
await Promise.race([Promise.allSettled(endings), how === 'close' ? sleep(Number(closeAfterMs)) : terminated]);
const settled = Promise.allSettled(endings);
await rondo.close();
await settled;
process.exit(0);
