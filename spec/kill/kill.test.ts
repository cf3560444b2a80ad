// Sends SIGKILL to a worker under mixed load. An external process records its effects, and the journal is checked.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { openSqlite } from '../../src/adapters/sqlite/index.js';
import { expandLeaves } from '../../src/journal/leaf-entries.js';
import type { Entry } from '../../src/protocol/index.js';
import { type ReportedEffect, seededRandom, startEffectSink } from '../../src/testing/index.js';
import { repetitions } from '../support/repetitions.js';
import { verifies } from '../verifies.js';

const KILLS = repetitions(300, 6);
/** A worker is killed after at most this many effects, and at most this long after the last of them. */
const MAX_EFFECTS = 30;
const MAX_DELAY_MS = 40;
const worker = fileURLToPath(new URL('worker.mjs', import.meta.url));
const sinkFile = fileURLToPath(new URL('../../dist/testing/effect-sink.js', import.meta.url));

/** When a worker is killed: `ms` after it has opened the store and performed `effects` effects. */
interface KillMoment {
  readonly effects: number;
  readonly ms: number;
}

/**
 * Runs the worker until it exits or is killed. The moment is counted from its work, because a busy machine may take longer
 * to start a worker than to run it.
 */
async function runWorker(folder: string, url: string, kill?: KillMoment): Promise<number | null> {
  const child = spawn(process.execPath, [worker, folder, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    // A byte when the store is open, and one for each effect.
    if (kill !== undefined && bytes > kill.effects) timer ??= setTimeout(() => child.kill('SIGKILL'), kill.ms);
  });
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
    for await (const some of store.journal.read(session, 0)) all.push(...expandLeaves(some));
    sessions.set(session, all);
  }
  await store.close();
  return sessions;
}

/** Returns the violations: an effect under several keys, a repeated `once` effect, lost work. */
function violations(reported: readonly ReportedEffect[], sessions: Map<string, Entry[]>): string[] {
  const problems: string[] = [];
  const keys = new Map<string, Set<string>>();
  const times = new Map<string, number>();
  for (const { kind, key, data } of reported) {
    if (kind !== 'effect' || key.startsWith('pure ')) continue;
    const { key: idempotencyKey } = data as unknown as Effect;
    keys.set(key, (keys.get(key) ?? new Set()).add(idempotencyKey));
    times.set(key, (times.get(key) ?? 0) + 1);
  }
  for (const [key, used] of keys)
    if (used.size > 1) problems.push(`${key} was done under ${used.size} idempotency keys`);
  for (const [key, count] of times)
    if (key.startsWith('once ') && count > 1) problems.push(`${key} was done ${count} times`);
  for (const [session, entries] of sessions) problems.push(...lostIn(session, entries, times));
  return problems;
}

/** Returns results without a performed effect, and roots without an end. */
function lostIn(session: string, entries: readonly Entry[], times: ReadonlyMap<string, number>): string[] {
  const problems: string[] = [];
  const returned = new Set(entries.filter(({ type }) => type === 'effect.returned').map(({ key }) => key));
  for (const { type, key, name, safety } of entries) {
    const isPerformed = type === 'effect.requested' && safety !== 'pure' && name !== 'cancel' && returned.has(key);
    if (isPerformed && !times.has(`${safety} ${session} ${name}`))
      problems.push(`${session} ${name} has a result but never happened`);
  }
  const ended = entries.some(({ type, key }) => key === 't1' && (type === 'call.completed' || type === 'call.errored'));
  if (!ended) problems.push(`${session} has no end`);
  return problems;
}

/** Returns the roots whose acknowledged result differs from the journal. */
function lostAcknowledgements(reported: readonly ReportedEffect[], sessions: Map<string, Entry[]>): string[] {
  const acks = reported.filter(({ kind }) => kind === 'ack');
  return acks.flatMap(({ data }) => {
    const { session, outcome } = data as unknown as { session: string; outcome: string };
    const acknowledged = JSON.parse(outcome) as { status: string; output?: unknown; error?: unknown };
    const end = sessions.get(session)?.find(({ type, key }) => key === 't1' && /completed|errored/.test(type));
    const journaled =
      end?.type === 'call.completed' ? { status: 'ok', output: end.value } : { status: 'error', error: end?.error };
    return JSON.stringify(journaled) === JSON.stringify(acknowledged)
      ? []
      : [`${session}: acknowledged ${outcome}, journaled ${JSON.stringify(journaled)}`];
  });
}

async function killMany(kills: number, seed: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-kill-'));
  const sink = await startEffectSink(join(folder, 'sink.log'), sinkFile);
  const random = seededRandom(seed);
  for (let i = 0; i < kills; i++) {
    const moment = { effects: Math.floor(random() * random() * MAX_EFFECTS), ms: random() * random() * MAX_DELAY_MS };
    const code = await runWorker(folder, sink.url, moment);
    expect(code, `worker ${i} of seed ${seed} exited before it was killed`).toBe(null);
  }
  writeFileSync(join(folder, 'finish'), '');
  expect(await runWorker(folder, sink.url)).toBe(0);
  const reported = sink.reportedEffects();
  const sessions = await journalOf(folder);
  expect(violations(reported, sessions), `seed ${seed}`).toEqual([]);
  expect(lostAcknowledgements(reported, sessions), `seed ${seed}`).toEqual([]);
  expect(reported.filter(({ kind }) => kind === 'ack').length).toBeGreaterThanOrEqual(sessions.size);
  expect(reported.length, 'the kills interrupted no work').toBeGreaterThan(kills);
  await sink.close();
  rmSync(folder, { recursive: true });
}

verifies(
  'kernel.kill',
  `no work is lost or done twice when the process is killed (${KILLS} times)`,
  async () => {
    const lanes = 2;
    await Promise.all(Array.from({ length: lanes }, (_, lane) => killMany(Math.ceil(KILLS / lanes), 7 + lane)));
  },
  580_000,
);
