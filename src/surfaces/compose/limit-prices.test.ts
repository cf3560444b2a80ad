import { mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { limitPricesOf } from './limit-prices.js';

const price = { inputPerMillion: 1, outputPerMillion: 1 };
const providers = new Map([
  ['remote', { id: 'remote' }],
  ['local', { id: 'local', repliesLocally: true }],
]) as never;

function pricesOf(isTrusted: boolean): ReturnType<typeof limitPricesOf> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-prices-')));
  const names = ['remote/m', 'local/m', 'unknown/m'];
  const config = { file: join(directory, 'rondo.toml'), prices: new Map(names.map((name) => [name, [price]])) };
  const directories = isTrusted ? [{ directory, source: 'flag' }] : [];
  return limitPricesOf({ config, authority: { directories } } as never, providers);
}

verifies('grant.prices', 'the prices of an untrusted project count only for models that reply on this machine', () => {
  const priceOf = pricesOf(false);
  expect(priceOf('local', 'm', 0)).toEqual(price);
  expect(priceOf('remote', 'm', 0), 'an untrusted price limits a remote model').toBeUndefined();
  expect(priceOf('unknown', 'm', 0)).toBeUndefined();
});

verifies('grant.prices', 'the prices of a trusted project count for all models', () => {
  const priceOf = pricesOf(true);
  for (const id of ['local', 'remote', 'unknown']) expect(priceOf(id, 'm', 0)).toEqual(price);
});
