import type { LookupFunction } from 'node:net';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { publicLookup } from './public-lookup.js';

function lookupResult(lookup: LookupFunction, all: boolean): Promise<unknown> {
  return new Promise((resolve) => {
    lookup('name.example', { all }, (error, address, family) =>
      resolve(error === null ? [address, family] : (error as NodeJS.ErrnoException).code),
    );
  });
}

verifies('authority.reach', 'every lookup is checked, and one non-public address refuses the host', async () => {
  // DNS rebinding: the name is public on the first lookup and not on the second.
  const answers = [['8.8.8.8', '2606:4700::1'], ['127.0.0.1']];
  let lookups = 0;
  const lookup = publicLookup(async () => answers[lookups++] ?? []);
  const addresses = [
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ];
  expect(await lookupResult(lookup, true)).toEqual([addresses, undefined]);
  expect(await lookupResult(lookup, true)).toBe('NOT_PUBLIC');
  expect(await lookupResult(lookup, true)).toBe('NOT_PUBLIC');
  expect(lookups).toBe(3);
  expect(
    await lookupResult(
      publicLookup(async () => ['8.8.8.8']),
      false,
    ),
  ).toEqual(['8.8.8.8', 4]);
  for (const bad of ['10.0.0.5', '::1', '::ffff:8.8.8.8', 'nonsense', ''])
    expect(
      await lookupResult(
        publicLookup(async () => ['8.8.8.8', bad]),
        false,
      ),
      bad,
    ).toBe('NOT_PUBLIC');
  const failing = publicLookup(async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })));
  expect(await lookupResult(failing, true)).toBe('ENOTFOUND');
});
