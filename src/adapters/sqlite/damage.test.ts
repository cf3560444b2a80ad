/**
 * Thousands of damaged stores: flipped bits, truncated files, zeroed and swapped sectors in the database or its WAL.
 * No entry may read back different, and no loss may go unreported. RONDO_DAMAGE_SEED selects the damage.
 * Another process checks each store, because a damaged file can crash the whole process.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import { repetitions } from '../../../spec/support/repetitions.js';
import { verifies } from '../../../spec/verifies.js';
import { openSqlite } from './index.js';

const seed = Number(process.env.RONDO_DAMAGE_SEED ?? 20_261_115);
const count = repetitions(5000, 100);

const builtStore = new URL('../../../dist/adapters/sqlite/index.js', import.meta.url).href;
const script = fileURLToPath(new URL('../../../spec/support/damage-process.mjs', import.meta.url));
// In memory where possible: the test needs no real disk.
const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'rondo-damage-'));
const base = join(root, 'base.db');

beforeAll(() => {
  const { signal } = spawnSync(process.execPath, [script, builtStore, 'build', base], { stdio: 'inherit' });
  expect(signal).toBe('SIGKILL');
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The result for one damaged store. */
interface Finding {
  readonly n: number;
  readonly verdict: string;
  /** The first words of the reported damage. */
  readonly notes: readonly string[];
}

const acceptable = new Set(['intact', 'reported', 'refused', 'stopped']);

/** Checks the stores of a range of numbers. A crashed process is a finding, and another process continues after it. */
async function checkRange(from: number, until: number): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (let next = from; next < until; ) {
    const args = [script, builtStore, 'check', base, root, seed, next, until].map(String);
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const exit = once(child, 'exit');
    let currentDamage = '';
    for await (const line of createInterface({ input: child.stdout })) {
      const message = JSON.parse(line) as Partial<Finding>;
      if (message.verdict === undefined) currentDamage = line;
      else findings.push({ n: next, verdict: message.verdict, notes: message.notes ?? [] });
      next = (message.n ?? next) + (message.verdict === undefined ? 0 : 1);
    }
    const [code, signal] = (await exit) as [number | null, string | null];
    if (code === 0) continue;
    findings.push({ n: next, verdict: `the process ended (${signal ?? code}) at ${currentDamage}`, notes: [] });
    next += 1;
  }
  return findings;
}

verifies(
  'sqlite.damage',
  `none of ${count} damaged stores reads back different entries or hides a loss`,
  async () => {
    const half = count >> 1;
    const findings = (await Promise.all([checkRange(0, half), checkRange(half, count)])).flat();
    const bad = findings.filter(({ verdict }) => !acceptable.has(verdict));
    expect(bad, `RONDO_DAMAGE_SEED=${seed}`).toEqual([]);
    expect(findings).toHaveLength(count);
    // Every kind of damage was found at least once, so the checks are effective.
    const reported = new Set(findings.flatMap(({ notes }) => notes));
    for (const note of ['lost tail: entries', 'missing: all of', 'damaged: its bytes do', 'damaged: the value']) {
      expect(
        [...reported].some((text) => text.startsWith(note)),
        `no store reported "${note}"`,
      ).toBe(true);
    }
  },
  600_000,
);

verifies('sqlite.anchor', 'without its anchor, a truncated WAL is reported only as a missing anchor', async () => {
  const copy = join(root, 'control.db');
  copyFileSync(base, copy);
  copyFileSync(`${base}-wal`, `${copy}-wal`);
  truncateSync(`${copy}-wal`, statSync(`${copy}-wal`).size - 5000);
  const store = await openSqlite(copy, { check: 'full' });
  await store.close();
  // A control: the remaining entries are intact, so only the anchor could have shown the loss.
  expect(store.report.damage.map(({ kind }) => kind)).toEqual(['anchor']);
});
