// The orders of the shop. Looking changes nothing.

/** @type {Readonly<Record<string, { item: string, paid: number, daysAgo: number }>>} */
const orders = {
  1017: { item: 'lamp', paid: 4000, daysAgo: 6 },
  1018: { item: 'chair', paid: 9500, daysAgo: 90 },
};

/** @param {{ order: string }} input */
export function find({ order }) {
  const found = Object.hasOwn(orders, order) ? orders[order] : undefined;
  if (found === undefined) throw new Error(`There is no order ${order}.`);
  return { order, ...found };
}
