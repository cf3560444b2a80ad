import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { affordableOutput, costMicros, currentPrice } from './prices.js';
import { MinTokenCounter, minTokensOf, outputTokensOf, tokensOf } from './token-count.js';

const amount = fc.nat(5_000_000);

verifies('grant.budget', 'the affordable output never costs more than the amount, and one more token does', () => {
  fc.assert(
    fc.property(
      amount,
      fc.integer({ min: 1, max: 90_000_000 }),
      amount,
      fc.nat(100_000),
      (inputPrice, outputPrice, micros, input) => {
        const price = { inputPerMillion: inputPrice, outputPerMillion: outputPrice };
        const output = affordableOutput(price, micros, input) ?? 0;
        fc.pre(costMicros(price, input, 0) <= micros);
        expect(costMicros(price, input, output)).toBeLessThanOrEqual(micros);
        expect(costMicros(price, input, output + 1)).toBeGreaterThan(micros);
      },
    ),
    { numRuns: 2000 },
  );
});

verifies('grant.budget', 'the price of a model is the latest one whose date has come', () => {
  const prices = [
    { inputPerMillion: 2, outputPerMillion: 2, from: '2026-02-01' },
    { inputPerMillion: 1, outputPerMillion: 1 },
    { inputPerMillion: 3, outputPerMillion: 3, from: '2026-03-01' },
  ];
  const at = (time: string) => currentPrice(prices, Date.parse(time))?.inputPerMillion;
  expect([at('2026-01-31T23:59:59Z'), at('2026-02-01T00:00:00Z'), at('2027-01-01T00:00:00Z')]).toEqual([1, 2, 3]);
  expect(currentPrice([], 0)).toBeUndefined();
});

verifies('grant.budget', 'tokens that a provider does not report count as the bytes of the text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, name) => {
      const reply = { text, reasoning: text, toolCalls: [{ name, input: text }] };
      const bytes = 3 * Buffer.byteLength(text) + Buffer.byteLength(name);
      expect(outputTokensOf(reply)).toBe(bytes);
      expect(tokensOf(reply, 9, 2)).toEqual({ inputTokens: 9, outputTokens: bytes });
      const reported = { ...reply, inputTokens: 3, outputTokens: bytes };
      expect(tokensOf(reported, 9, 2)).toEqual({ inputTokens: 3, outputTokens: bytes });
    }),
  );
});

verifies('grant.reported', 'a text has at least one token for each word, and more for long ones', () => {
  const counts = new Map([
    ['', 0],
    [' Hello', 1],
    ['The quick brown fox jumps over the lazy dog.', 9],
    ['Bundesverfassungsgericht', 1],
    ['abcdefgh'.repeat(4), 2],
    [`${'-'.repeat(128)}\n${' '.repeat(128)}x`, 2],
    ['x'.repeat(100_000), 780],
    ['これは長い文章です。'.repeat(100), 123],
  ]);
  for (const [text, count] of counts) expect(minTokensOf([text]), text.slice(0, 50)).toBe(count);
  expect(minTokensOf(['one two', 'three'])).toBe(3);
});

verifies('grant.reported', 'the minimum of a text is the same in pieces, and never more than its bytes', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', 'é') });
  fc.assert(
    fc.property(text, text, (before, after) => {
      const counter = new MinTokenCounter();
      counter.add(before);
      counter.add(after);
      expect(counter.tokens).toBe(minTokensOf([before + after]));
      expect(counter.tokens).toBeLessThanOrEqual(Buffer.byteLength(before + after));
    }),
  );
});
