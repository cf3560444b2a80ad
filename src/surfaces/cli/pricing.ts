/** What tokens cost by the project's config. */
import type { Pricing } from '../../views/trace-tree.js';
import type { ProjectConfig } from '../compose.js';

/** The cost of an answer in millionths of the currency; undefined where the config names no price. */
export function pricingOf({ prices }: ProjectConfig): Pricing {
  return (backendId, model, inputTokens, outputTokens) => {
    const price = prices.get(`${backendId}/${model}`);
    if (price === undefined) return undefined;
    return (inputTokens * price.inputPerMillion + outputTokens * price.outputPerMillion) / 1_000_000;
  };
}
