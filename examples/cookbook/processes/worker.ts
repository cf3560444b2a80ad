import { createRondo } from 'rondo';
import { order } from './order.js';

const rondo = await createRondo({ loops: [order] });
process.once('SIGTERM', () => rondo.close()); // `work` returns when the running turns are parked
await rondo.work({ onProblem: ({ turnId, message }) => console.error(turnId, message) });
console.log('stopped');
