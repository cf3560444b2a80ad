/**
 * The prices that a project or a program gives for its models, and what tokens cost by them. Limits of grants and the
 * display of costs use the same prices and the same computation.
 */
import { isCalendarDay } from '../../base/calendar-day.js';
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import { costMicros, currentPrice, type ModelPrice, type PriceOf } from '../../policy/prices.js';

/** The prices of models by `backend/model`, each from its date on. */
export type PriceTable = ReadonlyMap<string, readonly ModelPrice[]>;

/** Prices as a program writes them: one for each model, or a list of dated ones. */
export interface PriceOptions {
  readonly [backendAndModel: string]: ModelPrice | readonly ModelPrice[];
}

const PRICE_KEYS = optionKeys<ModelPrice>({ inputPerMillion: true, outputPerMillion: true, from: true });

/** Returns the price of a model at a time, from a table. */
export function priceOfTable(table: PriceTable): PriceOf {
  return (backendId, model, now) => currentPrice(table.get(`${backendId}/${model}`) ?? [], now);
}

/** Returns what tokens cost at a time, in whole millionths of a currency unit; undefined for a model without a price. */
export function costOfTokens(
  priceOf: PriceOf,
): (backendId: string, model: string, inputTokens: number, outputTokens: number, at: number) => number | undefined {
  return (backendId, model, inputTokens, outputTokens, at) => {
    const price = priceOf(backendId, model, at);
    return price === undefined ? undefined : costMicros(price, inputTokens, outputTokens);
  };
}

/** Returns the table of prices that a program gives. Throws a TypeError that names the price which is invalid. */
export function priceTableOf(options: PriceOptions): PriceTable {
  const table = new Map<string, readonly ModelPrice[]>();
  for (const [name, given] of Object.entries(options)) {
    if (!/^[^/]+\/[\s\S]/.test(name))
      throw new TypeError(`The price ${JSON.stringify(name)} is not named "backend/model".`);
    const prices = (Array.isArray(given) ? given : [given]) as readonly ModelPrice[];
    for (const price of prices) assertPrice(name, price);
    if (prices.length === 0 || new Set(prices.map(({ from }) => from)).size < prices.length)
      throw new TypeError(`The prices of "${name}" are a list of at least one, each from another day.`);
    table.set(name, prices);
  }
  return table;
}

function assertPrice(name: string, price: ModelPrice): void {
  if (typeof price !== 'object' || price === null) throw new TypeError(`The price of "${name}" is not an object.`);
  assertKnownKeys(price, PRICE_KEYS, `The price of "${name}" has no`);
  const { inputPerMillion, outputPerMillion, from } = price;
  for (const amount of [inputPerMillion, outputPerMillion])
    if (!Number.isSafeInteger(amount) || amount < 0)
      throw new TypeError(
        `The price of "${name}" has inputPerMillion and outputPerMillion: whole millionths of a currency unit, of at least 0.`,
      );
  if (from !== undefined && !isCalendarDay(from))
    throw new TypeError(`The price of "${name}" is from a day such as "2026-01-31", not ${JSON.stringify(from)}.`);
}
