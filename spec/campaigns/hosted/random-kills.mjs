// The scenario with worker processes on one SQLite file, which are killed with SIGKILL at random. They read the time from
// the campaign, which lets it pass unevenly, and sometimes for hours while no worker runs.

import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { seededRandom } from 'rondo/testing';
import { checkStore } from './check-store.mjs';
import { effectFile, readEffects } from './effect-file.mjs';
import { hostedHost } from './hosted-host.mjs';
import { Scenario, START } from './scenario.mjs';
import { ClockHand } from './shared-clock.mjs';
import { WorkerPool } from './worker-pool.mjs';

const HOUR_MS = 3_600_000;
const WORKERS = 2;
const TICK_MS = 15;
/** How far the clock goes in a tick at most. */
const MAX_STEP_MS = 20_000;
/** How many ticks pass between two rounds of the operator. */
const TICKS_PER_ROUND = 25;
/** A worker is killed this long after the kill before, at most. */
const MAX_PAUSE_MS = 500;
/** Of this many kills, one kills all workers, and the clock goes on for hours. Fewer may all fall between two turns. */
const KILLS_PER_OUTAGE = 40;
/** The time limit for everything that is due after the last kill. */
const MAX_PASSES = 500;

/** One run of the campaign in a folder. */
export class RandomKills {
  /** @type {string[]} */
  violations = [];
  #file;
  #sink;
  #hand;
  #pool;
  #scenario;
  #random;
  #kills;
  outages = 0;
  /** The times of the kills. @type {number[]} */
  #killedAt = [];

  /** @param {string} folder @param {number} kills @param {number} seed */
  constructor(folder, kills, seed) {
    this.#kills = kills;
    this.#random = seededRandom(seed);
    this.#file = join(folder, 'store.db');
    this.#sink = join(folder, 'effects.jsonl');
    const clock = join(folder, 'clock');
    this.#hand = new ClockHand(clock, START);
    effectFile(this.#sink);
    this.#pool = new WorkerPool([this.#file, this.#sink, '16', '20'], { HOSTED_CLOCK: clock });
    // About as many hours as the clock shows at the end.
    const duration = Math.max(4, kills * 0.25) * HOUR_MS;
    const [effects, random] = [() => readEffects(this.#sink), this.#random];
    const signals = 4 + Math.floor(kills / 6);
    this.#scenario = new Scenario({ hours: 1, signals, duration, effects, random, now: () => this.#hand.now() });
    this.#scenario.pause('orders', START + duration / 3, START + duration / 2);
  }

  /** Runs everything and returns the figures. */
  async run() {
    await this.#operate();
    this.#pool.start(WORKERS);
    const killing = this.#kill();
    let isKilling = true;
    const noted = killing.then(() => {
      isKilling = false;
    });
    for (let tick = 1; isKilling; tick++) {
      await wait(TICK_MS);
      this.#hand.set(this.#hand.now() + Math.floor(this.#random() * MAX_STEP_MS));
      if (tick % TICKS_PER_ROUND === 0) await this.#operate();
    }
    await noted;
    await this.#pool.stop();
    this.violations.push(...this.#pool.failures);
    return this.#finish();
  }

  async #kill() {
    while (this.#pool.kills < this.#kills) {
      await wait(this.#random() * MAX_PAUSE_MS);
      this.#killedAt.push(this.#hand.now());
      const isOutage = this.#pool.kills % KILLS_PER_OUTAGE === KILLS_PER_OUTAGE - 1;
      if (!(await this.#pool.killOne()) || !isOutage) continue;
      this.outages += 1;
      this.#hand.set(this.#hand.now() + Math.floor((1 + this.#random() * 4) * HOUR_MS));
    }
  }

  /** The operator opens the store for each round, so that a worker owns it in between. */
  async #operate() {
    const store = await openSqlite(this.#file).catch(() => undefined);
    if (store === undefined) return;
    const host = this.#host(store);
    try {
      await this.#scenario.act(host);
    } catch (thrown) {
      // The worker that owned the store was killed: the request is repeated.
      if (/** @type {{ name?: string }} */ (thrown).name !== 'Fault') throw thrown;
    } finally {
      await host.close({ timeoutMs: 1000 }).catch(() => undefined);
      await store.close().catch(() => undefined);
    }
  }

  /** @param {import('rondo/host').Store} store */
  #host(store) {
    const clock = { now: () => this.#hand.now(), elapsed: () => performance.now(), sleep: sleepReal };
    return hostedHost({ store, clock, ids: systemIds, perform: effectFile(this.#sink) });
  }

  /** Does what is left, without kills, and checks. */
  async #finish() {
    const store = await openSqlite(this.#file);
    const host = this.#host(store);
    this.#hand.set(Math.max(this.#hand.now(), (this.#scenario.lastAt ?? 0) + 1));
    const onProblem = (/** @type {{ code: string, message: string, turnId: string }} */ problem) => {
      if (problem.code !== 'EFFECT_IN_DOUBT') this.violations.push(`${problem.turnId}: ${problem.message}`);
    };
    for (let pass = 0; ; pass++) {
      if (pass > MAX_PASSES) this.violations.push('what is due never ends');
      await this.#scenario.act(host);
      await host.work({ once: true, onProblem });
      await this.#scenario.act(host);
      const [due] = await store.dueTurns.list(this.#hand.now(), 1);
      const isDone = due === undefined && (this.#scenario.nextAt ?? Number.POSITIVE_INFINITY) > this.#hand.now();
      if (isDone || pass > MAX_PASSES) break;
    }
    const effects = readEffects(this.#sink);
    const report = (/** @type {string} */ text) => this.violations.push(text);
    const clock = { now: () => this.#hand.now(), elapsed: () => performance.now(), sleep: sleepReal };
    const { expected, resolved, repeatedDeliveries } = this.#scenario;
    const { turns, ...figures } = await checkStore({ store, clock, ids: systemIds, effects, expected, report });
    await host.close();
    await store.close();
    const performed = new Set(effects.map(({ key }) => key)).size;
    const hours = Math.round((this.#hand.now() - START) / HOUR_MS);
    const repeated = effects.length - performed;
    this.violations.push(...this.#scenario.earlyApprovals(effects));
    const isInterrupted = (/** @type {import('./read-loop.mjs').Turn} */ { request, ends }) =>
      this.#killedAt.some((at) => request.at < at && at < (ends[0]?.at ?? 0));
    const interrupted = turns.filter(isInterrupted).length;
    const { kills } = this.#pool;
    if (interrupted === 0 && kills >= KILLS_PER_OUTAGE) this.violations.push('no turn was open at a kill');
    return {
      kills,
      outages: this.outages,
      hours,
      interrupted,
      ...figures,
      turns: turns.length,
      effects: performed,
      repeated,
      resolved,
      repeatedDeliveries,
    };
  }
}

/** @param {number} ms @param {AbortSignal} signal */
async function sleepReal(ms, signal) {
  await wait(ms, undefined, { signal });
}
