import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { StreamLengths } from './index.js';

const root = mkdtempSync(join(tmpdir(), 'rondo-ledgers-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

verifies('grant.ledger-kept', 'the length of a ledger only grows, and each grant has its own', async () => {
  const directory = join(root, 'keys', 'store.ledgers');
  const lengths = new StreamLengths(directory);
  expect(await lengths.read('g')).toBe(0);
  for (const length of [3, 7, 5]) await lengths.write('g', length);
  await lengths.write('../../etc/passwd', 2);
  expect(await Promise.all(['g', '../../etc/passwd', 'h'].map((id) => lengths.read(id)))).toEqual([7, 2, 0]);
  const files = readdirSync(directory);
  expect(files).toHaveLength(2);
  for (const file of files) expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600);
  // A power failure can leave an empty file.
  for (const file of files) truncateSync(join(directory, file), 0);
  expect(await lengths.read('g')).toBe(0);
});
