// Sleeping turns, and turns that wait for a signal, are continued by a `rondo worker` that is killed every second. Each
// turn is processed once. See README.md.

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createRondo } from 'rondo';
import { deliver, delivery, paid, payment } from './server/loops.mjs';
import { createProject } from './server/project.mjs';
import { ServerCampaign } from './server/server-campaign.mjs';
import { KilledWorker } from './server/worker-process.mjs';

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    every: { type: 'string', default: '1000' },
    from: { type: 'string', default: 'start' },
    keep: { type: 'boolean', default: false },
  },
});
const [count = 0, seed = 0, everyMs = 0] = [values.turns, values.seed, values.every].map(Number);

/** The sleeping turns become due in this time, after the time that it takes to start all turns. */
const SLEEP_MS = Math.max(1500, count * 20);
const START_MS = 1000 + count * 10;
/** The store is opened and closed for each batch of signals, so that the workers own it in between. */
const SIGNALS_PER_BATCH = 25;
const MAX_STALL_MS = 30_000;
const POLL_MS = 100;

/** @type {KilledWorker | undefined} */
let worker;
let sentCount = 0;
let repeatedCount = 0;
/** @type {ServerCampaign} */
const campaign = new ServerCampaign('worker-kills', seed, () => ({
  kills: worker?.kills ?? 0,
  signals: sentCount,
  effects: campaign.sink.effects.size,
}));
const { log, shared, sink } = campaign;

/** Starts the turns and leaves them to the worker. Returns those that wait for a signal. */
async function startTurns() {
  const rondo = await createRondo({ data: shared.data, loops: [deliver, delivery, payment] });
  const start = async (/** @type {typeof delivery} */ loop, /** @type {string} */ name, /** @type {number} */ ms) => {
    const { id: turnId } = await rondo.start(loop, { name, ms }, { key: name });
    const turn = { turnId, name, ms };
    campaign.turns.push(turn);
    return turn;
  };
  const startPair = async (/** @type {number} */ n) => {
    await start(delivery, `sleep-${n}`, START_MS + campaign.below(SLEEP_MS));
    return start(payment, `signal-${n}`, 0);
  };
  const waiting = await Promise.all(Array.from({ length: count }, (_, n) => startPair(n)));
  await rondo.close();
  return waiting;
}

/** Sends a signal until it is accepted. Returns false for a repeated one. @param {import('rondo').Rondo} rondo @param {string} turnId */
async function send(rondo, turnId) {
  for (;;) {
    try {
      return await rondo.signal(turnId, paid, { amount: 5 }, { id: 'payment-1' });
    } catch (error) {
      const { name, code } = /** @type {{ name?: string, code?: string }} */ (error);
      log.write('failed', { turnId, error: String(error) });
      // The worker that owned the store was killed, and the outcome is unknown: the same delivery is sent again.
      if (name !== 'Fault') throw error;
      log.fault('signal', String(code));
      await sleep(POLL_MS);
    }
  }
}

/** Sends a batch of signals, some of them twice, with a runtime that has none of the loops. @param {readonly { turnId: string }[]} batch */
async function sendBatch(batch) {
  const rondo = await createRondo({ data: shared.data });
  for (const { turnId } of batch) {
    await send(rondo, turnId);
    sentCount += 1;
    if (campaign.random() > 0.3) continue;
    const isNew = await send(rondo, turnId);
    repeatedCount += 1;
    if (isNew) log.violation(`the second delivery of payment-1 to ${turnId} is reported as new`);
  }
  await rondo.close();
}

/** Waits until every turn has performed its effect, or nothing has happened for a while. */
async function waitForEffects() {
  for (let [before, since] = [-1, Date.now()]; sink.effects.size < 2 * count; await sleep(POLL_MS)) {
    if (sink.effects.size !== before) [before, since] = [sink.effects.size, Date.now()];
    if (Date.now() - since > MAX_STALL_MS) {
      log.violation(`no turn was continued for ${MAX_STALL_MS} ms`);
      return;
    }
  }
}

await campaign.open();
// A turn that is due while the others are started is continued by this process.
process.env.CAMPAIGN_SINK = shared.sink;
const waiting = await startTurns();
const begun = Date.now();
const from = values.from === 'work' ? 'work' : 'start';
worker = new KilledWorker(shared, createProject(campaign.folder), { everyMs, from });
while (waiting.length > 0 && !log.isFull) {
  await sendBatch(waiting.splice(0, SIGNALS_PER_BATCH));
  await sleep(campaign.below(everyMs / 2));
}
await waitForEffects();
const ms = Date.now() - begun;
await worker.stop();
for (const failure of worker.failures) log.violation(failure);
// The last results may not be recorded: another worker records them.
const last = await campaign.startServer();
for (const { turnId, name } of campaign.turns) {
  const { status } = await last.request(`/turns/${turnId}/result`);
  if (status !== 'ok') log.violation(`${name} is ${status} at the end`);
}
const { kills, results } = worker;
const signals = { sent: sentCount, sentTwice: repeatedCount };
const figures = await campaign.checkTurns();
const { faults } = log;
campaign.finish({ kills, everyMs, from, ms, signals, resultsReported: results, faults, ...figures }, values.keep);
