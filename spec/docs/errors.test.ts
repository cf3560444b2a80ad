// docs/errors.md is generated from the table of codes and is complete.

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { advice, errorsPage } from '../../scripts/errors-page.mjs';
import { errorCodes } from '../../src/base/errors.js';
import { verifies } from '../verifies.js';

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

verifies('docs.errors', 'the page of errors is up to date', () => {
  expect(page, 'run: npm run build && node scripts/errors-page.mjs').toBe(errorsPage(errorCodes));
});

verifies('docs.errors', 'every code has advice, and all advice belongs to a code', () => {
  const facts = { family: 'outcome', isRetryable: false, httpStatus: 500, exitCode: 1, meaning: 'It is new.' };
  expect(() => errorsPage({ ...errorCodes, BRAND_NEW: facts })).toThrow('no advice about BRAND_NEW');
  const { TIMEOUT: _, ...fewer } = errorCodes;
  expect(() => errorsPage(fewer)).toThrow('advice about TIMEOUT, which is not an error code');
});

verifies('docs.errors', 'every row of the page has its seven cells', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  expect(rows.length).toBe(Object.keys(errorCodes).length);
  for (const row of rows) expect(row.split('|')).toHaveLength(9);
  expect(Object.values(advice).filter((text) => !/[.]$/.test(text))).toEqual([]);
});
