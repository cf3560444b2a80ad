// Random deliveries to hosted loops over HTTP and by the library, while the server and the workers are killed: each accepted
// delivery has one turn, no other has any, and no turn does what its grant does not permit. See README.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { seededRandom } from 'rondo/testing';
import { checkStore } from './hosted/check-store.mjs';
import { effectFile, readEffects } from './hosted/effect-file.mjs';
import { hostedHost } from './hosted/hosted-host.mjs';
import { RandomDeliveries } from './hosted/random-deliveries.mjs';
import { documentOf } from './hosted/scenario.mjs';
import { ServerPool } from './hosted/server-pool.mjs';
import { WorkerPool } from './hosted/worker-pool.mjs';

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '10000' },
    loops: { type: 'string', default: '20' },
    lanes: { type: 'string', default: '8' },
    seed: { type: 'string', default: '1' },
    every: { type: 'string', default: '1500' },
    keep: { type: 'boolean', default: false },
  },
});
const [count = 0, loopCount = 0, lanes = 0, seed = 0] = [
  values.deliveries,
  values.loops,
  values.lanes,
  values.seed,
].map(Number);
const everyMs = Number(values.every);

const WORKERS = 2;
/** Of this many deliveries, the operator sends one with the library. */
const PER_OPERATOR_DELIVERY = 50;
const MAX_VIOLATIONS = 30;

const folder = mkdtempSync(join(tmpdir(), 'rondo-signals-'));
const [file, sink] = [join(folder, 'store.db'), join(folder, 'effects.jsonl')];
const loops = Array.from({ length: loopCount }, (_, n) => `loop-${n}`);
const secretOf = (/** @type {string} */ loop) => `the secret of ${loop}`;
const variableOf = (/** @type {string} */ loop) => `${loop.toUpperCase().replace('-', '_')}_SECRET`;
const env = Object.fromEntries(loops.map((loop) => [variableOf(loop), secretOf(loop)]));
const random = seededRandom(seed);
const deliveries = new RandomDeliveries({ loops, secretOf, random, now: Date.now });
/** @type {string[]} */
const violations = [];
/** The delivery ids that may cause a turn, by loop. @type {Map<string, Map<string, boolean>>} */
const sent = new Map(loops.map((loop) => [loop, new Map()]));
/** @type {Record<string, number>} */
const kinds = {};
/** @type {Record<string, number>} */
const answers = {};
effectFile(sink);

const schema = {
  type: 'object',
  properties: { n: { type: 'integer' }, tool: { type: 'string' }, text: { type: 'string' } },
  required: ['n', 'tool'],
  additionalProperties: false,
};

/** Performs something with a host of this process. @param {(host: import('rondo/host').Host) => Promise<void>} perform */
async function withHost(perform) {
  const store = await openSqlite(file);
  const host = hostedHost({ store, clock: systemClock, ids: systemIds, perform: effectFile(sink) });
  await perform(host).finally(async () => {
    await host.close();
    await store.close();
  });
}

async function startLoops() {
  await withHost(async ({ hosted }) => {
    for (const loop of loops) {
      const verify = { method: 'hmac-sha256', secret: `env:${variableOf(loop)}` };
      const next = { tool: '$.signal.payload.tool', n: '$.signal.payload.n', id: '$.signal.id' };
      const more = { signals: { asked: { schema, verify } }, next, retry: { maxFailures: 1000 } };
      await hosted.start(documentOf(loop, 'asking', more, ['report']), { by: 'ada' });
    }
  });
}

/** Sends one delivery, and checks the answer. @param {ServerPool} server */
async function deliver(server) {
  const delivery = deliveries.next();
  const { kind, loop, id, body, headers, mayCause } = delivery;
  const known = sent.get(loop);
  if (mayCause && known?.has(id) === false) known.set(id, false);
  const { status, isRepeated } = await server.send(`/signals/${loop}/asked`, { body, headers });
  kinds[kind] = (kinds[kind] ?? 0) + 1;
  answers[status] = (answers[status] ?? 0) + 1;
  const isRepeatAccepted = isRepeated && status === 200 && delivery.answers.includes(202);
  if (!delivery.answers.includes(status) && !isRepeatAccepted)
    violations.push(`a ${kind} delivery ${id} to ${loop} was answered with ${status}`);
  if (status !== 200 && status !== 202) return;
  known?.set(id, true);
  if (kind !== 'duplicate') deliveries.accepted(delivery);
}

