// A run of the campaign of budgets with processes: several at once on one SQLite store, killed at random times.

import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSqlite } from 'rondo/sqlite';
import { seededRandom } from 'rondo/testing';
import { BudgetProcess, SinkServer } from './budget-process.mjs';
import { BudgetSink } from './budget-sink.mjs';
import { randomLimits, randomRequest } from './random-limits.mjs';
import { checkRun } from './run-check.mjs';
import { MAX_PASSES, TurnLog } from './turn-log.mjs';

/** @typedef {import('./budget-sink.mjs').CampaignGrant} CampaignGrant */

const MAX_EFFECTS = 30;
const MAX_ATTEMPTS = 30;
/** A fifth of the runs has no kill, so that every count must be exact without interruptions. */
const UNKILLED_SHARE = 0.2;

/** One run with processes. */
class ProcessRun {
  kills = 0;
  /** The number of commands that a kill interrupted. */
  interrupted = 0;
  forks = 0;
  /** The number of turns that continued under another grant. */
  raised = 0;
  processes = 0;
  #seed;
  #folder;
  #random;
  #mayKill;
  #sink = new BudgetSink();
  #log = new TurnLog();
  /** @type {BudgetProcess[]} */
  #alive = [];

  /** @param {number} seed @param {string} folder */
  constructor(seed, folder) {
    this.#seed = seed;
    this.#folder = folder;
    this.#random = seededRandom(seed);
    this.#mayKill = this.#random() >= UNKILLED_SHARE;
  }

