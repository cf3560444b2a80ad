import { createRondo } from 'rondo';
import { order } from './order.js';

const rondo = await createRondo();
const turn = await rondo.start(order, { sku: 'lamp' }, { key: 'order-17' });
console.log((await turn.result()).status);
await rondo.close();
