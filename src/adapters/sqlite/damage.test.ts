/**
 * Thousands of damaged stores: bits flipped, ends cut, sectors zeroed and swapped in the database or its WAL.
 * Nothing may read back different, and nothing may be gone without a word. RONDO_DAMAGE_SEED chooses the damage.
 * Each store is judged in a process beside this one, because a damaged file may take the whole process with it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { openSqlite } from './index.js';

const seed = Number(process.env.RONDO_DAMAGE_SEED ?? 20_261_115);
const count = Number(process.env.RONDO_DAMAGE_COUNT ?? 5000);

const built = new URL('../../../dist/adapters/sqlite/index.js', import.meta.url).href;
const beside = fileURLToPath(new URL('../../../spec/support/damage-process.mjs', import.meta.url));
// In memory where there is such a place: the damage is the matter here, not the disk.
const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'rondo-damage-'));
const base = join(root, 'base.db');

beforeAll(() => {
  const { signal } = spawnSync(process.execPath, [beside, built, 'build', base], { stdio: 'inherit' });
  expect(signal).toBe('SIGKILL');
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Finding {
  readonly n: number;
  readonly verdict: string;
  /** The beginnings of what the report said. */
  readonly notes: readonly string[];
}

const fine = new Set(['unharmed', 'reported', 'refused', 'stopped']);

/** Judges the stores from one number to another; a process that dies is a finding, and the next one goes on after it. */
async function judge(from: number, until: number): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (let next = from; next < until; ) {
    const args = [beside, built, 'judge', base, root, seed, next, until].map(String);
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const exit = once(child, 'exit');
    let harm = '';
    for await (const line of createInterface({ input: child.stdout })) {
      const said = JSON.parse(line) as Partial<Finding>;
      if (said.verdict === undefined) harm = line;
      else findings.push({ n: next, verdict: said.verdict, notes: said.notes ?? [] });
      next = (said.n ?? next) + (said.verdict === undefined ? 0 : 1);
    }
    const [code, signal] = (await exit) as [number | null, string | null];
    if (code === 0) continue;
    findings.push({ n: next, verdict: `the process ended (${signal ?? code}) at ${harm}`, notes: [] });
    next += 1;
  }
  return findings;
}

verifies(
  'sqlite.damage',
  `one of ${count} damaged stores reads back something else, or loses something without a word`,
  async () => {
    const half = count >> 1;
    const findings = (await Promise.all([judge(0, half), judge(half, count)])).flat();
    const bad = findings.filter(({ verdict }) => !fine.has(verdict));
    expect(bad, `RONDO_DAMAGE_SEED=${seed}`).toEqual([]);
    expect(findings).toHaveLength(count);
    // Each guard had something to find: a judge that finds nothing would be asleep.
    const told = new Set(findings.flatMap(({ notes }) => notes));
    for (const note of ['lost tail: entries', 'missing: all of', 'damaged: its bytes do', 'damaged: the value']) {
      expect(
        [...told].some((said) => said.startsWith(note)),
        note,
      ).toBe(true);
    }
  },
  600_000,
);

verifies('sqlite.anchor', 'without the anchor, an end that SQLite drops is not missed: the control', async () => {
  const copy = join(root, 'control.db');
  copyFileSync(base, copy);
  copyFileSync(`${base}-wal`, `${copy}-wal`);
  truncateSync(`${copy}-wal`, statSync(`${copy}-wal`).size - 5000);
  const store = await openSqlite(copy, { check: 'full' });
  await store.close();
  // All that is left is whole in itself, so only the missing anchor is worth a word.
  expect(store.report.damage.map(({ kind }) => kind)).toEqual(['anchor']);
});
