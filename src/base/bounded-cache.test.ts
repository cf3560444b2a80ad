import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { BoundedCache } from './bounded-cache.js';

verifies('schema.registration', 'texts that nobody uses any more fill the memory', () => {
  const recent = new BoundedCache<{ readonly text: string }>(1_000);
  const made: string[] = [];
  const of = (text: string) =>
    recent.getOrCreate(text, () => {
      made.push(text);
      return { text };
    });
  expect(of('a')).toBe(of('a'));
  for (let i = 0; i < 100; i++) of(`text ${i}`);
  expect(of('text 99')).toEqual({ text: 'text 99' });
  expect(made).toHaveLength(101);
  of('a');
  expect(made).toHaveLength(102);
  expect(of('x'.repeat(5_000)).text).toHaveLength(5_000);
});
