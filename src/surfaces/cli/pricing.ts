/** Computes the cost of tokens from the prices in the project's config. */
import type { Pricing } from '../../views/trace-tree.js';
import type { ProjectConfig } from '../compose.js';

/**
 * Returns a function that computes the cost of a model answer in millionths of a currency unit; undefined without a
 * price.
 */
export function pricingOf({ prices }: ProjectConfig): Pricing {
  return (backendId, model, inputTokens, outputTokens) => {
    const price = prices.get(`${backendId}/${model}`);
    if (price === undefined) return undefined;
    return (inputTokens * price.inputPerMillion + outputTokens * price.outputPerMillion) / 1_000_000;
  };
}
