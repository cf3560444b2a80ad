/** Large values: splitting them into blobs, and restoring them. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Json } from '../protocol/json.js';
import { joinBlobParts, partDigestsIn, splitIntoBlobs } from './blob-parts.js';

const roundTrip = (value: Json): Promise<Json> => {
  const { text, parts } = splitIntoBlobs(value);
  return joinBlobParts(text, async (digest) => parts.get(digest) ?? '"lost"');
};

verifies('kernel.blob', 'a large value is restored unchanged', async () => {
  const long = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).map((text) => text.repeat(4096));
  const leaf = fc.oneof(long, fc.jsonValue());
  const value = fc.oneof(
    leaf,
    fc.array(leaf),
    fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      leaf,
    ),
  );
  await fc.assert(
    fc.asyncProperty(value, async (generated) => {
      const plain = JSON.parse(JSON.stringify(generated)) as Json;
      expect(await roundTrip(plain)).toEqual(plain);
    }),
    { numRuns: 300 },
  );
});

verifies('agent.once', 'a long text that two values contain is stored once', () => {
  const text = 'word '.repeat(2000);
  const reply = splitIntoBlobs({ text, model: 'm', finish: 'stop' });
  const answer = splitIntoBlobs({ text });
  expect([...reply.parts.keys()]).toEqual([...answer.parts.keys()]);
  expect(reply.text.length + answer.text.length).toBeLessThan(500);
  expect(partDigestsIn(reply.text)).toEqual([...reply.parts.keys()]);
  expect(splitIntoBlobs({ text: 'short' }).parts.size).toBe(0);
});

verifies('kernel.blob', 'a forged part reference changes neither a missing member nor a prototype', async () => {
  const forged = `parts:${JSON.stringify([
    { a: null },
    [
      [['__proto__', 'x'], 'd'],
      [['b'], 'd'],
      [['a', 'c'], 'd'],
    ],
  ])}`;
  expect(await joinBlobParts(forged, async () => '"text"')).toEqual({ a: null });
  expect(({} as { x?: string }).x, 'Object.prototype was polluted').toBeUndefined();
});