  /** Runs everything and returns the results. */
  async run() {
    const random = this.#random;
    const server = new SinkServer(this.#sink, seededRandom(this.#seed + 1));
    await server.listen(this.#socket);
    const grants = ['', '-more'].map((suffix) => this.#newGrant(suffix));
    const [grant, more] = /** @type {[CampaignGrant, CampaignGrant]} */ (grants);
    try {
      for (let n = 1 + this.#below(3); n > 0; n--) this.#startProcess();
      const sessions = Array.from({ length: 2 + this.#below(4) }, (_, index) => `s${this.#seed}-${index}`);
      const requests = sessions.map((session) => randomRequest(random, session));
      await this.#whileKilling(3, () => Promise.all(requests.map((request) => this.#start(request, grant))));
      const forked = this.#log.turns().filter(() => random() < 0.4);
      await this.#whileKilling(1, () => Promise.all(forked.map((turnId) => this.#fork(turnId))));
      const raised = this.#log.stoppedTurns().filter(() => random() < 0.5);
      this.raised = raised.length;
      await this.#whileKilling(2, () => Promise.all(raised.map((turnId) => this.#resume(turnId, more))));
      await this.#continueAll();
    } finally {
      await Promise.all(this.#alive.map((worker) => worker.kill()));
    }
    await server.close();
    const store = await openSqlite(this.#file);
    return checkRun({ store, sink: this.#sink, log: this.#log, grants }).finally(() => store.close());
  }

  get #file() {
    return join(this.#folder, 'store.db');
  }

  get #socket() {
    return join(this.#folder, 'sink.sock');
  }

  /** @param {number} n */
  #below(n) {
    return Math.floor(this.#random() * n);
  }

  /** @param {string} suffix @returns {CampaignGrant} */
  #newGrant(suffix) {
    return { id: `g${this.#seed}${suffix}`, allowedTools: ['*'], limits: randomLimits(this.#random, MAX_EFFECTS) };
  }

  #startProcess() {
    this.processes += 1;
    const seed = this.#seed * 1000 + this.processes;
    const started = new BudgetProcess({ file: this.#file, socket: this.#socket, seed });
    this.#alive.push(started);
    return started;
  }

  /** Kills up to `most` processes at random times while the work goes on. @param {number} most @param {() => Promise<unknown>} work */
  async #whileKilling(most, work) {
    const kills = this.#mayKill ? 1 + this.#below(most) : 0;
    let isDone = false;
    const working = work().finally(() => {
      isDone = true;
    });
    const killing = (async () => {
      for (let n = 0; n < kills && !isDone; n++) await this.#killOne(() => isDone);
    })();
    await Promise.all([working, killing]);
  }

  /** Kills a process some time after it began to work, and starts another. @param {() => boolean} isDone */
  async #killOne(isDone) {
    const busy = this.#alive.filter(({ load }) => load > 0);
    const victim = busy[this.#below(busy.length)] ?? this.#alive[0];
    await victim?.ready;
    // Some effects or some time later, so that kills hit every part of a turn.
    if (this.#random() < 0.7) await this.#sink.received(1 + this.#below(8), isDone);
    await sleep(this.#random() ** 2 * (this.#random() < 0.7 ? 15 : 150));
    if (victim === undefined || isDone()) return;
    this.kills += 1;
    this.#alive = this.#alive.filter((worker) => worker !== victim);
    this.#startProcess();
    await victim.kill();
  }

  /**
   * Sends a command to processes until one reports its end. Throws the error of a command that is refused.
   * @param {{ op: string, session?: string, turnId?: string, [option: string]: unknown }} command
   */
  async #perform(command) {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const worker = this.#alive[this.#below(this.#alive.length)];
      const { value, error, isLost } = (await worker?.send(command)) ?? {};
      if (value !== undefined) return value;
      this.interrupted += isLost ? 1 : 0;
      this.#log.interrupted(command.session ?? command.turnId?.split('.')[0] ?? '');
      if (error !== undefined && !this.#isOfKill(error.code))
        throw Object.assign(new Error(`${error.code} ${error.stack ?? error.message}`), { code: error.code });
    }
    throw new Error('A command found no process that performs it.');
  }

  /** True for a fault that a kill of another process explains. @param {string | undefined} code */
  #isOfKill(code) {
    return this.kills > 0 && (code === 'STORE_OWNED' || code === 'STALE_WRITER' || code === 'STORE_FAILED');
  }

  /** @param {import('./random-limits.mjs').Request} request @param {CampaignGrant} grant */
  async #start(request, grant) {
    this.#record(await this.#perform({ op: 'run', ...request, grant }));
  }

  /** Continues a turn, perhaps under another grant. @param {string} turnId @param {CampaignGrant} [grant] */
  async #resume(turnId, grant) {
    const resume = (/** @type {CampaignGrant | undefined} */ given) =>
      this.#perform({ op: 'resume', turnId, ...(given && { grant: given }) });
    const result = await resume(grant).catch((thrown) => {
      // A killed process has given it the grant already.
      if (grant === undefined || this.kills === 0 || thrown.code !== 'GRANT_CONFLICT') throw thrown;
      return resume(undefined);
    });
    this.#record(result);
  }

  /** Continues a copy of a turn, under the same grant. @param {string} turnId */
  async #fork(turnId) {
    const forked = await this.#perform({ op: 'fork', turnId });
    if (forked.turnId === undefined) return;
    this.forks += 1;
    await this.#resume(forked.turnId);
  }

  /** @param {import('./turn-log.mjs').Result & { grant: string }} result */
  #record(result) {
    this.#log.ended(result.grant, result);
  }

  /**
   * Continues stopped turns in a new process until none of them performs anything, and asks for the results of the
   * others again.
   */
  async #continueAll() {
    await Promise.all(
      this.#alive.map((worker) => (this.#random() < 0.5 ? worker.send({ op: 'close' }) : worker.kill())),
    );
    await Promise.all(this.#alive.map(({ exited }) => exited));
    this.#alive = [];
    this.#startProcess();
    for (let pass = 0, before = -1; before !== this.#sink.events; pass++) {
      if (pass > MAX_PASSES) throw new Error('Turns that stopped make progress again and again.');
      before = this.#sink.events;
      await Promise.all(this.#log.stoppedTurns().map((turnId) => this.#resume(turnId)));
    }
    await Promise.all(this.#log.endedTurns().map((turnId) => this.#resume(turnId)));
  }
}

/** Performs one run in a folder of its own. @param {number} seed @param {string} parent */
export async function runWithProcesses(seed, parent) {
  const folder = mkdtempSync(join(parent, `${seed}-`));
  const run = new ProcessRun(seed, folder);
  const results = await run.run();
  if (results.problems.length === 0) rmSync(folder, { recursive: true, force: true });
  const { kills, interrupted, forks, raised, processes } = run;
  return { ...results, kills, interrupted, forks, raised, processes };
}
