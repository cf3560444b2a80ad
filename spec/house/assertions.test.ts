import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { assertionFaults } from './assertions.js';
import { isTest, sources } from './tree.js';

const faultsOf = (text: string): readonly string[] => assertionFaults({ file: 'spec/a.test.ts', text });

verifies('house.assertions', 'a test passes whatever happens, or is passed over', () => {
  // What an agent of an example works on has tests of its own kind.
  const ours = (file: string): boolean => isTest(file) && !file.includes('/project/');
  const tests = sources(['src', 'spec', 'examples', 'bench']).filter(({ file }) => ours(file));
  expect(tests.length).toBeGreaterThan(20);
  expect(tests.flatMap(assertionFaults)).toEqual([]);
});

for (const text of [
  `verifies('kernel.once', 'a', async () => { await f(); });`,
  `test('a', () => { g(); }); function g() { return 1; }`,
  `it('a', function () {});`,
  `test('a', () => { expect(1).toBe(1); console.log(1); });`,
  `test.skip('a', () => { expect(1).toBe(1); });`,
  `verifies('kernel.once', 'a', (context) => { context.skip(); expect(1).toBe(1); });`,
  `verifies('kernel.once', 'a', (context) => { context.skip(true, 'needs nothing'); expect(1).toBe(1); });`,
  `verifies('kernel.once', 'a', (context) => { context.skip(!found, 'flaky'); expect(1).toBe(1); });`,
  `test.only('a', () => { expect(1).toBe(1); });`,
]) {
  verifies('house.assertions', `this passes for a test: ${text}`, () => {
    expect(faultsOf(text)).toHaveLength(1);
  });
}

verifies('house.assertions', 'a test that says what it needs is refused', () => {
  const text = `verifies('a', 'b', (context) => { context.skip(!found, 'needs strace'); expect(1).toBe(1); });`;
  expect(faultsOf(text)).toEqual([]);
});

verifies('house.assertions', 'a test that leaves its judgement to a function beside it is refused', () => {
  expect(faultsOf(`test('a', () => judged()); function judged() { expect(1).toBe(1); }`)).toEqual([]);
  expect(faultsOf(`verifies('journal.cases', name, run);`)).toEqual([]);
});
