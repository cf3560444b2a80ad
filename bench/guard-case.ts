// Measures one case of the guard benchmark: each message `pass` asks for its microseconds per step, `end` ends the process.
// `MeasuredProcess` starts it, with the name of the case and the checkout whose library is measured.

import { type GuardCaseName, guardCases } from './guard-cases.js';
import { pass } from './measure.js';

const [name, checkout = ''] = process.argv.slice(2);
const { clock, warmUpSeconds, passSeconds, create } = guardCases[name as GuardCaseName];
const measured = await create(checkout);
await pass(measured, warmUpSeconds, clock);
process.on('message', async (message) => {
  if (message === 'end') process.exit();
  process.send?.(await pass(measured, passSeconds, clock));
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
