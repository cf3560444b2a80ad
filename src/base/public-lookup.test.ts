import type { LookupFunction } from 'node:net';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { publicLookup } from './public-lookup.js';

function looked(lookup: LookupFunction, all: boolean): Promise<unknown> {
  return new Promise((resolve) => {
    lookup('name.example', { all }, (error, address, family) =>
      resolve(error === null ? [address, family] : (error as NodeJS.ErrnoException).code),
    );
  });
}

verifies('authority.reach', 'what is connected to is what was judged, each time', async () => {
  // A name that is public the first time and not the second: each answer is judged by itself.
  const answers = [['8.8.8.8', '2606:4700::1'], ['127.0.0.1']];
  let asked = 0;
  const lookup = publicLookup(async () => answers[asked++] ?? []);
  const found = [
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ];
  expect(await looked(lookup, true)).toEqual([found, undefined]);
  expect(await looked(lookup, true)).toBe('NOT_PUBLIC');
  expect(await looked(lookup, true)).toBe('NOT_PUBLIC');
  expect(asked).toBe(3);
  expect(
    await looked(
      publicLookup(async () => ['8.8.8.8']),
      false,
    ),
  ).toEqual(['8.8.8.8', 4]);
  for (const bad of ['10.0.0.5', '::1', '::ffff:8.8.8.8', 'nonsense', ''])
    expect(
      await looked(
        publicLookup(async () => ['8.8.8.8', bad]),
        false,
      ),
      bad,
    ).toBe('NOT_PUBLIC');
  const failing = publicLookup(async () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' })));
  expect(await looked(failing, true)).toBe('ENOTFOUND');
});
