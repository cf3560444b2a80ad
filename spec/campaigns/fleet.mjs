// The workers of a campaign: keeps a number of them alive, gives them operations, and watches how long these take.

import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkerProcess } from './worker-process.mjs';

/** @typedef {import('./worker-process.mjs').Operation} Operation */
/** @typedef {{ readonly turnId: string, readonly sessionId: string, readonly status: string }} Listed */

export const LONGEST_MS = 10_000;
const GIVE_UP_MS = 40_000;

/**
 * @typedef {object} FleetOptions
 * @property {string} folder of the campaign
 * @property {string} file the database
 * @property {string} socket of the sink
 * @property {number} size how many workers are kept alive
 * @property {boolean} copying
 * @property {boolean} pausing whether the mode blocks or stops workers, so that a fault about a silent owner is in order
 * @property {() => number} random
 * @property {import('./record.mjs').CampaignRecord} record
 * @property {import('./sink.mjs').Sink} sink
 */

export class Fleet {
  /** All that are not gone. @type {Set<WorkerProcess>} */
  workers = new Set();
  /** The pids of all that ever were. @type {Set<number>} */
  pids = new Set();
  options;
  #next = 1;
  #open = true;
  #stderr;
  #watch;

  /** @param {FleetOptions} options */
  constructor(options) {
    this.options = options;
    this.#stderr = openSync(join(options.folder, 'stderr.log'), 'a');
    this.#watch = setInterval(() => this.#lookForHangs(), 250);
    options.sink.onEffect = (turn) => this.#progress(turn);
    process.once('exit', () => this.#killAll());
  }

  /** The pid that is recorded as the owner's. @returns {number | undefined} */
  get ownerPid() {
    try {
      return JSON.parse(readFileSync(`${this.options.file}.owner`, 'utf8')).pid;
    } catch {
      return undefined;
    }
  }

  get owner() {
    const pid = this.ownerPid;
    return [...this.workers].find((worker) => worker.pid === pid && worker.alive);
  }

  get ready() {
    return [...this.workers].filter((worker) => worker.state === 'ready' && !worker.doomed);
  }

  /** Starts as many workers as are missing. */
  fill() {
    const missing = this.options.size - [...this.workers].filter(({ doomed }) => !doomed).length;
    for (let i = 0; i < missing && this.#open; i++) this.#start();
  }

  #start() {
    const { file, socket, folder, copying, record, sink } = this.options;
    const args = [file, socket, ...(copying ? [join(folder, 'copies')] : [])];
    const parts = {
      stderr: this.#stderr,
      log: (/** @type {string} */ event, /** @type {object} */ facts) => record.log(event, facts),
      drained: (/** @type {number} */ pid) => sink.closed(pid),
    };
    const worker = new WorkerProcess(args, parts);
    record.log('start', { pid: worker.pid });
    this.workers.add(worker);
    this.pids.add(worker.pid);
    void worker.gone.then((how) => this.#ended(worker, how));
  }

  /** @param {WorkerProcess} worker @param {unknown} how */
  async #ended(worker, how) {
    this.workers.delete(worker);
    if (worker.failure !== undefined) this.#failedToStart(worker);
    else if (!worker.doomed) this.options.record.violation(`worker ${worker.pid} ended: ${JSON.stringify(how)}`);
    if (worker.doomed) return;
    await sleep(200);
    this.fill();
  }

  /** @param {WorkerProcess} worker */
  #failedToStart({ pid, failure }) {
    const { record, pausing } = this.options;
    record.fault('open', failure?.code ?? failure?.name ?? 'unknown');
    if (pausing && failure?.name === 'Fault' && this.namesPid(failure)) return;
    record.violation(`worker ${pid} could not open the store: ${JSON.stringify(failure)}`);
  }

  /** True if a failure names the pid of a worker. @param {import('./worker-process.mjs').Failure} failure */
  namesPid({ message, data }) {
    const numbers = `${message} ${JSON.stringify(data ?? {})}`.match(/\d+/g) ?? [];
    return numbers.some((number) => this.pids.has(Number(number)));
  }

  /** A worker that can be given an operation; seldom one that is held up. @returns {Promise<WorkerProcess>} */
  async pick() {
    for (;;) {
      const { ready } = this;
      const free = ready.filter(({ paused }) => !paused);
      const from = free.length > 0 && this.options.random() < 0.9 ? free : ready;
      const worker = from[Math.floor(this.options.random() * from.length)];
      if (worker !== undefined) return worker;
      await sleep(20);
    }
  }

