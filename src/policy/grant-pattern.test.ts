import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { coversPattern, isCovered, isPattern, matchesPattern } from './grant-pattern.js';

const segment = fc.constantFrom('a', 'b', 'ab', '*', '', 'A');
const text = fc
  .tuple(fc.array(segment, { maxLength: 4 }), fc.constantFrom('.', ':'))
  .map(([parts, mark]) => parts.join(mark));

verifies('grant.document', 'a pattern is a name, or a prefix with one wildcard segment at its end', () => {
  for (const good of ['act', 'files.read', 'files.*', 'a.b.*', 'repo:*', '@scope/pkg.tool', 'a-b_c'])
    expect(isPattern(good, false), good).toBe(true);
  for (const bad of [
    '',
    '*',
    '.*',
    '**',
    'a*',
    '*.a',
    'a.*.b',
    'a.**',
    'a..b',
    'a.',
    'a b',
    'a\n',
    'a.*\n',
    'ａ',
    'а\u0301',
    7,
  ])
    expect(isPattern(bad, false), JSON.stringify(bad)).toBe(false);
  expect(isPattern('*', true)).toBe(true);
  expect(isPattern('a'.repeat(201), true), 'an unbounded pattern').toBe(false);
});

verifies('grant.tools', 'a wildcard stands for exactly one further segment', () => {
  expect(matchesPattern('files.*', 'files.read')).toBe(true);
  for (const name of [
    'files',
    'files.',
    'files.read.all',
    'files.read:all',
    'filesXread',
    'FILES.read',
    'files.*',
    ' files.read',
  ])
    expect(matchesPattern('files.*', name) && name !== 'files.*', name).toBe(false);
  for (const name of ['Files.read', 'files.read ', 'ﬁles.read', 'files．read', 'files%2Eread', 'files.re\u200bad'])
    expect(matchesPattern('files.read', name), name).toBe(false);
  expect(isCovered([], 'files.read'), 'an empty list permits something').toBe(false);
});

verifies('grant.derive', 'a pattern covers another only if it covers every name of it', () => {
  fc.assert(
    fc.property(text, text, text, (outer, inner, name) => {
      fc.pre(isPattern(outer, true) && isPattern(inner, true));
      if (coversPattern(outer, inner) && matchesPattern(inner, name)) expect(matchesPattern(outer, name)).toBe(true);
    }),
    { numRuns: 3000 },
  );
  expect(coversPattern('a.*', 'a.b.*')).toBe(false);
  expect(coversPattern('a.*', '*')).toBe(false);
  expect(coversPattern('a.b', 'a.*')).toBe(false);
});
