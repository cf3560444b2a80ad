// What a campaign does to its workers: kills, blocks, stops and interrupts them, by mode.

import { setTimeout as sleep } from 'node:timers/promises';

/** @typedef {import('./worker-process.mjs').WorkerProcess} WorkerProcess */
/** @typedef {'kill' | 'interrupt' | 'block' | 'stop'} Action */

/** What each mode does, each action as often as it is listed. @type {Readonly<Record<string, readonly Action[]>>} */
export const MODES = {
  plain: ['kill'],
  copying: ['kill'],
  blocked: ['kill', 'kill', 'kill', 'block'],
  stopped: ['kill', 'kill', 'kill', 'kill', 'kill', 'stop'],
  interrupted: ['kill', 'interrupt'],
  mixed: ['kill', 'kill', 'kill', 'kill', 'interrupt', 'interrupt', 'interrupt', 'block', 'block', 'stop'],
};

/** The next owner must answer within this time after a kill. */
const TAKEOVER_MS = 2000;
/** The same where workers are blocked or stopped, so that a survivor may be held up itself. */
const TAKEOVER_PAUSED_MS = 12_000;

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
  #record;
  #actions;

  /** @param {import('./fleet.mjs').Fleet} fleet @param {() => number} random @param {string} mode */
  constructor(fleet, random, mode) {
    this.#fleet = fleet;
    this.#random = random;
    this.#record = fleet.options.record;
    this.#actions = MODES[mode] ?? ['kill'];
  }

  /** Goes on until so many workers were killed. @param {number} kills */
  async run(kills) {
    while (this.kills < kills && !this.#record.spent) {
      if (this.#random() < 0.85) await this.#complete();
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

  /** Waits until all workers are ready, for a while. */
  async #complete() {
    const until = Date.now() + 5000;
    while (this.#fleet.ready.length < this.#fleet.options.size && Date.now() < until) await sleep(20);
  }

  /** @param {readonly WorkerProcess[]} from @returns {WorkerProcess | undefined} */
  #oneOf(from) {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** The owner about half of the time. */
  #victim() {
    const owner = this.#random() < 0.5 ? this.#fleet.owner : undefined;
    return owner ?? this.#oneOf([...this.#fleet.workers].filter(({ doomed }) => !doomed));
  }

  async #kill() {
    const victims = new Set([this.#victim()]);
    // Now and then two at once, seldom all.
    if (this.#random() < 0.1) victims.add(this.#oneOf(this.#fleet.ready));
    if (this.#random() < 0.03) for (const worker of this.#fleet.workers) victims.add(worker);
    const ownerPid = this.#fleet.ownerPid;
    const at = Date.now();
    const list = [...victims].filter((worker) => worker !== undefined && !worker.doomed && worker.alive);
    const survivors = this.#fleet.ready.filter((worker) => !list.includes(worker));
    for (const worker of list) this.#end(worker, 'SIGKILL');
    this.kills += list.length;
    const dead = list.find((worker) => worker?.pid === ownerPid);
    this.#fleet.fill();
    if (dead === undefined) return;
    this.ownerKills += 1;
    await this.#takeover(dead.pid, at, survivors);
  }

  /** @param {WorkerProcess | undefined} worker @param {NodeJS.Signals} signal */
  #end(worker, signal) {
    if (worker === undefined) return;
    worker.doomed = true;
    worker.kill(signal);
  }

  /** Measures the time until another owner answers through a worker that was there before. @param {number} dead @param {number} at @param {readonly WorkerProcess[]} survivors */
  async #takeover(dead, at, survivors) {
    if (survivors.length === 0) return;
    const limit = this.#fleet.options.pausing ? TAKEOVER_PAUSED_MS : TAKEOVER_MS;
    for (;;) {
      const owner = this.#fleet.ownerPid;
      const next = owner !== undefined && owner !== dead && isAlive(owner);
      const free = survivors.filter(({ alive, paused }) => alive && !paused);
      const through = this.#oneOf(free.length > 0 ? free : survivors.filter(({ alive }) => alive));
      if (through === undefined) return;
      if (next && (await this.#fleet.ask(through, 'turns', { session: 'nothing' })).kind === 'ok') break;
      if (Date.now() - at > 30_000) break;
      await sleep(10);
    }
    const ms = Date.now() - at;
    this.takeovers.push(ms);
    this.#record.log('takeover', { dead, owner: this.#fleet.ownerPid, took: ms });
    if (ms > limit) this.#record.violation(`after the kill of ${dead} the next owner answered after ${ms} ms`);
  }

  /** Interrupts a worker that is not the owner; it dies by the default action of the signal. */
  async #interrupt() {
    const { owner } = this.#fleet;
    const worker = this.#oneOf(this.#fleet.ready.filter((one) => one !== owner && !one.paused));
    if (worker === undefined) return;
    this.#end(worker, this.#random() < 0.5 ? 'SIGINT' : 'SIGTERM');
    this.interrupts += 1;
    this.kills += 1;
    const late = sleep(5000, 'late', { ref: false });
    if ((await Promise.race([worker.gone, late])) !== 'late') return;
    this.#record.violation(`worker ${worker.pid} was interrupted and did not end`);
    worker.kill('SIGKILL');
  }

  /** Blocks the event loop of a worker, the owner most often, for five seconds. */
  async #block() {
    const { owner, ready } = this.#fleet;
    const worker = this.#random() < 0.75 && owner?.state === 'ready' ? owner : this.#oneOf(ready);
    if (worker === undefined || worker.paused || worker.doomed) return;
    this.blocks += 1;
    worker.pause(5300);
    void this.#fleet.ask(worker, 'block', { ms: 5000 });
    if (this.#random() < 0.7) await sleep(5000);
  }

  /** Stops the owner for 3 to 12 seconds; sometimes it is killed while it is stopped. */
  async #stop() {
    const { owner } = this.#fleet;
    if (owner === undefined || owner.paused || owner.doomed) return;
    const ms = 3000 + this.#random() * 9000;
    this.stops += 1;
    const resumed = owner.pause(ms + 300);
    owner.kill('SIGSTOP');
    const going = sleep(ms).then(() => {
      resumed();
      // The time to get going again is the worker's own.
      owner.pause(300);
      owner.kill('SIGCONT');
    });
    if (this.#random() < 0.75) await going;
    else await sleep(this.#random() * 3000);
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
