// One SQLite store in two processes: the cost of a step through the socket, and the throughput with a second process.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from './measure.js';
import type { Job } from './peer.js';
import { atLeastRatio, atMost, note, section } from './table.js';

const program = fileURLToPath(new URL('peer.js', import.meta.url));

async function startPeer(file: string): Promise<ChildProcess> {
  const child = fork(program, [file]);
  await once(child, 'message');
  return child;
}

/** Sends a job to a process and returns its steps per second. */
async function rateOf(child: ChildProcess, job: Job): Promise<number> {
  child.send(job);
  const [rate] = await once(child, 'message');
  return Number(rate);
}

const oneTurn: Job = { turns: 1, steps: 100, seconds: 2 };
const manyTurns: Job = { turns: 64, steps: 100, seconds: 3 };

/** Measures rounds on one store with two processes. The first one is the owner. Two more rounds warm up. */
async function measureRounds<T>(
  rounds: number,
  measureRound: (owner: ChildProcess, client: ChildProcess) => Promise<T>,
): Promise<readonly T[]> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  const file = join(directory, 'shared.db');
  const owner = await startPeer(file);
  const client = await startPeer(file);
  const results: T[] = [];
  for (let round = 0; round < rounds + 2; round++) results.push(await measureRound(owner, client));
  for (const child of [client, owner]) {
    child.disconnect();
    await once(child, 'exit');
  }
  rmSync(directory, { recursive: true });
  return results.slice(2);
}

/** Measures a shared store. */
export async function benchShared(rounds: number): Promise<void> {
  section('SQLite, durability fsync, one store in two processes');
  const steps = await measureRounds(rounds, async (owner, client) => ({
    owner: await rateOf(owner, oneTurn),
    client: await rateOf(client, oneTurn),
  }));
  atMost(
    'a durable step through the socket against the owner',
    median(steps.map(({ owner, client }) => owner / client)),
    1.5,
    'x',
  );
  const micros = (rates: readonly number[]): string => (1e6 / median(rates)).toFixed(0);
  note(
    `${micros(steps.map(({ owner }) => owner))} us in the owner, ${micros(steps.map(({ client }) => client))} us through the socket`,
  );

  const groups = await measureRounds(rounds, async (owner, client) => {
    const alone = await rateOf(owner, manyTurns);
    const [first, second] = await Promise.all([rateOf(owner, manyTurns), rateOf(client, manyTurns)]);
    return { alone, both: first + second };
  });
  atLeastRatio(
    '64 turns in each of two processes against 64 in one',
    median(groups.map(({ alone, both }) => both / alone)),
    1,
  );
  const rate = (rates: readonly number[]): string => Math.round(median(rates)).toLocaleString('en');
  note(`${rate(groups.map(({ alone }) => alone))} steps/s in one, ${rate(groups.map(({ both }) => both))} in two`);
}
