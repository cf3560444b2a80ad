import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { advice, errorsPage } from '../../scripts/errors-page.mjs';
import { errorCodes } from '../../src/base/errors.js';
import { verifies } from '../verifies.js';

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

verifies('docs.errors', 'the page of errors tells of codes as they were, not as they are', () => {
  expect(page, 'run: npm run build && node scripts/errors-page.mjs').toBe(errorsPage(errorCodes));
});

verifies('docs.errors', 'a code is documented without a word on what to do about it', () => {
  const facts = { family: 'outcome', isRetryable: false, httpStatus: 500, exitCode: 1, meaning: 'It is new.' };
  expect(() => errorsPage({ ...errorCodes, BRAND_NEW: facts })).toThrow('what to do about BRAND_NEW');
  const { TIMEOUT: _, ...fewer } = errorCodes;
  expect(() => errorsPage(fewer)).toThrow('advice about TIMEOUT, which is no code');
});

verifies('docs.errors', 'a row of the page falls apart, because a text has a bar or a line end in it', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  expect(rows.length).toBe(Object.keys(errorCodes).length);
  for (const row of rows) expect(row.split('|')).toHaveLength(9);
  expect(Object.values(advice).filter((text) => !/[.]$/.test(text))).toEqual([]);
});
