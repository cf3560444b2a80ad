import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { assertionFaults } from './assertions.js';
import { isTest, sources } from './tree.js';

const faultsOf = (text: string): readonly string[] => assertionFaults({ file: 'spec/a.test.ts', text });

verifies('house.assertions', 'every test asserts something and always runs', () => {
  // The projects that agents of examples edit contain tests for node:test.
  const isOurs = (file: string): boolean => isTest(file) && !file.includes('/project/');
  const tests = sources(['src', 'spec', 'examples', 'bench']).filter(({ file }) => isOurs(file));
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
  verifies('house.assertions', `this test is rejected: ${text}`, () => {
    expect(faultsOf(text)).toHaveLength(1);
  });
}

verifies('house.assertions', 'a test may skip if it names what the machine lacks', () => {
  const text = `verifies('a', 'b', (context) => { context.skip(!found, 'needs strace'); expect(1).toBe(1); });`;
  expect(faultsOf(text)).toEqual([]);
});

verifies('house.assertions', 'a test may delegate its assertions to a function of the file', () => {
  expect(faultsOf(`test('a', () => check()); function check() { expect(1).toBe(1); }`)).toEqual([]);
  expect(faultsOf(`verifies('journal.cases', name, run);`)).toEqual([]);
});
