/**
 * The prices by which grants limit what models cost. A rondo.toml may come from anywhere, and a price that is too low would
 * let a turn spend more than its grant says, so its prices count for models that leave this machine only if the operator
 * trusts the project.
 */
import { dirname } from 'node:path';
import { priceOfTable } from '../../host/budget/price-table.js';
import type { HostOptions } from '../../host/host-options.js';
import { trustPredicateOf } from '../authority.js';
import type { ProjectSettings } from './project-settings.js';

/** Returns the prices that count for limits. A model whose price does not count has none. */
export function limitPricesOf(
  { config, authority }: Pick<ProjectSettings, 'config' | 'authority'>,
  providers: NonNullable<HostOptions['providers']>,
): NonNullable<HostOptions['priceOf']> {
  const priceOf = priceOfTable(config.prices);
  const { file } = config;
  const isTrusted = file !== undefined && trustPredicateOf(authority)(dirname(file));
  return (backendId, model, now) => {
    const isLocal = providers.get(backendId)?.repliesLocally === true;
    // guard: untrusted-prices-limit-nothing
    return isTrusted || isLocal ? priceOf(backendId, model, now) : undefined;
  };
}
