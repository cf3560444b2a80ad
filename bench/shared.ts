/** One SQLite store in two processes: what a step costs through the socket, and whether a second process adds throughput. */
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

async function peer(file: string): Promise<ChildProcess> {
  const child = fork(program, [file]);
  await once(child, 'message');
  return child;
}

/** Steps a second of one process. */
async function ask(child: ChildProcess, job: Job): Promise<number> {
  child.send(job);
  const [rate] = await once(child, 'message');
  return Number(rate);
}

const one: Job = { turns: 1, steps: 100, seconds: 2 };
const many: Job = { turns: 64, steps: 100, seconds: 3 };

/** Rounds on one store with two processes, of which the first is the owner; the first two rounds are to warm up. */
async function measured<T>(
  rounds: number,
  take: (owner: ChildProcess, client: ChildProcess) => Promise<T>,
): Promise<readonly T[]> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  const file = join(directory, 'shared.db');
  const owner = await peer(file);
  const client = await peer(file);
  const seen: T[] = [];
  for (let round = 0; round < rounds + 2; round++) seen.push(await take(owner, client));
  for (const child of [client, owner]) {
    child.disconnect();
    await once(child, 'exit');
  }
  rmSync(directory, { recursive: true });
  return seen.slice(2);
}

export async function benchShared(rounds: number): Promise<void> {
  section('SQLite, durability fsync, one store in two processes');
  const steps = await measured(rounds, async (owner, client) => ({
    owner: await ask(owner, one),
    client: await ask(client, one),
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

  const groups = await measured(rounds, async (owner, client) => {
    const alone = await ask(owner, many);
    const [first, second] = await Promise.all([ask(owner, many), ask(client, many)]);
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
