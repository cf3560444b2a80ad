import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { BoundedCache } from './bounded-cache.js';

verifies('schema.registration', 'the cache stays bounded: the oldest entries are evicted', () => {
  const cache = new BoundedCache<{ readonly text: string }>(1_000);
  const created: string[] = [];
  const cachedText = (text: string) =>
    cache.getOrCreate(text, () => {
      created.push(text);
      return { text };
    });
  expect(cachedText('a')).toBe(cachedText('a'));
  for (let i = 0; i < 100; i++) cachedText(`text ${i}`);
  expect(cachedText('text 99')).toEqual({ text: 'text 99' });
  expect(created).toHaveLength(101);
  cachedText('a');
  expect(created).toHaveLength(102);
  expect(cachedText('x'.repeat(5_000)).text).toHaveLength(5_000);
});
