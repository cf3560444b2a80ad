/** Bodies and headers of appends on the socket: the fast patterns must agree with a JSON parser. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { repetitions } from '../../../../spec/support/repetitions.js';
import { verifies } from '../../../../spec/verifies.js';
import { isAppendBody } from './append-body.js';
import { parseMessageWithBody } from './message-header.js';

/** The reference implementation of `isAppendBody`: always parses. */
function isAppendBodyByParsing(body: string, first: number, count: number): boolean {
  try {
    const entries = JSON.parse(body) as unknown;
    if (!Array.isArray(entries) || entries.length !== count || count === 0) return false;
    return entries.every((entry, n) => entry?.seq === first + n && typeof entry.key === 'string');
  } catch {
    return false;
  }
}

const entries = fc
  .tuple(fc.nat(), fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.jsonValue()), { minLength: 1, maxLength: 4 }))
  .map(([first, all]) => ({
    first,
    body: JSON.stringify(all.map(([key, value], n) => ({ seq: first + n, at: 0, key, type: 'step.taken', value }))),
    count: all.length,
  }));

/** Texts to insert: characters with a meaning in JSON, a control character, and others. */
const piece = fc.constantFrom(
  ...'[]{}",:\\-+.0123456789eEtfnu/x',
  '\u0001',
  'é',
  'null',
  '\\u00e9',
  '"seq":7',
  '"key":1',
);

verifies('sqlite.socket', 'an append body with the declared entries is accepted', () => {
  fc.assert(
    fc.property(entries, ({ body, first, count }) => {
      expect(isAppendBody(body, first, count)).toBe(true);
    }),
  );
});

verifies('sqlite.socket', 'an append body that is not JSON or has other entries than declared is refused', () => {
  fc.assert(
    fc.property(entries, fc.nat(), fc.nat(3), piece, ({ body, first, count }, offset, removed, text) => {
      const at = offset % (body.length + 1);
      const changed = body.slice(0, at) + text + body.slice(at + removed);
      expect(isAppendBody(changed, first, count)).toBe(isAppendBodyByParsing(changed, first, count));
      expect(isAppendBody(body, first + 1, count)).toBe(false);
      expect(isAppendBody(body, first, count + 1)).toBe(false);
    }),
    { numRuns: repetitions(20_000) },
  );
});

verifies('sqlite.socket', 'of a repeated member in an append body, the last one is decisive', () => {
  const body = (rest: string): string => `[{"seq":0,"at":0,"type":"step.taken","key":"k",${rest}}]`;
  for (const rest of ['"seq":1', '"key":1', '"\\u0073eq":1', '"value":1,"key":null'])
    expect(isAppendBody(body(rest), 0, 1)).toBe(false);
  expect(isAppendBody(body('"value":{"seq":1,"key":2}'), 0, 1)).toBe(true);
});

verifies('sqlite.socket', 'an append body of any depth is checked in linear time', () => {
  const withValue = (value: string): string => `[{"seq":0,"at":0,"type":"step.taken","key":"k","value":${value}}]`;
  const depth = 1_000_000;
  expect(isAppendBody(withValue(`${'['.repeat(depth)}${']'.repeat(depth)}`), 0, 1)).toBe(true);
  expect(isAppendBody(withValue('['.repeat(depth)), 0, 1)).toBe(false);
  expect(isAppendBody(withValue(`"${'k'.repeat(10_000_000)}"`), 0, 1)).toBe(true);
  // Bodies that fail only at their end, where a backtracking pattern would take exponential time.
  for (const part of ['[1,', '{"a":1,', '[[[1,2],', '1,', '"a":'])
    expect(isAppendBody(withValue(part.repeat(500)), 0, 1)).toBe(false);
});

const header = fc.record({
  i: fc.nat(),
  op: fc.constantFrom('append', 'claim'),
  session: fc.string({ unit: 'binary' }),
  fence: fc.maxSafeNat(),
  first: fc.oneof(fc.nat(), fc.integer(), fc.double()),
  count: fc.nat(),
});

verifies('sqlite.socket', 'a header is recognized exactly as a JSON parser reads it, even if it was changed', () => {
  fc.assert(
    fc.property(header, fc.nat(), fc.option(piece), (document, offset, other) => {
      const text = JSON.stringify(document);
      const at = offset % text.length;
      const changed = other === null ? text : text.slice(0, at) + other + text.slice(at + 1);
      let parsed: object;
      try {
        parsed = JSON.parse(changed);
      } catch {
        return void expect(() => parseMessageWithBody(changed, '[]')).toThrow(SyntaxError);
      }
      expect(parseMessageWithBody(changed, '[]')).toEqual({ ...parsed, body: '[]' });
    }),
    { numRuns: repetitions(5000) },
  );
});
