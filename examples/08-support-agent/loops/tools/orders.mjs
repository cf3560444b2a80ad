// Looks up an order of the shop.

/** @type {Readonly<Record<string, { item: string, paid: number, daysAgo: number }>>} */
const orders = {
  1017: { item: 'lamp', paid: 4000, daysAgo: 6 },
  1018: { item: 'chair', paid: 9500, daysAgo: 90 },
};

/** @param {{ order: string }} input */
export function find({ order }) {
  const record = Object.hasOwn(orders, order) ? orders[order] : undefined;
  if (record === undefined) throw new Error(`There is no order ${order}.`);
  return { order, ...record };
}
