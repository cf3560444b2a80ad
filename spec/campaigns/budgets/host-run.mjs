// A run of the campaign of budgets in this process: several hosts on one store, which crash at random appends.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStore } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { crashingStore, ManualClock, seededIds, seededRandom } from 'rondo/testing';
import { budgetHost } from './budget-host.mjs';
import { BudgetSink } from './budget-sink.mjs';
import { randomLimits, randomRequest } from './random-limits.mjs';
import { checkRun } from './run-check.mjs';
import { MAX_PASSES, TurnLog } from './turn-log.mjs';

const MAX_EFFECTS = 60;

/** One run with hosts of this process. */
export class HostRun {
  crashes = 0;
  forks = 0;
  /** The number of turns that continued under another grant. */
  raised = 0;
  #seed;
  #random;
  #store;
  #mayCrash;
  #hostCount = 0;
  #sink = new BudgetSink();
  /** The grant under which each session runs. @type {Map<string, string>} */
  #grantOf = new Map();
  #log = new TurnLog();

  /** @param {number} seed @param {import('rondo/host').Store} store */
  constructor(seed, store) {
    this.#seed = seed;
    this.#store = store;
    this.#random = seededRandom(seed);
    this.#mayCrash = this.#random() < 0.5;
  }

  /** Runs everything and returns the results. */
  async run() {
    const random = this.#random;
    const grant = { id: `g${this.#seed}`, allowedTools: ['*'], limits: randomLimits(random, MAX_EFFECTS) };
    const more = { id: `g${this.#seed}-more`, allowedTools: ['*'], limits: randomLimits(random, MAX_EFFECTS) };
    const sessions = Array.from({ length: 1 + Math.floor(random() * 5) }, (_, index) => `s${this.#seed}-${index}`);
    await Promise.all(sessions.map((session) => this.#start(session, grant)));
    for (const turnId of this.#log.turns()) if (random() < 0.4) await this.#fork(turnId);
    const raised = this.#log.stoppedTurns().filter(() => random() < 0.3);
    for (const turnId of raised) await this.#resume(turnId, more);
    this.raised = raised.length;
    await this.#continueAll();
    return checkRun({ store: this.#store, sink: this.#sink, log: this.#log, grants: [grant, more] });
  }

  /** Runs a turn until it ends or stops, on new hosts after crashes. @param {string} session @param {any} grant */
  async #start(session, grant) {
    const { loop, input } = randomRequest(this.#random, session);
    this.#grantOf.set(session, grant.id);
    for (let attempt = 0; ; attempt++) {
      const host = this.#newHost(attempt < 2);
      try {
        const request = { loop, input, key: 'k', sessionId: session, grant };
        const result = await host.run(/** @type {never} */ (request));
        this.#log.ended(grant.id, result);
        // The host crashed in its ledger.
        if (result.status === 'stopped' && /could not be written/.test(result.reason)) this.#log.interrupted(session);
        return;
      } catch (thrown) {
        const { code } = /** @type {{ code?: string }} */ (thrown);
        if ((code !== 'STORE_FAILED' && code !== 'STALE_WRITER') || attempt > 5) throw thrown;
        this.crashes += 1;
        this.#log.interrupted(session);
      }
    }
  }

  /** Continues a turn, perhaps under another grant. @param {string} turnId @param {any} [grant] */
  async #resume(turnId, grant) {
    const [session = ''] = turnId.split('.');
    const grantId = grant?.id ?? this.#grantOf.get(session) ?? '';
    const before = this.#grantOf.get(session) ?? '';
    this.#grantOf.set(session, grantId);
    const result = await this.#newHost(false).resume(turnId, /** @type {never} */ ({ ...(grant && { grant }) }));
    if (!this.#log.ended(grantId, result)) this.#grantOf.set(session, before);
  }

  /** Copies a turn at a random entry and continues the copy, under the same grant. @param {string} turnId */
  async #fork(turnId) {
    const host = this.#newHost(false);
    const [session = ''] = turnId.split('.');
    const entries = await host.archive.entries(session).catch(() => []);
    for (let tries = 0; tries < 6 && entries.length > 0; tries++) {
      const at = Math.floor(this.#random() * entries.length);
      const forked = await host.fork(turnId, { at }).catch(() => undefined);
      if (forked === undefined) continue;
      this.forks += 1;
      this.#grantOf.set(forked.sessionId, this.#grantOf.get(session) ?? '');
      await this.#resume(forked.turnId);
      return;
    }
  }

  /** Continues stopped turns until none of them performs anything, and asks for the results of the others again. */
  async #continueAll() {
    for (let pass = 0, before = -1; before !== this.#sink.events; pass++) {
      if (pass > MAX_PASSES) throw new Error('Turns that stopped make progress again and again.');
      before = this.#sink.events;
      for (const turnId of this.#log.stoppedTurns()) await this.#resume(turnId);
    }
    for (const turnId of this.#log.endedTurns()) await this.#resume(turnId);
  }

  /** A host on the store, which may crash. @param {boolean} mayCrash */
  #newHost(mayCrash) {
    const random = this.#random;
    this.#hostCount += 1;
    const point = { appendNumber: 1 + Math.floor(random() * 40), when: random() < 0.5 ? 'before' : 'after' };
    const crashing = mayCrash && this.#mayCrash;
    const store = crashing ? crashingStore(this.#store, /** @type {never} */ (point)) : this.#store;
    const ids = seededIds(this.#seed * 1000 + this.#hostCount);
    return budgetHost({ store, clock: new ManualClock(1_000_000), ids, recorder: this.#recorder(), random });
  }

  /** @returns {import('./budget-host.mjs').Recorder} */
  #recorder() {
    const wait = async () => {
      if (this.#random() < 0.3) await new Promise((resolve) => setImmediate(resolve));
    };
    const grantAt = (/** @type {string} */ turn) => this.#grantOf.get(turn.split('.')[0] ?? '') ?? '';
    return {
      effect: async ({ tool, key }) => {
        this.#sink.effect({ tool, key, grant: grantAt(key.slice(key.indexOf(':') + 1)) });
        await wait();
      },
      modelCall: async (call) => {
        this.#sink.modelCall({ ...call, grant: grantAt(call.turn) });
        await wait();
      },
    };
  }
}

/** Performs one run, every fifth on SQLite. @param {number} seed @param {string} folder */
export async function runWithHosts(seed, folder) {
  const file = join(folder, `${seed}.db`);
  const store = seed % 5 === 0 ? await openSqlite(file) : memoryStore();
  try {
    const run = new HostRun(seed, store);
    const results = await run.run();
    const { crashes, forks, raised } = run;
    return { ...results, crashes, forks, raised };
  } finally {
    await store.close();
    rmSync(file, { force: true });
  }
}
