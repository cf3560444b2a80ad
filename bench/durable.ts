// SQLite with `fsync`: rates compared with the bare driver, counted syncs, and the heap of a live session.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { openDriver, openSqlite, type SqliteStore } from '../src/adapters/sqlite/index.js';
import { median } from './measure.js';
import { atLeastOrShare, atMost, note, section } from './table.js';
import * as work from './work.js';

const BODY = JSON.stringify(
  Array.from({ length: 2 }, (_, seq) => ({
    seq,
    at: Date.now(),
    type: 'effect.returned',
    key: `t1/${seq}`,
    value: { n: seq },
  })),
);

function folder(): string {
  return mkdtempSync(join(tmpdir(), 'rondo-bench-'));
}

/** Returns the rows per second of the bare driver with `group` rows per commit, one sync each. */
function bareRate(rows: number, group: number): number {
  const dir = folder();
  const driver = openDriver(join(dir, 'bare.db'));
  driver.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL');
  driver.exec('CREATE TABLE r (id INTEGER PRIMARY KEY, body TEXT)');
  const begin = driver.prepare('BEGIN');
  const insert = driver.prepare('INSERT INTO r (body) VALUES (?)');
  const commit = driver.prepare('COMMIT');
  const start = process.hrtime.bigint();
  for (let i = 0; i < rows; i += group) {
    begin.run();
    for (let j = 0; j < group; j++) insert.run(BODY);
    commit.run();
  }
  const rate = rows / (Number(process.hrtime.bigint() - start) / 1e9);
  driver.close();
  rmSync(dir, { recursive: true });
  return rate;
}

interface RateResult {
  readonly rate: number;
  readonly syncs: number;
}

/** Counts syncs: one per commit, and two per checkpoint (the WAL before it, the database after it). */
function syncsOf(store: SqliteStore): number {
  const { commits, checkpoints } = store.stats();
  return commits + 2 * checkpoints;
}

async function ourRate(sessions: number, steps: number, safety: 'pure' | 'once'): Promise<RateResult> {
  const dir = folder();
  const store = await openSqlite(join(dir, 'ours.db'));
  const loop = work.effectsInSequence(steps, safety);
  const before = syncsOf(store);
  const start = process.hrtime.bigint();
  await Promise.all(Array.from({ length: sessions }, () => work.runOnce(loop, { n: 0 }, store)));
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  const measured = { rate: (sessions * steps) / seconds, syncs: (syncsOf(store) - before) / (sessions * steps) };
  await store.close();
  rmSync(dir, { recursive: true });
  return measured;
}

async function rounds(
  count: number,
  measureRound: () => Promise<{ bare: number; ours: RateResult }>,
): Promise<{ bare: number; rate: number; syncs: number }> {
  const results: { bare: number; ours: RateResult }[] = [];
  await measureRound();
  for (let i = 0; i < count; i++) results.push(await measureRound());
  const share = median(results.map(({ bare, ours }) => ours.rate / bare));
  const bare = median(results.map((round) => round.bare));
  return { bare, rate: share * bare, syncs: median(results.map(({ ours }) => ours.syncs)) };
}

/** Measures durable steps. */
export async function benchDurable(count: number): Promise<void> {
  section('SQLite, durability fsync');
  const one = await rounds(count, async () => ({ bare: bareRate(4_000, 1), ours: await ourRate(1, 4_000, 'once') }));
  atLeastOrShare('one session, once effects in sequence, steps', one.rate, one.bare, one.bare, 0.5);
  atMost('  syncs a step', one.syncs, 1.1, 'syncs');
  const once = await rounds(count, async () => ({ bare: bareRate(19_200, 64), ours: await ourRate(64, 300, 'once') }));
  atLeastOrShare('64 sessions, once effects, steps', once.rate, 15_000, once.bare, 0.08);
  atMost('  syncs a step', once.syncs, 0.1, 'syncs');
  const pure = await rounds(count, async () => ({
    bare: bareRate(64_000, 64),
    ours: await ourRate(64, 1_000, 'pure'),
  }));
  atLeastOrShare('64 sessions, pure steps', pure.rate, 40_000, pure.bare, 0.2);
  note(`syncs a pure step: ${pure.syncs.toFixed(4)}`);
  const calls = await tenPureSteps();
  atMost('a run of ten pure steps', calls, 2, 'syncs (claim and result)');
}

async function tenPureSteps(): Promise<number> {
  const { syncs } = await ourRate(1, 10, 'pure');
  return syncs * 10;
}

/**
 * Measures the additional heap of a live session after 50,000 steps compared with 10,000. Each run adds about 10 KiB to the
 * process at any length (V8's type feedback and caches), so a long run is compared with the mean of the short runs before
 * and after it. The optimising compilers are off, because machine code would be several times larger than the session.
 */
export async function benchHeap(): Promise<void> {
  section('Memory of a live session on SQLite');
  for (const flag of ['--no-opt', '--no-sparkplug']) setFlagsFromString(flag);
  const heapAfter = async (steps: number): Promise<number> => {
    const dir = folder();
    const store = await openSqlite(join(dir, 'heap.db'));
    let live = 0;
    const loop = work.inSequence(steps);
    await work.runOnce(
      {
        name: 'long',
        body: async (input, scope) => {
          const end = await loop.body(input, scope);
          await scope.effect(work.effect('once'));
          globalThis.gc?.();
          live = process.memoryUsage().heapUsed;
          return end;
        },
      },
      { n: 0 },
      store,
    );
    await store.close();
    rmSync(dir, { recursive: true });
    return live;
  };
  await heapAfter(50_000);
  const growth: number[] = [];
  for (let before = await heapAfter(10_000); growth.length < 5; ) {
    const long = await heapAfter(50_000);
    const after = await heapAfter(10_000);
    growth.push((long - (before + after) / 2) / 1024);
    before = after;
  }
  atMost('heap after 50,000 steps against 10,000', median(growth), 256, 'KiB more');
}
