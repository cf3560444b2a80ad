/**
 * An order, from the shelf to the inbox: the code that is killed half way. It knows nothing of crashes, journals or
 * retries; each effect only says what asking twice would mean.
 */
/** @import { Effect, Loop } from 'rondo' */
/** @import { Json, Safety } from 'rondo/protocol' */
import { ask } from './ask.mjs';

/** @type {(kind: string, name: string, safety: Safety, input: Json) => Effect<string>} */
const effect = (kind, name, safety, input) => ({
  kind,
  name,
  safety,
  input,
  perform: (about, { idempotencyKey }) => ask({ kind, name, about, key: idempotencyKey }),
});

/** Asked twice, it is still one reservation. @param {string} item @param {number} order */
const reserve = (item, order) => effect('stock', `reserve ${item}`, 'idempotent', { item, order });

/** Asked twice under one key, the bank charges once. @param {number} euros @param {number} order */
const charge = (euros, order) => effect('bank', 'charge card', 'keyed', { euros, order });

/** Asked twice, it prints twice: never repeated on a guess. @param {number} order */
const printLabel = (order) => effect('printer', 'print label', 'once', { order });

/** @param {string} who @param {string} news */
const mail = (who, news) => effect('post', `mail ${who}`, 'keyed', { news });

/** @typedef {{ number: number, items: string[], euros: number, courierMs: number, tell: string[] }} Order */

/** @type {Loop<Order>} */
export const fulfil = {
  name: 'fulfil',
  async body({ number, items, euros, courierMs, tell }, scope) {
    for (const item of items) await scope.effect(reserve(item, number));

    const [receipt, parcel] = await scope.all([
      (branch) => branch.effect(charge(euros, number)),
      (branch) => branch.effect(printLabel(number)),
    ]);

    await scope.sleep(courierMs);

    await scope.all(tell.map((who) => (branch) => branch.effect(mail(who, `${parcel} is on its way`))));
    return { receipt, parcel };
  },
};

/** @type {Order} */
export const order = {
  number: 1042,
  items: ['lamp', 'desk', 'chair'],
  euros: 249,
  courierMs: 1000,
  tell: ['customer', 'warehouse', 'accounts'],
};
