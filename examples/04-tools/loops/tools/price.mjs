// A module tool: a function of the input and the call context. If it throws, the tool call fails.

/** @param {{ item: string, count: number }} order @param {{ config: { prices: Record<string, number> } }} context */
export function price({ item, count }, { config: { prices } }) {
  const each = Object.hasOwn(prices, item) ? prices[item] : undefined;
  if (each === undefined) throw new Error(`There is no price for "${item}".`);
  return { total: each * count };
}
