// Our agent loop compared with the AI SDK's, both with the same mock model; the size of a session on disk; the import time.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openSqlite } from '../src/adapters/sqlite/index.js';
import { type AgentCase, agentCases, agentOf } from './agent-cases.js';
import { answersWith } from './agent-models.js';
import { median, ratio } from './measure.js';
import { atMost, note, section } from './table.js';

const ROUNDS = 3;
const STARTS = 15;
const MB = 1_000_000;

const program = fileURLToPath(new URL('agent-cases.js', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));

/** Measures the CPU microseconds per step of each case, one number per round, each in a new process. */
function measureCases(): Record<AgentCase, number[]> {
  const names = Object.keys(agentCases) as AgentCase[];
  const times = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<AgentCase, number[]>;
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names)
      times[name].push(Number(execFileSync(process.execPath, [program, name], { encoding: 'utf8' })));
  }
  return times;
}

function benchSpeed(): void {
  section('Agents compared with the AI SDK: one mock model, one tool, CPU time; ours journals every step');
  const times = measureCases();
  const ratioOf = (ours: AgentCase, theirs: AgentCase): number => ratio(times[ours], times[theirs]);
  atMost('a tool round of 20', ratioOf('20 rounds', 'AI SDK, 20 rounds'), 0.1, 'x generateText');
  atMost('the same, both streaming', ratioOf('20 rounds, watched', 'AI SDK, 20 rounds, streamed'), 0.1, 'x streamText');
  atMost('100 rounds against 20, per round', ratioOf('100 rounds', '20 rounds'), 1.3, 'x');
  atMost('a delta of 10,000, none lost', ratioOf('10,000 deltas', 'AI SDK, 10,000 deltas'), 0.2, 'x streamText');
  atMost('a tool call of 1,000 in one reply', ratioOf('1,000 calls', 'AI SDK, 1,000 calls'), 0.5, 'x generateText');
  for (const name of Object.keys(times) as AgentCase[]) note(`${name}: ${median(times[name]).toFixed(2)} us each`);
}

const TURNS = 100;
/** The characters of each prompt and answer; random, so that they cannot be compressed. */
const TEXT_CHARS = 25_000;
const randomText = (): string => randomBytes((TEXT_CHARS / 4) * 3).toString('base64url');

/** Runs turns of one session and closes the store. Returns the total size of its files. */
async function bytesAfter(folder: string, turns: number): Promise<number> {
  const store = await openSqlite(join(folder, 'session.db'));
  for (let n = 0; n < turns; n++) {
    const answer = randomText();
    const result = await agentOf(answersWith(answer))(randomText(), store, { sessionId: 'long' });
    if (result.status !== 'ok' || result.output.text !== answer) throw new Error('A turn did not end with its answer.');
  }
  await store.close();
  return readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}

async function benchBytes(): Promise<void> {
  section(`A session of ${TURNS} turns with 50 KB of new text each, on SQLite`);
  const folder = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  try {
    const half = await bytesAfter(folder, TURNS / 2);
    const all = await bytesAfter(folder, TURNS / 2);
    atMost('all files, the store closed', all / MB, 6, 'MB');
    atMost('bytes of the second half against the first', (all - half) / half, 1.2, 'x');
    note(`new text alone: ${((TURNS * 2 * TEXT_CHARS) / MB).toFixed(2)} MB`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the CPU milliseconds until a program that begins with this statement has loaded. */
function startOf(statement: string): number {
  const text = `${statement};const { user, system } = process.cpuUsage();console.log((user + system) / 1000)`;
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', text], { cwd: root, encoding: 'utf8' }));
}

/** `rondo/streaming` is an empty module of the same package; its cost is Node's own module resolution. */
function benchImport(): void {
  section('Start, CPU time');
  const extra = Array.from({ length: STARTS }, () => {
    const bare = startOf('0');
    const nothing = startOf("import 'rondo/streaming'") - bare;
    return { nothing, events: startOf("import 'rondo/events'") - bare };
  });
  const difference = median(extra.map(({ events, nothing }) => events - nothing));
  atMost("import 'rondo/events' over an empty module of the package", difference, 1, 'ms');
  note(`an empty module of a package costs Node ${median(extra.map(({ nothing }) => nothing)).toFixed(1)} ms`);
}

/** Measures agents. */
export async function benchAgents(): Promise<void> {
  benchSpeed();
  await benchBytes();
  benchImport();
}
