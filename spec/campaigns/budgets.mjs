// Random turns under random budgets, on several hosts that crash, restart, resume and fork. No limit is exceeded. See
// README.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { memoryStore } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { crashingStore, seededRandom } from 'rondo/testing';
import { budgetHost, LOOPS } from './budgets/budget-host.mjs';
import { BudgetSink } from './budgets/budget-sink.mjs';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    verbose: { type: 'boolean', default: false },
  },
});
const [runs = 0, firstSeed = 0] = [values.runs, values.seed].map(Number);
const folder = mkdtempSync(join(tmpdir(), 'rondo-budgets-'));
/** @type {string[]} */
const violations = [];
const totals = { runs: 0, turns: 0, effects: 0, modelCalls: 0, stops: 0, crashes: 0, forks: 0, exact: 0 };
/** The number of stops by reason. @type {Record<string, number>} */
const reasons = {};

/** Returns random limits. @param {() => number} random */
function randomLimits(random) {
  const below = (/** @type {number} */ n) => Math.floor(random() * n);
  /** @type {{ [counter: string]: number | { [tool: string]: number } }} */
  const limits = {};
  if (random() < 0.5) limits.effects = random() < 0.2 ? { act: below(20) } : below(60);
  if (random() < 0.3) limits.modelRounds = below(25);
  if (random() < 0.2) limits.toolRounds = below(12);
  if (random() < 0.3) limits.outputTokens = below(400);
  if (random() < 0.2) limits.inputTokens = below(20_000);
  if (random() < 0.3) limits.costMicros = below(20_000);
  if (random() < 0.3) limits.turns = below(6);
  if (Object.keys(limits).length === 0) limits.effects = below(10);
  return limits;
}

/** One run: several hosts on one store, with turns under one grant. @param {number} seed */
async function run(seed) {
  const random = seededRandom(seed);
  const below = (/** @type {number} */ n) => Math.floor(random() * n);
  const file = join(folder, `${seed}.db`);
  const store = seed % 5 === 0 ? await openSqlite(file) : memoryStore();
  const grant = { id: `g${seed}`, allowedTools: ['*'], limits: randomLimits(random) };
  const sink = new BudgetSink(grant);
  const crashes = random() < 0.5;
  let hasCrashed = false;
  let hostCount = 0;
  /** A host on the store, which may crash. @param {boolean} mayCrash */
  const newHost = (mayCrash) => {
    hostCount += 1;
    const point = { appendNumber: 1 + below(40), when: random() < 0.5 ? 'before' : 'after' };
    const used = mayCrash && crashes ? crashingStore(store, /** @type {never} */ (point)) : store;
    return budgetHost({ store: used, sink, random, seed: seed * 100 + hostCount });
  };
  /** Runs or resumes a turn until it ends or stops, on new hosts after crashes. @param {number} index */
  const drive = async (index) => {
    const loop = LOOPS[below(LOOPS.length)] ?? '';
    const width = 1 + below(random() < 0.1 ? 100 : 8);
    const request = { loop, input: { prompt: 'go', ...(loop.startsWith('group') && { width }) } };
    const session = `s${seed}-${index}`;
    let host = newHost(true);
    let result;
    for (let attempt = 0; result === undefined; attempt++) {
      try {
        const options = { ...request, key: 'k', sessionId: session, grant };
        result = await host.run(/** @type {never} */ (options));
      } catch (thrown) {
        const { code } = /** @type {{ code?: string }} */ (thrown);
        if (!hostCrashed(code) || attempt > 5) throw thrown;
        hasCrashed = true;
        totals.crashes += 1;
        host = newHost(attempt < 1);
      }
    }
    return { host: newHost(false), result };
  };
  try {
    const ended = await Promise.all(Array.from({ length: 1 + below(5) }, (_, index) => drive(index)));
    for (const { host, result } of ended) {
      totals.turns += 1;
      if (result.status === 'stopped') await checkStop(host, result, sink, seed);
      if (random() < 0.4) await fork(host, result, random);
    }
    const stopped = ended.flatMap(({ result }) => (result.status === 'stopped' ? [result.reason ?? ''] : []));
    for (const text of sink.violations({ countsCalls: !hasCrashed })) violations.push(`seed ${seed}: ${text}`);
    if (!hasCrashed) totals.exact += checkExact(stopped, sink, grant.limits, seed);
  } finally {
    await store.close();
    rmSync(file, { force: true });
  }
  totals.runs += 1;
  totals.effects += sink.effects.size;
  totals.modelCalls += sink.modelCalls;
}

/** @param {string | undefined} code */
function hostCrashed(code) {
  return code === 'STORE_FAILED' || code === 'STALE_WRITER';
}

/**
 * A stopped turn stays stopped without more authority.
 * @param {import('rondo/host').Host} host @param {{ turnId: string, reason?: string }} result
 * @param {BudgetSink} sink @param {number} seed
 */
async function checkStop(host, result, sink, seed) {
  totals.stops += 1;
  const reason = (result.reason ?? '').split(':')[0] ?? '';
  reasons[reason] = (reasons[reason] ?? 0) + 1;
  if (reason === 'turns') return;
  const before = sink.effects.size;
  const again = await host.resume(result.turnId);
  if (again.status !== 'stopped' && again.status !== 'ok')
    violations.push(`seed ${seed}: a stopped turn resumed as ${again.status}`);
  if (reason === 'effects' && sink.effects.size > before) violations.push(`seed ${seed}: a resume performed effects`);
}

/** Continues a copy of a turn, under the same grant. @param {import('rondo/host').Host} host
 * @param {{ turnId: string, sessionId: string }} result @param {() => number} random */
async function fork(host, result, random) {
  const entries = await host.archive.entries(result.sessionId).catch(() => []);
  for (let tries = 0; tries < 6 && entries.length > 0; tries++) {
    const at = Math.floor(random() * entries.length);
    const forked = await host.fork(result.turnId, { at }).catch(() => undefined);
    if (forked === undefined) continue;
    totals.forks += 1;
    await host.resume(forked.turnId);
    return;
  }
}

/**
 * A limit of counts that is the reason of a stop is reached exactly. Returns the number of comparisons.
 * @param {readonly string[]} stopped @param {BudgetSink} sink
 * @param {{ [counter: string]: unknown }} limits @param {number} seed
 */
function checkExact(stopped, sink, limits, seed) {
  const counts = { effects: sink.effects.size, modelRounds: sink.modelCalls, turns: sink.turns.size };
  let compared = 0;
  for (const [counter, count] of Object.entries(counts)) {
    const limit = limits[counter];
    // A turn that performs nothing is counted and not seen.
    if (typeof limit !== 'number' || counter === 'turns') continue;
    if (!stopped.some((reason) => reason.startsWith(`${counter}:`))) continue;
    compared += 1;
    if (count !== limit) violations.push(`seed ${seed}: stopped at ${counter} with ${count} of ${limit}`);
  }
  return compared;
}

console.log(`seed ${firstSeed}`);
for (let seed = firstSeed; seed < firstSeed + runs && violations.length < 30; seed++) {
  try {
    await run(seed);
  } catch (thrown) {
    violations.push(`seed ${seed}: ${thrown instanceof Error ? thrown.stack : thrown}`);
  }
  if (values.verbose || totals.runs % 100 === 0) console.log(JSON.stringify({ seed, ...totals }));
}
rmSync(folder, { recursive: true, force: true });
for (const text of violations) console.log(text);
console.log(JSON.stringify({ seed: firstSeed, ...totals, reasons, violations }));
process.exit(violations.length > 0 ? 1 : 0);
