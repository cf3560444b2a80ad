/** The cost of tokens for displays, from the prices in the project's config. */
import { costOfTokens, priceOfTable } from '../../host/budget/price-table.js';
import type { Pricing } from '../../views/trace-tree.js';
import type { ProjectConfig } from '../compose.js';

/**
 * Returns a function that computes the cost of a model answer in millionths of a currency unit; undefined without a
 * price. A display shows what the project says, whether the project is trusted or not.
 */
export function pricingOf({ prices }: Pick<ProjectConfig, 'prices'>): Pricing {
  return costOfTokens(priceOfTable(prices));
}
