/**
 * The loop that is killed: fulfils an order. It contains no code for crashes, journals or retries. Each effect declares
 * its safety, that is, whether it may be repeated after a crash.
 */
/** @import { Effect, Loop } from 'rondo' */
/** @import { Json, Safety } from 'rondo/protocol' */
import { callService } from './call-service.mjs';

/** @type {(kind: string, name: string, safety: Safety, input: Json) => Effect<string>} */
const effect = (kind, name, safety, input) => ({
  kind,
  name,
  safety,
  input,
  perform: (recordedInput, { idempotencyKey }) =>
    callService({ kind, name, input: recordedInput, key: idempotencyKey }),
});

/** Idempotent: repeated requests make one reservation. @param {string} item @param {number} order */
const reserve = (item, order) => effect('stock', `reserve ${item}`, 'idempotent', { item, order });

/** Keyed: the bank charges once per idempotency key. @param {number} euros @param {number} order */
const charge = (euros, order) => effect('bank', 'charge card', 'keyed', { euros, order });

/** Once: every request prints a label, so it is never repeated automatically. @param {number} order */
const printLabel = (order) => effect('printer', 'print label', 'once', { order });

/** @param {string} recipient @param {string} text */
const mail = (recipient, text) => effect('post', `mail ${recipient}`, 'keyed', { text });

/** @typedef {{ number: number, items: string[], euros: number, courierMs: number, recipients: string[] }} Order */

/** @type {Loop<Order>} */
export const fulfil = {
  name: 'fulfil',
  async body({ number, items, euros, courierMs, recipients }, scope) {
    for (const item of items) await scope.effect(reserve(item, number));

    const [receipt, parcel] = await scope.all([
      (branch) => branch.effect(charge(euros, number)),
      (branch) => branch.effect(printLabel(number)),
    ]);

    await scope.sleep(courierMs);

    const text = `${parcel} is on its way`;
    await scope.all(recipients.map((recipient) => (branch) => branch.effect(mail(recipient, text))));
    return { receipt, parcel };
  },
};

/** @type {Order} */
export const order = {
  number: 1042,
  items: ['lamp', 'desk', 'chair'],
  euros: 249,
  courierMs: 1000,
  recipients: ['customer', 'warehouse', 'accounts'],
};
