// The public compliance suite of JSONPath (RFC 9535). All tests pass.

import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { compileJsonPath } from '../../src/json/path.js';
import type { Json } from '../../src/protocol/json.js';
import { verifies } from '../verifies.js';

const file = new URL('../../../shared/data/jsonpath/cts.json', import.meta.url);
const hasSuite = existsSync(file);

interface Case {
  readonly name: string;
  readonly selector: string;
  readonly invalid_selector?: true;
  readonly document?: Json;
  /** The matches; `results` lists the allowed matches where the order is free. */
  readonly result?: Json;
  readonly results?: readonly Json[];
}

/** The tests that fail on purpose, each with its reason. */
const exceptions: { readonly [name: string]: string } = {};

/** Returns the matches of a path as JSON, or 'refused'. */
function outcome({ selector, document = null }: Case): string {
  try {
    return JSON.stringify(compileJsonPath(selector, '').findAll(document));
  } catch {
    return 'refused';
  }
}

function passes(test: Case): boolean {
  const expected = test.results ?? [test.result as Json];
  const allowed = test.invalid_selector ? ['refused'] : expected.map((result) => JSON.stringify(result));
  return allowed.includes(outcome(test));
}

verifies('path.suite', 'every test of the public suite passes', (context) => {
  context.skip(!hasSuite, 'needs ../shared/data');
  const { tests } = JSON.parse(readFileSync(file, 'utf8')) as { tests: Case[] };
  const failed = tests.filter((test) => !passes(test)).map(({ name }) => name);
  expect(tests.length).toBeGreaterThan(700);
  expect(failed).toEqual(Object.keys(exceptions));
});

verifies('path.suite', 'a failing test of the suite is detected', () => {
  const test: Case = { name: 'twin', selector: '$.a', document: { a: 1 }, result: [1] };
  expect(passes(test)).toBe(true);
  expect(passes({ ...test, result: [2] })).toBe(false);
  expect(passes({ ...test, invalid_selector: true })).toBe(false);
  expect(passes({ ...test, selector: '$.' })).toBe(false);
});
