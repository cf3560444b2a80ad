// A hosted loop with a schedule on SQLite with `fsync`: what a late turn costs against an early one, and its memory.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testKeys } from '../spec/support/receipt-keys.js';
import { openSqlite } from '../src/adapters/sqlite/index.js';
import { Host, Registry, type Store } from '../src/host-entry.js';
import { defineLoop } from '../src/index.js';
import { ManualClock, seededIds } from '../src/testing/index.js';
import { median } from './measure.js';
import { atMost, note, section } from './table.js';

const EVERY_MS = 60_000;
/** The early turns of a loop that are not measured: they read the loop for the first time. */
const FIRST_TURNS = 5;
/** How many turns are measured in a run, of a long loop and of a new one in turn, so that noise affects both alike. */
const MEASURED = 100;
const RUNS = 3;
/** What caches and compiled code may take, however long the loop is. */
const MAX_HEAP_MIB = 4;

const tick = defineLoop({
  id: 'tick',
  input: true,
  output: true,
  safety: 'idempotent',
  tool: (_input, { callId }) => ({ callId }),
});

/** One hosted loop on a store and a clock of its own. */
class MeasuredLoop {
  private readonly clock = new ManualClock(Date.UTC(2026, 0, 5));
  private readonly host: Host;

  constructor(store: Store) {
    const registry = new Registry();
    registry.add(tick);
    this.host = new Host({ store, clock: this.clock, ids: seededIds(1), registry, receiptKeys: testKeys() });
  }

  async start(): Promise<void> {
    const grant = { allowedTools: ['tick'], limits: { effects: 1_000_000 } };
    const document = { id: 'hosted', loop: 'tick', grant, stop: { maxTurns: 1_000_000 } };
    const schedule = { everyMs: EVERY_MS };
    await this.host.hosted.start({ ...document, schedule, next: { turn: '$.turn' } }, { by: 'bench' });
  }

  /** Runs the next turn, as a worker does, and returns its microseconds. */
  async turn(): Promise<number> {
    let count = 0;
    const start = process.hrtime.bigint();
    await this.host.work({ once: true, onResult: () => (count += 1) });
    const us = Number(process.hrtime.bigint() - start) / 1000;
    if (count !== 1) throw new Error(`${count} turns were due instead of one.`);
    await this.clock.advance(EVERY_MS);
    return us;
  }

  async turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) await this.turn();
  }

  close(): Promise<void> {
    return this.host.close();
  }
}

function heapUsed(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/** Performs work with a loop on a new SQLite store. */
async function withLoop<T>(perform: (loop: MeasuredLoop) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  const store = await openSqlite(join(folder, 'hosted.db'));
  const loop = new MeasuredLoop(store);
  await loop.start();
  const result = await perform(loop);
  await loop.close();
  await store.close();
  rmSync(folder, { recursive: true });
  return result;
}

interface TurnCosts {
  readonly early: number;
  readonly late: number;
}

/** Runs turns of a long loop and of a new one in turn, and returns the medians in microseconds. */
function compare(long: MeasuredLoop): Promise<TurnCosts> {
  return withLoop(async (fresh) => {
    await fresh.turns(FIRST_TURNS);
    const [early, late]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < MEASURED; turn++) {
      early.push(await fresh.turn());
      late.push(await long.turn());
    }
    return { early: median(early), late: median(late) };
  });
}

/** Measures hosted loops. The turns around `turns` are compared with the turns 6 to 105 of other loops. */
export async function benchHosted(turns: number): Promise<void> {
  section(`A hosted loop with a schedule, SQLite with fsync: turns from ${turns.toLocaleString('en')} on`);
  await withLoop(async (long) => {
    await long.turns(MEASURED);
    const heapEarly = heapUsed();
    await long.turns(turns - MEASURED);
    const heapLate = heapUsed();
    const runs: TurnCosts[] = [];
    for (let run = 1; run <= RUNS; run++) {
      const cost = await compare(long);
      runs.push(cost);
      const [early, late] = [cost.early, cost.late].map((us) => (us / 1000).toFixed(2));
      note(`run ${run}: ${early} ms for turns 6 to 105, ${late} ms for late ones`);
    }
    atMost('a late turn against an early one', median(runs.map(({ early, late }) => late / early)), 1.3, 'x');
    atMost(
      `heap at turn ${turns} against turn ${MEASURED}`,
      (heapLate - heapEarly) / 2 ** 20,
      MAX_HEAP_MIB,
      'MiB more',
    );
  });
}
