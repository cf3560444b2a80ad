// Fault injection: kills, blocks, stops and interrupts workers at random, depending on the mode.

import { setTimeout as sleep } from 'node:timers/promises';

/** @typedef {import('./worker-process.mjs').WorkerProcess} WorkerProcess */
/** @typedef {'kill' | 'interrupt' | 'block' | 'stop'} Action */

/**
 * The actions of each mode. An action that is listed more often is chosen more often.
 * @type {Readonly<Record<string, readonly Action[]>>}
 */
export const MODES = {
  plain: ['kill'],
  copying: ['kill'],
  blocked: ['kill', 'kill', 'kill', 'block'],
  stopped: ['kill', 'kill', 'kill', 'kill', 'kill', 'stop'],
  interrupted: ['kill', 'interrupt'],
  mixed: ['kill', 'kill', 'kill', 'kill', 'interrupt', 'interrupt', 'interrupt', 'block', 'block', 'stop'],
};

/** The time limit for a response of the next owner after the owner was killed. */
const TAKEOVER_MS = 2000;
/** The same limit in modes that block or stop workers, because the next owner may be paused. */
const TAKEOVER_PAUSED_MS = 12_000;

/** Injects faults and counts them. */
export class Chaos {
  kills = 0;
  ownerKills = 0;
  interrupts = 0;
  blocks = 0;
  stops = 0;
  /** @type {number[]} */
  takeovers = [];
  #fleet;
  #random;
  #log;
  #actions;

  /** @param {import('./fleet.mjs').Fleet} fleet @param {() => number} random @param {string} mode */
  constructor(fleet, random, mode) {
    this.#fleet = fleet;
    this.#random = random;
    this.#log = fleet.options.log;
    this.#actions = MODES[mode] ?? ['kill'];
  }

  /** Injects faults until this many workers were killed. @param {number} kills */
  async run(kills) {
    while (this.kills < kills && !this.#log.isFull) {
      if (this.#random() < 0.85) await this.#waitForAllReady();
      await sleep(this.#random() ** 2 * 900);
      const action = this.#actions[Math.floor(this.#random() * this.#actions.length)] ?? 'kill';
      await this.#perform(action);
    }
  }

  /** @param {Action} action */
  async #perform(action) {
    if (action === 'block') await this.#block();
    else if (action === 'stop') await this.#stop();
    else if (action === 'interrupt') await this.#interrupt();
    else await this.#kill();
    this.#fleet.fill();
  }

  /** Waits at most five seconds until all workers are ready. */
  async #waitForAllReady() {
    const deadline = Date.now() + 5000;
    while (this.#fleet.ready.length < this.#fleet.options.size && Date.now() < deadline) await sleep(20);
  }

  /** Returns a random worker. @param {readonly WorkerProcess[]} from @returns {WorkerProcess | undefined} */
  #oneOf(from) {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** Returns the owner with a probability of one half, otherwise a random worker. */
  #workerToKill() {
    const owner = this.#random() < 0.5 ? this.#fleet.owner : undefined;
    return owner ?? this.#oneOf([...this.#fleet.workers].filter(({ isEnding }) => !isEnding));
  }

  async #kill() {
    const chosen = new Set([this.#workerToKill()]);
    // Kills two workers in 10% of the cases, and all in 3%.
    if (this.#random() < 0.1) chosen.add(this.#oneOf(this.#fleet.ready));
    if (this.#random() < 0.03) for (const worker of this.#fleet.workers) chosen.add(worker);
    const ownerPid = this.#fleet.ownerPid;
    const at = Date.now();
    const killed = [...chosen].filter((worker) => worker !== undefined && !worker.isEnding && worker.alive);
    const survivors = this.#fleet.ready.filter((worker) => !killed.includes(worker));
    for (const worker of killed) this.#end(worker, 'SIGKILL');
    this.kills += killed.length;
    const killedOwner = killed.find((worker) => worker?.pid === ownerPid);
    this.#fleet.fill();
    if (killedOwner === undefined) return;
    this.ownerKills += 1;
    await this.#measureTakeover(killedOwner.pid, at, survivors);
  }

  /** Ends a worker with a signal. @param {WorkerProcess | undefined} worker @param {NodeJS.Signals} signal */
  #end(worker, signal) {
    if (worker === undefined) return;
    worker.isEnding = true;
    worker.kill(signal);
  }

  /**
   * Measures the time until a surviving worker gets a response of the next owner.
   * @param {number} killedPid @param {number} at @param {readonly WorkerProcess[]} survivors
   */
  async #measureTakeover(killedPid, at, survivors) {
    if (survivors.length === 0) return;
    const limit = this.#fleet.options.pausesWorkers ? TAKEOVER_PAUSED_MS : TAKEOVER_MS;
    for (;;) {
      const owner = this.#fleet.ownerPid;
      const hasNextOwner = owner !== undefined && owner !== killedPid && isAlive(owner);
      const unpaused = survivors.filter(({ alive, paused }) => alive && !paused);
      const worker = this.#oneOf(unpaused.length > 0 ? unpaused : survivors.filter(({ alive }) => alive));
      if (worker === undefined) return;
      if (hasNextOwner && (await this.#fleet.request(worker, 'turns', { session: 'nothing' })).kind === 'ok') break;
      if (Date.now() - at > 30_000) break;
      await sleep(10);
    }
    const ms = Date.now() - at;
    this.takeovers.push(ms);
    this.#log.write('takeover', { killedPid, owner: this.#fleet.ownerPid, ms });
    if (ms > limit) this.#log.violation(`the next owner responded ${ms} ms after ${killedPid} was killed`);
  }

  /** Interrupts a worker that is not the owner. The default action of the signal ends it. */
  async #interrupt() {
    const { owner } = this.#fleet;
    const worker = this.#oneOf(this.#fleet.ready.filter((candidate) => candidate !== owner && !candidate.paused));
    if (worker === undefined) return;
    this.#end(worker, this.#random() < 0.5 ? 'SIGINT' : 'SIGTERM');
    this.interrupts += 1;
    this.kills += 1;
    const timeout = sleep(5000, 'timeout', { ref: false });
    if ((await Promise.race([worker.exited, timeout])) !== 'timeout') return;
    this.#log.violation(`worker ${worker.pid} did not end after it was interrupted`);
    worker.kill('SIGKILL');
  }

  /** Blocks the event loop of a worker, usually of the owner, for five seconds. */
  async #block() {
    const { owner, ready } = this.#fleet;
    const worker = this.#random() < 0.75 && owner?.state === 'ready' ? owner : this.#oneOf(ready);
    if (worker === undefined || worker.paused || worker.isEnding) return;
    this.blocks += 1;
    worker.pause(5300);
    void this.#fleet.request(worker, 'block', { ms: 5000 });
    if (this.#random() < 0.7) await sleep(5000);
  }

  /** Stops the owner for 3 to 12 seconds. In one of four cases further faults may follow before it continues. */
  async #stop() {
    const { owner } = this.#fleet;
    if (owner === undefined || owner.paused || owner.isEnding) return;
    const ms = 3000 + this.#random() * 9000;
    this.stops += 1;
    const endPause = owner.pause(ms + 300);
    owner.kill('SIGSTOP');
    const continuing = sleep(ms).then(() => {
      endPause();
      // The worker needs some time until it runs again.
      owner.pause(300);
      owner.kill('SIGCONT');
    });
    if (this.#random() < 0.75) await continuing;
    else await sleep(this.#random() * 3000);
  }
}

/** True if a process with this pid exists. @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
