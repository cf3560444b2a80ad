// Rolling restarts: two instances of a server share one store and are replaced again and again, by SIGTERM and by
// SIGKILL in turn, while clients start turns. Nothing may be lost or duplicated. See README.md.

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ServerCampaign } from './server/server-campaign.mjs';

const { values } = parseArgs({
  options: {
    restarts: { type: 'string', default: '100' },
    clients: { type: 'string', default: '4' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
});
const [restarts = 0, clients = 0, seed = 0] = [values.restarts, values.clients, values.seed].map(Number);

/** A request must succeed, at whichever server, within this time. */
const MAX_REQUEST_MS = 10_000;
const RETRY_DELAY_MS = 25;
/** Requests that take longer are in the log. */
const SLOW_MS = 1000;
/** The time within which every accepted turn must end after the last restart. */
const MAX_DRAIN_MS = 30_000;

let restartCount = 0;
let retriedRequests = 0;
let isOver = false;
/** @type {ServerCampaign} */
const campaign = new ServerCampaign('rolling-restarts', seed, () => ({
  restarts: restartCount,
  turns: campaign.turns.length,
}));
const { log } = campaign;

/**
 * Sends a request to a random server, and again to another one while it fails.
 * @param {string} path @param {object} [body]
 */
async function request(path, body) {
  const begun = Date.now();
  for (;;) {
    const live = [...campaign.servers];
    const server = live[campaign.below(live.length)];
    try {
      if (server === undefined) throw new Error('no server runs');
      const answer = await server.request(path, body);
      const tookMs = Date.now() - begun;
      // A result takes as long as its turn.
      if (!path.endsWith('/result')) log.waited(tookMs, path);
      if (tookMs > SLOW_MS) log.write('slow', { path, pid: server.pid, tookMs });
      return answer;
    } catch (error) {
      retriedRequests += 1;
      log.write('failed', { path, pid: server?.pid, error: String(error) });
      if (Date.now() - begun > MAX_REQUEST_MS) {
        log.violation(`${path} ${JSON.stringify(body)} failed for ${MAX_REQUEST_MS} ms: ${error}`);
        return undefined;
      }
      await sleep(RETRY_DELAY_MS);
    }
  }
}

/** Starts turns one after another, signals those that wait, and awaits the results of some. @param {number} client */
async function runClient(client) {
  for (let n = 0; !isOver && !log.isFull; n++) {
    const name = `c${client}-${n}`;
    const loop = campaign.random() < 0.5 ? 'delivery' : 'payment';
    const ms = campaign.below(1500);
    const started = await request('/turns', { loop, name, ms });
    if (started === undefined) continue;
    const turnId = String(started.turnId);
    campaign.turns.push({ turnId, name, ms });
    if (loop === 'payment') {
      const signal = { name: 'paid', payload: { amount: 5 }, id: name };
      await request(`/turns/${turnId}/signals`, signal);
      if (campaign.random() < 0.3) await request(`/turns/${turnId}/signals`, signal);
    }
    if (campaign.random() < 0.2) await request(`/turns/${turnId}/result`);
    await sleep(campaign.below(100));
  }
}

/**
 * Replaces a server: the next one starts before or after the end of this one.
 * @param {import('./server/server-process.mjs').ServerProcess} server @param {'SIGTERM' | 'SIGKILL'} signal
 */
async function replace(server, signal) {
  if (campaign.random() < 0.5) {
    const next = await campaign.startServer();
    await campaign.endServer(server, signal);
    return next;
  }
  const ended = campaign.endServer(server, signal);
  // Half of these starts overlap with the end.
  if (campaign.random() < 0.5) await ended;
  const next = await campaign.startServer();
  await ended;
  return next;
}

/** Waits until all turns have ended. */
async function drain() {
  const until = Date.now() + MAX_DRAIN_MS;
  for (const { turnId, name } of campaign.turns) {
    let status;
    while (status !== 'ok' && Date.now() < until) {
      status = (await request(`/turns/${turnId}/result`))?.status;
      if (status !== 'ok') await sleep(RETRY_DELAY_MS);
    }
    if (status !== 'ok') log.violation(`${name} (${turnId}) is ${status} ${MAX_DRAIN_MS} ms after the last restart`);
    if (log.isFull) return;
  }
}

await campaign.open();
const slots = [await campaign.startServer(), await campaign.startServer()];
const running = Promise.all(Array.from({ length: clients }, (_, client) => runClient(client)));
for (; restartCount < restarts && !log.isFull; restartCount++) {
  const slot = restartCount % 2;
  const signal = Math.floor(restartCount / 2) % 2 === 0 ? 'SIGTERM' : 'SIGKILL';
  const server = slots[slot];
  if (server !== undefined) slots[slot] = await replace(server, signal);
  await sleep(campaign.below(300));
}
isOver = true;
await running;
await drain();
const figures = await campaign.checkTurns();
const { longestOperationMs: longestRequestMs } = log;
campaign.finish({ restarts: restartCount, retriedRequests, longestRequestMs, ...figures }, values.keep);
