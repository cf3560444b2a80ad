import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { isCalendarDay } from '../../base/calendar-day.js';
import { costOfTokens, priceOfTable, priceTableOf } from './price-table.js';

const DAY_MS = 86_400_000;
const at = (day: string): number => Date.parse(`${day}T00:00:00Z`);

verifies('grant.prices', 'the price with the latest day that has come applies, whatever the order of the list', () => {
  const old = { inputPerMillion: 100, outputPerMillion: 200 };
  const winter = { ...old, inputPerMillion: 50, from: '2026-01-01' };
  const spring = { ...old, inputPerMillion: 70, from: '2026-03-01' };
  for (const list of [
    [old, winter, spring],
    [spring, old, winter],
  ]) {
    const priceOf = priceOfTable(priceTableOf({ 'lab/m': list }));
    const priceAt = (time: number): number | undefined => priceOf('lab', 'm', time)?.inputPerMillion;
    expect(priceAt(at('2026-01-01') - 1)).toBe(100);
    expect(priceAt(at('2026-01-01'))).toBe(50);
    expect(priceAt(at('2026-03-01') - 1)).toBe(50);
    expect(priceAt(at('2026-03-01') + DAY_MS)).toBe(70);
  }
  const dated = priceOfTable(priceTableOf({ 'lab/m': winter }));
  expect(dated('lab', 'm', at('2025-12-31')), 'a price applied before its day').toBeUndefined();
  expect(dated('lab', 'n', at('2026-12-31'))).toBeUndefined();
});

verifies('grant.prices', 'a cost is whole and never less than the exact amount', () => {
  const amount = fc.integer({ min: 0, max: 100_000_000 });
  const tokens = fc.integer({ min: 0, max: 1_000_000 });
  fc.assert(
    fc.property(amount, amount, tokens, tokens, (inputPerMillion, outputPerMillion, input, output) => {
      const cost = costOfTokens(priceOfTable(priceTableOf({ 'a/b/c': { inputPerMillion, outputPerMillion } })));
      const micros = cost('a', 'b/c', input, output, 0) ?? -1;
      const exact = BigInt(input) * BigInt(inputPerMillion) + BigInt(output) * BigInt(outputPerMillion);
      expect(Number.isSafeInteger(micros)).toBe(true);
      expect(BigInt(micros) * 1_000_000n >= exact).toBe(true);
      expect((BigInt(micros) - 1n) * 1_000_000n < exact || micros === 0).toBe(true);
    }),
  );
});

const valid = { inputPerMillion: 1, outputPerMillion: 1 };
const invalid: readonly [name: string, prices: unknown][] = [
  ['a name without a model', { lab: valid }],
  ['a fraction', { 'a/b': { ...valid, inputPerMillion: 0.5 } }],
  ['a negative amount', { 'a/b': { ...valid, outputPerMillion: -1 } }],
  ['a missing amount', { 'a/b': { inputPerMillion: 1 } }],
  ['an unknown member', { 'a/b': { ...valid, cachedPerMillion: 1 } }],
  ['a day that does not exist', { 'a/b': { ...valid, from: '2026-02-30' } }],
  ['an empty list', { 'a/b': [] }],
  ['two prices from one day', { 'a/b': [valid, valid] }],
  ['no object', { 'a/b': 5 }],
];

for (const [name, prices] of invalid)
  verifies('grant.prices', `${name} is no price`, () => {
    expect(() => priceTableOf(prices as never)).toThrow(TypeError);
  });

verifies('grant.prices', 'every day of the calendar is a day, and nothing else is', () => {
  const day = fc.date({ min: new Date(0), max: new Date(at('9999-12-31')), noInvalidDate: true });
  fc.assert(fc.property(day, (date) => isCalendarDay(date.toISOString().slice(0, 10))));
  for (const text of ['2026-02-29', '2026-13-01', '2026-1-1', '20260101', '', 20260101, '2026-01-01T00:00:00Z'])
    expect(isCalendarDay(text)).toBe(false);
});
