import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { affordableOutput, costMicros, currentPrice } from './prices.js';
import { outputTokenBound, tokensOf } from './token-count.js';

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
      expect(outputTokenBound(reply)).toBe(bytes);
      expect(tokensOf(reply, 9)).toEqual({ inputTokens: 9, outputTokens: bytes });
      expect(tokensOf({ ...reply, inputTokens: 0, outputTokens: 1 }, 9)).toEqual({ inputTokens: 0, outputTokens: 1 });
    }),
  );
});
