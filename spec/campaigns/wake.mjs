// Wake-ups after an exit: instance A of a server holds sleeping turns and exits, by SIGTERM or SIGKILL, just before they
// are due. Instance B must continue each of them within 2 seconds. See README.md.

import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { quantile } from './campaign-log.mjs';
import { ServerCampaign } from './server/server-campaign.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    turns: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
});
const [rounds = 0, turnsPerRound = 0, seed = 0] = [values.rounds, values.turns, values.seed].map(Number);

const MAX_WAKE_MS = 2000;
/** The wait for the effects of a round. */
const MAX_ROUND_MS = 15_000;
const POLL_MS = 20;

/** The time between the exit of A, or the due time if that is later, and the effect, by the kind of exit. */
/** @type {{ SIGTERM: number[], SIGKILL: number[] }} */
const delays = { SIGTERM: [], SIGKILL: [] };
/** @type {ServerCampaign} */
const campaign = new ServerCampaign('wake', seed, () => ({ turns: campaign.turns.length }));
const { log, sink } = campaign;

/** @typedef {import('./server/server-process.mjs').ServerProcess} ServerProcess */
/** @typedef {{ readonly name: string, readonly dueAt: number }} SleepingTurn */

/** Starts the two instances. The first one owns the store, which is A in half of the rounds. */
async function startInstances() {
  const [first, second] = [await campaign.startServer(), await campaign.startServer()];
  return campaign.random() < 0.5 ? { a: first, b: second } : { a: second, b: first };
}

/**
 * Starts the turns of a round at A. The due times are the earliest possible ones.
 * @param {ServerProcess} a @param {string} round @returns {Promise<readonly SleepingTurn[]>}
 */
function startTurns(a, round) {
  return Promise.all(
    Array.from({ length: turnsPerRound }, async (_, n) => {
      const name = `${round}-${n}`;
      const ms = 1000 + campaign.below(800);
      const dueAt = Date.now() + ms;
      const { turnId } = await a.request('/turns', { loop: 'delivery', name, ms });
      campaign.turns.push({ turnId: String(turnId), name, ms });
      return { name, dueAt };
    }),
  );
}

/**
 * Runs one round: ends A up to 300 ms before the first turn is due, and measures when B performs the effects.
 * @param {number} number @param {'SIGTERM' | 'SIGKILL'} signal
 */
async function round(number, signal) {
  const { a, b } = await startInstances();
  const turns = await startTurns(a, `${signal}-${number}`);
  const firstDueAt = Math.min(...turns.map(({ dueAt }) => dueAt));
  await sleep(Math.max(0, firstDueAt - Date.now() - campaign.below(300)));
  const sentAt = Date.now();
  const exitedAt = await campaign.endServer(a, signal);
  const endedAt = signal === 'SIGKILL' ? sentAt : exitedAt;
  const until = Date.now() + MAX_ROUND_MS;
  for (const { name, dueAt } of turns) {
    const attempts = () => sink.attemptsOf({ turn: name, step: 'parcel' });
    while (attempts().length === 0 && Date.now() < until) await sleep(POLL_MS);
    const at = attempts().at(-1)?.at;
    if (at === undefined) {
      log.violation(`${name} was not continued within ${MAX_ROUND_MS} ms`);
      continue;
    }
    const delay = Math.max(0, at - Math.max(dueAt, endedAt));
    delays[signal].push(delay);
    if (delay > MAX_WAKE_MS) log.violation(`${name} was continued ${delay} ms after the exit of its instance`);
  }
  await sleep(POLL_MS);
  await campaign.endServer(b, 'SIGTERM');
}

await campaign.open();
for (let number = 0; number < rounds && !log.isFull; number++) {
  await round(number, 'SIGTERM');
  await round(number, 'SIGKILL');
}
// A last server ends what the effects alone have not.
const last = await campaign.startServer();
for (const { turnId, name } of campaign.turns) {
  const { status } = await last.request(`/turns/${turnId}/result`);
  if (status !== 'ok') log.violation(`${name} is ${status} at the end`);
}
/** @param {readonly number[]} all */
const figuresOf = (all) => ({ p50: quantile(all, 0.5), p99: quantile(all, 0.99), max: quantile(all, 1) });
const wakeMs = { graceful: figuresOf(delays.SIGTERM), killed: figuresOf(delays.SIGKILL) };
const figures = await campaign.checkTurns();
campaign.finish({ rounds, wakeMs, ...figures }, values.keep);
