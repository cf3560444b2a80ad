import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
});

verifies(
  'receipt.witness',
  'a kept length that was emptied or written over is reported until it is kept again',
  async () => {
    const directory = join(root, 'emptied', 'store.lengths');
    const lengths = new StreamLengths(directory);
    expect(await lengths.areIntact(), 'nothing was kept yet').toBe(true);
    await lengths.write('g', 7);
    const file = join(directory, readdirSync(directory)[0] ?? '');
    for (const content of ['', '7', ' 7\n', '-1\n', 'x']) {
      writeFileSync(file, content);
      expect([await lengths.read('g'), await lengths.has('g'), await lengths.areIntact()]).toEqual([0, false, false]);
    }
    await lengths.write('g', 3);
    expect([await lengths.read('g'), await lengths.has('g'), await lengths.areIntact()]).toEqual([3, true, true]);
    writeFileSync(join(directory, '1.tmp'), '');
    expect(await lengths.areIntact(), 'a file that was not renamed').toBe(true);
  },
);
