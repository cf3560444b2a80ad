// Many processes start the same key at the same time, on a store that does not exist yet. The turn runs once. See
// README.md.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openSqlite } from 'rondo/sqlite';
import { seededRandom } from 'rondo/testing';
import { CampaignLog, quantile } from './campaign-log.mjs';
import { eachLine } from './json-lines.mjs';
import { effectValue, Sink } from './sink.mjs';

const PROGRESS_MS = 5000;
const MAX_MS = 10_000;
const program = fileURLToPath(new URL('same-key-worker.mjs', import.meta.url));

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    processes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
});
const [rounds = 0, processes = 0, seed = 0] = [values.rounds, values.processes, values.seed].map(Number);

/**
 * The report of a process; `code` is its exit code.
 * @typedef {object} Report
 * @property {number} pid
 * @property {string} [turnId]
 * @property {string} [status]
 * @property {unknown} [output]
 * @property {unknown} [thrown]
 * @property {number | null} [code]
 */

const folder = mkdtempSync(join(tmpdir(), 'rondo-same-key-'));
const log = new CampaignLog(join(folder, 'log.jsonl'));
const stderr = openSync(join(folder, 'stderr.log'), 'a');
const sink = new Sink(seededRandom(seed));
const socket = join(folder, 'sink.sock');
/** The time of each process from the start signal to its exit, in milliseconds. @type {number[]} */
const durations = [];

/** Starts a process that waits for the start signal. @param {string} file @param {string} turn */
function startProcess(file, turn) {
  const child = spawn(process.execPath, [program, file, socket, turn], { stdio: ['pipe', 'pipe', stderr] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new TypeError('The process has no pipes.');
  stdin.on('error', () => {});
  /** @type {Report} */
  const report = { pid: child.pid ?? 0 };
  const closed = once(child, 'close').then(([code]) => {
    report.code = code;
  });
  const ready = new Promise((resolve) => {
    eachLine(stdout, (line) => {
      Object.assign(report, JSON.parse(line));
      resolve(undefined);
    });
  });
  return { child, stdin, report, closed, ready: Promise.race([ready, closed]) };
}

/**
 * Sends the start signal and waits until the process exits. Kills it at the time limit.
 * @param {ReturnType<typeof startProcess>} started @param {string} turn
 */
async function runToExit({ child, stdin, report, closed }, turn) {
  const at = Date.now();
  stdin.write('go\n');
  const timeout = sleep(MAX_MS, 'timeout', { ref: false });
  if ((await Promise.race([closed, timeout])) === 'timeout') {
    log.violation(`${turn}: process ${report.pid} did not end within ${MAX_MS} ms`);
    child.kill('SIGKILL');
    await closed;
  }
  durations.push(Date.now() - at);
  log.write('report', { turn, ...report });
}

/** Runs one round and checks it. @param {number} number */
async function round(number) {
  const turn = `round-${number}`;
  const file = join(folder, turn, 'data', 'journal.db');
  const started = Array.from({ length: processes }, () => startProcess(file, turn));
  await Promise.all(started.map(({ ready }) => ready));
  await Promise.all(started.map((contender) => runToExit(contender, turn)));
  const stepId = { turn, step: '0-once' };
  const output = JSON.stringify([effectValue(stepId)]);
  const ids = new Set(started.map(({ report }) => report.turnId));
  if (ids.size !== 1) log.violation(`${turn}: the processes report ${ids.size} turn ids: ${[...ids].join(', ')}`);
  for (const { report } of started) {
    const { status, code } = report;
    const isCorrect = status === 'ok' && code === 0 && JSON.stringify(report.output) === output;
    if (!isCorrect) log.violation(`${turn}: a process reports ${JSON.stringify(report)}`);
  }
  const attempts = sink.attemptsOf(stepId);
  if (attempts.length !== 1)
    log.violation(`${turn}: the effect was performed ${attempts.length} times: ${JSON.stringify(attempts)}`);
  await inspect(file, turn);
  if (log.violations.length === 0) rmSync(join(folder, turn), { recursive: true });
}

/** Checks that the store has no damage and one session. @param {string} file @param {string} turn */
async function inspect(file, turn) {
  const store = await openSqlite(file, { check: 'full' });
  const { report } = /** @type {{ report?: { damage?: readonly unknown[] } }} */ (/** @type {unknown} */ (store));
  if (report?.damage?.length !== 0) log.violation(`${turn}: the store is damaged: ${JSON.stringify(report)}`);
  const sessions = await store.journal.list();
  if (sessions.length !== 1) log.violation(`${turn}: the store has ${sessions.length} sessions`);
  await store.close();
}

await sink.listen(socket);
let done = 0;
const progress = setInterval(() => {
  console.log(`same-key: ${done} rounds, ${sink.count} effects, ${log.violations.length} violations`);
}, PROGRESS_MS);
while (done < rounds && !log.isFull) await round(++done);
clearInterval(progress);
sink.close();
const { violations } = log;
const failed = violations.length > 0;
if (failed || values.keep) console.log(`The data directories and the log of all reports: ${folder}`);
else rmSync(folder, { recursive: true });
const processMs = { p50: quantile(durations, 0.5), p99: quantile(durations, 0.99), max: quantile(durations, 1) };
console.log(
  JSON.stringify({ mode: 'same-key', seed, rounds: done, processes, effects: sink.count, processMs, violations }),
);
process.exit(failed ? 1 : 0);