  /**
   * Gives an operation to a worker.
   * @template T
   * @param {WorkerProcess} worker @param {string} op @param {object} args @param {string} [turn]
   * @returns {Promise<import('./worker-process.mjs').Outcome<T>>}
   */
  ask(worker, op, args, turn = '') {
    const now = Date.now();
    return new Promise((resolve) => {
      /** @type {Operation} */
      const operation = {
        id: this.#next++,
        op,
        turn,
        at: now,
        begun: now,
        overdue: false,
        settle: (outcome) => {
          this.#settled(worker, operation, outcome);
          resolve(/** @type {import('./worker-process.mjs').Outcome<T>} */ (outcome));
        },
      };
      worker.give(operation, args);
    });
  }

  /** @param {WorkerProcess} worker @param {Operation} operation @param {import('./worker-process.mjs').Outcome<unknown>} outcome */
  #settled(worker, operation, outcome) {
    const { record } = this.options;
    const { op, id, begun } = operation;
    if (op !== 'block') record.waited(worker.freeSince(operation.at), `${op} ${id} in ${worker.pid}`);
    if (outcome.kind !== 'fault') return;
    const { error } = outcome;
    record.fault(op, error.code ?? error.name ?? 'unknown');
    const what = `${op} ${id} in ${worker.pid}`;
    if (error.name !== 'Fault') record.violation(`${what} failed with what is no Fault: ${JSON.stringify(error)}`);
    if (/^(STORE_DAMAGED|REPLAY_MISMATCH|VIEW_FAILED|ENTRY_TOO_NEW|REPLAY_INCOMPLETE)$/.test(error.code ?? ''))
      record.violation(`${what} failed with ${error.code}: ${error.message}`);
    if (error.code === 'STORE_OWNED' && !this.options.pausing)
      record.violation(`${what} found no way to the store: ${error.message}`);
    if (worker.freeSince(begun) >= 4500 && /owner|answer/i.test(error.message) && !this.namesPid(error))
      record.violation(`${what} waited for the owner and its fault names no pid: ${error.message}`);
  }

  /** @param {string} turn */
  #progress(turn) {
    for (const worker of this.workers)
      for (const operation of worker.operations.values()) {
        if (operation.turn !== turn) continue;
        this.options.record.waited(worker.freeSince(operation.at), `${operation.op} ${operation.id} in ${worker.pid}`);
        operation.at = Date.now();
      }
  }

  #lookForHangs() {
    for (const worker of this.workers) {
      if (worker.state === 'starting') this.#lookAtStart(worker);
      for (const operation of worker.operations.values()) {
        const ms = worker.freeSince(operation.at);
        if (operation.op === 'block' || ms < LONGEST_MS || worker.doomed) continue;
        const what = `${operation.op} ${operation.id} of ${operation.turn} in ${worker.pid}`;
        if (!operation.overdue) this.options.record.violation(`${what} made no progress for ${LONGEST_MS} ms`);
        operation.overdue = true;
        if (ms > GIVE_UP_MS) this.#abandon(worker);
      }
    }
  }

  /** @param {WorkerProcess} worker */
  #lookAtStart(worker) {
    const ms = worker.freeSince(worker.startedAt);
    if (ms < LONGEST_MS || worker.doomed) return;
    this.options.record.violation(`worker ${worker.pid} did not open the store within ${LONGEST_MS} ms`);
    this.#abandon(worker);
  }

  /** @param {WorkerProcess} worker */
  #abandon(worker) {
    worker.doomed = true;
    worker.kill('SIGKILL');
    void worker.gone.then(() => this.fill());
  }

  /** Lets all workers close the store and exit. */
  async close() {
    this.#open = false;
    const all = [...this.workers];
    for (const worker of all) worker.doomed = true;
    const closing = all.map(async (worker) => {
      if (worker.state === 'ready') void this.ask(worker, 'close', {});
      else worker.kill('SIGKILL');
      const late = sleep(LONGEST_MS, 'late', { ref: false });
      if ((await Promise.race([worker.gone, late])) !== 'late') return;
      this.options.record.violation(`worker ${worker.pid} did not close the store within ${LONGEST_MS} ms`);
      worker.kill('SIGKILL');
      await worker.gone;
    });
    await Promise.all(closing);
    clearInterval(this.#watch);
  }

  #killAll() {
    for (const worker of this.workers) worker.kill('SIGKILL');
  }
}
