// Real SIGKILLs over a mixed load, judged by a process that was not killed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { openSqlite } from '../../src/adapters/sqlite/index.js';
import type { Entry } from '../../src/protocol/index.js';
import { type ReportedEffect, seededRandom, startEffectSink } from '../../src/testing/index.js';
import { verifies } from '../verifies.js';

const KILLS = Number(process.env.RONDO_KILLS ?? 300);
const worker = fileURLToPath(new URL('worker.mjs', import.meta.url));
const sinkFile = fileURLToPath(new URL('../../dist/testing/effect-sink.js', import.meta.url));

/** Runs the worker until it ends by itself or is killed `after` ms of work. */
async function life(folder: string, url: string, after?: number): Promise<number | null> {
  const child = spawn(process.execPath, [worker, folder, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), exit]);
  const timer = after === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), after);
  const [code] = await exit;
  clearTimeout(timer);
  return code as number | null;
}

interface Effect {
  readonly safety: string;
  readonly session: string;
  readonly effect: string;
  readonly key: string;
}

async function journalOf(folder: string): Promise<Map<string, Entry[]>> {
  const store = await openSqlite(join(folder, 'journal.db'));
  expect(store.report.damage).toEqual([]);
  const sessions = new Map<string, Entry[]>();
  for (const { session } of await store.journal.list()) {
    const all: Entry[] = [];
    for await (const some of store.journal.read(session, 0)) all.push(...some);
    sessions.set(session, all);
  }
  await store.close();
  return sessions;
}

/** Everything that must not have happened, in words. */
function violations(sightings: readonly ReportedEffect[], sessions: Map<string, Entry[]>): string[] {
  const wrong: string[] = [];
  const keys = new Map<string, Set<string>>();
  const times = new Map<string, number>();
  for (const { kind, key, data } of sightings) {
    if (kind !== 'effect' || key.startsWith('pure ')) continue;
    const { key: idempotencyKey } = data as unknown as Effect;
    keys.set(key, (keys.get(key) ?? new Set()).add(idempotencyKey));
    times.set(key, (times.get(key) ?? 0) + 1);
  }
  for (const [key, used] of keys) if (used.size > 1) wrong.push(`${key} was done under ${used.size} idempotency keys`);
  for (const [key, count] of times)
    if (key.startsWith('once ') && count > 1) wrong.push(`${key} was done ${count} times`);
  for (const [session, entries] of sessions) wrong.push(...lostIn(session, entries, times));
  return wrong;
}

/** Results without an effect, effects without an end, runs without an end. */
function lostIn(session: string, entries: readonly Entry[], times: ReadonlyMap<string, number>): string[] {
  const wrong: string[] = [];
  const returned = new Set(entries.filter(({ type }) => type === 'effect.returned').map(({ key }) => key));
  for (const { type, key, name, safety } of entries) {
    const real = type === 'effect.requested' && safety !== 'pure' && name !== 'cancel' && returned.has(key);
    if (real && !times.has(`${safety} ${session} ${name}`))
      wrong.push(`${session} ${name} has a result but never happened`);
  }
  const ended = entries.some(({ type, key }) => key === 't1' && (type === 'call.completed' || type === 'call.errored'));
  if (!ended) wrong.push(`${session} has no end`);
  return wrong;
}

/** Runs whose result was acknowledged but is not what the journal holds. */
function lostAcks(sightings: readonly ReportedEffect[], sessions: Map<string, Entry[]>): string[] {
  const acks = sightings.filter(({ kind }) => kind === 'ack');
  return acks.flatMap(({ data }) => {
    const { session, outcome } = data as unknown as { session: string; outcome: string };
    const said = JSON.parse(outcome) as { status: string; output?: unknown; error?: unknown };
    const end = sessions.get(session)?.find(({ type, key }) => key === 't1' && /completed|errored/.test(type));
    const held =
      end?.type === 'call.completed' ? { status: 'ok', output: end.value } : { status: 'error', error: end?.error };
    return JSON.stringify(held) === JSON.stringify(said)
      ? []
      : [`${session}: acknowledged ${outcome}, held ${JSON.stringify(held)}`];
  });
}

async function killMany(kills: number, seed: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-kill-'));
  const sink = await startEffectSink(join(folder, 'sink.log'), sinkFile);
  const random = seededRandom(seed);
  for (let i = 0; i < kills; i++) {
    const code = await life(folder, sink.url, 5 + random() * random() * 400);
    expect(code, `life ${i} of seed ${seed} ended by itself`).toBe(null);
  }
  writeFileSync(join(folder, 'finish'), '');
  expect(await life(folder, sink.url)).toBe(0);
  const sightings = sink.reportedEffects();
  const sessions = await journalOf(folder);
  expect(violations(sightings, sessions), `seed ${seed}`).toEqual([]);
  expect(lostAcks(sightings, sessions), `seed ${seed}`).toEqual([]);
  expect(sightings.filter(({ kind }) => kind === 'ack').length).toBeGreaterThanOrEqual(sessions.size);
  expect(sightings.length, 'the kills hit no work').toBeGreaterThan(kills);
  await sink.close();
  rmSync(folder, { recursive: true });
}

verifies(
  'kernel.kill',
  `work is lost or done twice when the process is killed (${KILLS} times)`,
  async () => {
    const lanes = 2;
    await Promise.all(Array.from({ length: lanes }, (_, lane) => killMany(Math.ceil(KILLS / lanes), 7 + lane)));
  },
  580_000,
);
