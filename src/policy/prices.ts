/** Prices of models: dated, in whole millionths of a currency unit, and always rounded up. */

/** The price of a model from a date on. */
export interface ModelPrice {
  /** The price of one million input tokens, in millionths of a currency unit. */
  readonly inputPerMillion: number;
  /** The price of one million output tokens, in millionths of a currency unit. */
  readonly outputPerMillion: number;
  /** The first day on which it applies, as `YYYY-MM-DD`. @default always */
  readonly from?: string | undefined;
}

/** Returns the price of a model at a time; undefined if it has none. */
export type PriceOf = (backendId: string, model: string, now: number) => ModelPrice | undefined;

/** What the data of an error about a model without a price has as `missing`. */
export const MISSING_PRICE = 'price';

/** Says that a model has no price, and how to give it one. `model` is `backend/model`. Without a full stop. */
export function missingPriceText(model: string): string {
  return (
    `"${model}" has no price. Add [prices."${model}"] to rondo.toml and trust the project with: rondo trust DIR. ` +
    'In code, use the option prices of createRondo'
  );
}

const TOKENS_PER_PRICE = 1_000_000;

/** Returns the price that applies at a time: the one with the latest date that has come. */
export function currentPrice(prices: readonly ModelPrice[], now: number): ModelPrice | undefined {
  const today = new Date(now).toISOString().slice(0, 10);
  let current: ModelPrice | undefined;
  for (const price of prices)
    if ((price.from ?? '') <= today && (price.from ?? '') >= (current?.from ?? '')) current = price;
  return current;
}

/** Returns the cost of tokens in whole millionths of a currency unit, rounded up. */
export function costMicros(price: ModelPrice, inputTokens: number, outputTokens: number): number {
  const exact = inputTokens * price.inputPerMillion + outputTokens * price.outputPerMillion;
  return Math.ceil(exact / TOKENS_PER_PRICE);
}

/** Returns how many output tokens an amount pays for, after the input; undefined if output is free. */
export function affordableOutput(price: ModelPrice, micros: number, inputTokens: number): number | undefined {
  if (price.outputPerMillion === 0) return undefined;
  const rest = micros * TOKENS_PER_PRICE - inputTokens * price.inputPerMillion;
  return Math.max(0, Math.floor(rest / price.outputPerMillion));
}