/** The operator sends a signal with the library, twice. @param {number} n */
async function deliverAsOperator(n) {
  const loop = loops[n % loops.length] ?? '';
  const id = `operator-${n}`;
  const delivery = { loop, name: 'asked', payload: { n, tool: n % 5 === 0 ? 'erase' : 'report' }, id };
  sent.get(loop)?.set(id, false);
  for (let isDone = false; !isDone; )
    try {
      await withHost(async ({ hosted }) => {
        await hosted.signal(delivery);
        if ((await hosted.signal(delivery)) !== 'duplicate') violations.push(`${id} was accepted twice`);
      });
      sent.get(loop)?.set(id, true);
      isDone = true;
    } catch (thrown) {
      const { name, code } = /** @type {{ name?: string, code?: string }} */ (thrown);
      if (name !== 'Fault' && code !== 'INBOX_FULL') throw thrown;
      await wait(50);
    }
}

/** @param {() => boolean} isDone @param {ServerPool} server @param {WorkerPool} pool */
async function killBoth(isDone, server, pool) {
  for (let n = 0; !isDone(); n++) {
    await wait(everyMs * (0.5 + random()));
    if (n % 3 === 2) await server.replace();
    else await pool.killOne();
  }
}

console.log(`seed ${seed}`);
const begun = Date.now();
await startLoops();
const server = new ServerPool(file, env);
await server.start();
const pool = new WorkerPool([file, sink, '16', '2']);
pool.start(WORKERS);
let [next, isSending] = [0, true];
const killing = killBoth(() => !isSending, server, pool);
const lane = async () => {
  while (next < count && violations.length < MAX_VIOLATIONS) {
    next += 1;
    if (next % PER_OPERATOR_DELIVERY === 0) await deliverAsOperator(next);
    else await deliver(server);
  }
};
await Promise.all(Array.from({ length: lanes }, lane));
const sendMs = Date.now() - begun;
isSending = false;
await killing;
await server.stop();
await pool.stop();
violations.push(...pool.failures, ...server.errors.filter((text) => !/^Fault/.test(text)));

const store = await openSqlite(file, { check: 'full' });
const host = hostedHost({ store, clock: systemClock, ids: systemIds, perform: effectFile(sink) });
await host.work({ once: true });
const effects = readEffects(sink);
for (const { key, tool } of effects)
  if (tool !== 'report') violations.push(`${key} performed ${tool}, outside of its grant`);
const effectsOf = (/** @type {Record<string, any>} */ { input }) => (input.tool === 'erase' ? 0 : 1);
const expected = new Map(
  loops.map((loop) => [loop, { effects: effectsOf, ...(sent.has(loop) && { sent: sent.get(loop) }) }]),
);
const report = (/** @type {string} */ text) => violations.push(text);
const parts = { store, clock: systemClock, ids: systemIds, effects, report };
const { turns, causes, failed } = await checkStore({ ...parts, expected: /** @type {never} */ (expected) });
const acknowledged = [...sent.values()].flatMap((ids) => [...ids.values()]).filter((isKnown) => isKnown).length;
const refused = turns.filter(({ request }) => request.input.tool === 'erase').length;
if (pool.kills + server.kills === 0) violations.push('nothing was killed');
await host.close();
await store.close();
if (violations.length === 0 && !values.keep) rmSync(folder, { recursive: true, force: true });
else console.log(folder);
for (const text of violations.slice(0, MAX_VIOLATIONS)) console.log(text);
const kills = { workers: pool.kills, servers: server.kills };
const figures = { acknowledged, turns: turns.length, causes, failed, refusedTools: refused, effects: effects.length };
const summary = {
  seed,
  deliveries: next,
  kinds,
  answers,
  kills,
  repeatedRequests: server.repeated,
  ...figures,
  sendMs,
};
console.log(JSON.stringify({ ...summary, violations: violations.slice(0, MAX_VIOLATIONS) }));
process.exit(violations.length > 0 ? 1 : 0);
