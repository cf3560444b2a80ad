// A module tool: a function of the input and the call. What it throws is the tool's failure.

/** @param {{ item: string, count: number }} order @param {{ config: { prices: Record<string, number> } }} call */
export function price({ item, count }, { config: { prices } }) {
  const each = Object.hasOwn(prices, item) ? prices[item] : undefined;
  if (each === undefined) throw new Error(`There is no price for "${item}".`);
  return { total: each * count };
}
