import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { isoTime } from './iso-time.js';

verifies('cli.times', 'a time is written as a Date writes it, whatever was written before', () => {
  const near = fc.integer({ min: -2500, max: 2500 });
  const any = fc.double({ min: -8.64e15, max: 8.64e15, noNaN: true });
  fc.assert(
    fc.property(fc.array(fc.oneof(near, any, fc.constantFrom(8.64e15, -8.64e15, 0, -1)), { minLength: 1 }), (times) => {
      for (const at of times) expect(isoTime(at)).toBe(new Date(at).toISOString());
    }),
    { numRuns: 500 },
  );
  for (const at of [8.64e15 + 1, 8.64e15 + 999, -8.64e15 - 1, Number.NaN, Number.POSITIVE_INFINITY]) {
    isoTime(8.64e15);
    expect(() => isoTime(at), `${at}`).toThrow(RangeError);
  }
});
