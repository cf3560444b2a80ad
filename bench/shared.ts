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

/** The seconds that a process takes for a job. */
async function ask(child: ChildProcess, job: Job): Promise<number> {
  child.send(job);
  const [seconds] = await once(child, 'message');
  return Number(seconds);
}

/** Rounds on one store with two processes, of which the first is the owner; the first round is to warm up. */
async function withTwo<T>(
  rounds: number,
  take: (owner: ChildProcess, client: ChildProcess) => Promise<T>,
): Promise<readonly T[]> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  const file = join(directory, 'shared.db');
  const owner = await peer(file);
  const client = await peer(file);
  const seen: T[] = [];
  for (let round = 0; round <= rounds; round++) seen.push(await take(owner, client));
  for (const child of [client, owner]) {
    child.disconnect();
    await once(child, 'exit');
  }
  rmSync(directory, { recursive: true });
  return seen.slice(1);
}

export async function benchShared(rounds: number): Promise<void> {
  section('SQLite, durability fsync, one store in two processes');
  const step = { turns: 1, steps: 2_000 };
  const single = await withTwo(rounds, async (owner, client) => ({
    owner: await ask(owner, step),
    client: await ask(client, step),
  }));
  const cost = median(single.map(({ owner, client }) => client / owner));
  atMost('a durable step through the socket against the owner', cost, 1.5, 'x');
  const micros = (seconds: readonly number[]): string => ((median(seconds) / step.steps) * 1e6).toFixed(0);
  note(
    `${micros(single.map(({ owner }) => owner))} us in the owner, ${micros(single.map(({ client }) => client))} us through the socket`,
  );

  const many = { turns: 64, steps: 300 };
  const groups = await withTwo(rounds, async (owner, client) => {
    const one = await ask(owner, many);
    const both = Math.max(...(await Promise.all([ask(owner, many), ask(client, many)])));
    return { one, both };
  });
  const work = many.turns * many.steps;
  const gain = median(groups.map(({ one, both }) => (2 * one) / both));
  atLeastRatio('64 turns in each of two processes against 64 in one', gain, 1);
  const rate = (total: number, seconds: readonly number[]): string =>
    Math.round(total / median(seconds)).toLocaleString('en');
  note(
    `${rate(
      work,
      groups.map(({ one }) => one),
    )} steps/s in one, ${rate(
      2 * work,
      groups.map(({ both }) => both),
    )} in two`,
  );
}
