// The workers of a campaign: keeps a number of them running, sends them operations, and checks their time limits.

import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WorkerProcess } from './worker-process.mjs';

/** @typedef {import('./worker-process.mjs').Operation} Operation */
/** @typedef {{ readonly turnId: string, readonly sessionId: string, readonly status: string }} TurnListing */

/** The time limit of an operation without progress, and of the opening and closing of the store. */
export const MAX_MS = 10_000;
/** A worker is killed if one of its operations makes no progress for this time. */
const KILL_MS = 40_000;

/**
 * @typedef {object} FleetOptions
 * @property {string} folder The directory of the campaign.
 * @property {string} file The path of the database.
 * @property {string} socket The socket of the sink.
 * @property {number} size The number of workers to keep running.
 * @property {boolean} copiesFiles True if the owner copies the files of the data directory.
 * @property {boolean} pausesWorkers True if the mode blocks or stops workers. A fault about an unresponsive owner
 *   is then correct.
 * @property {() => number} random
 * @property {import('./campaign-log.mjs').CampaignLog} log
 * @property {import('./sink.mjs').Sink} sink
 */

/** Starts workers and sends them operations. */
export class Fleet {
  /** The workers that have not exited. @type {Set<WorkerProcess>} */
  workers = new Set();
  /** The pids of all processes of the campaign, including exited ones. @type {Set<number>} */
  pids = new Set();
  options;
  #next = 1;
  #open = true;
  #stderr;
  #timer;

  /** @param {FleetOptions} options */
  constructor(options) {
    this.options = options;
    this.#stderr = openSync(join(options.folder, 'stderr.log'), 'a');
    this.#timer = setInterval(() => this.#checkTimeLimits(), 250);
    options.sink.onEffect = (turn) => this.#recordProgress(turn);
    process.once('exit', () => this.#killAll());
  }

  /** The pid in the owner file. @returns {number | undefined} */
  get ownerPid() {
    try {
      return JSON.parse(readFileSync(`${this.options.file}.owner`, 'utf8')).pid;
    } catch {
      return undefined;
    }
  }

  /** The worker that owns the store. */
  get owner() {
    const pid = this.ownerPid;
    return [...this.workers].find((worker) => worker.pid === pid && worker.alive);
  }

  /** The workers that accept operations. */
  get ready() {
    return [...this.workers].filter((worker) => worker.state === 'ready' && !worker.isEnding);
  }

  /** Starts the missing workers. */
  fill() {
    const missing = this.options.size - [...this.workers].filter(({ isEnding }) => !isEnding).length;
    for (let i = 0; i < missing && this.#open; i++) this.#start();
  }

  #start() {
    const { file, socket, folder, copiesFiles, log, sink } = this.options;
    const args = [file, socket, ...(copiesFiles ? [join(folder, 'copies')] : [])];
    const parts = {
      stderr: this.#stderr,
      log: (/** @type {string} */ event, /** @type {object} */ details) => log.write(event, details),
      drained: (/** @type {number} */ pid) => sink.closed(pid),
    };
    const worker = new WorkerProcess(args, parts);
    log.write('start', { pid: worker.pid });
    this.workers.add(worker);
    this.pids.add(worker.pid);
    void worker.exited.then((exit) => this.#handleExit(worker, exit));
  }

  /** Replaces a worker that has exited. @param {WorkerProcess} worker @param {unknown} exit */
  async #handleExit(worker, exit) {
    this.workers.delete(worker);
    if (worker.failure !== undefined) this.#recordStartFailure(worker);
    else if (!worker.isEnding) this.options.log.violation(`worker ${worker.pid} ended: ${JSON.stringify(exit)}`);
    if (worker.isEnding) return;
    await sleep(200);
    this.fill();
  }

  /** Records the error of a worker that could not open the store. @param {WorkerProcess} worker */
  #recordStartFailure({ pid, failure }) {
    const { log, pausesWorkers } = this.options;
    log.fault('open', failure?.code ?? failure?.name ?? 'unknown');
    if (pausesWorkers && failure?.name === 'Fault' && this.namesPid(failure)) return;
    log.violation(`worker ${pid} could not open the store: ${JSON.stringify(failure)}`);
  }

  /** True if a failure names the pid of a worker. @param {import('./worker-process.mjs').Failure} failure */
  namesPid({ message, data }) {
    const numbers = `${message} ${JSON.stringify(data ?? {})}`.match(/\d+/g) ?? [];
    return numbers.some((number) => this.pids.has(Number(number)));
  }

  /**
   * Waits for a ready worker and returns it. With a probability of 90% it is not paused.
   * @returns {Promise<WorkerProcess>}
   */
  async pick() {
    for (;;) {
      const { ready } = this;
      const unpaused = ready.filter(({ paused }) => !paused);
      const from = unpaused.length > 0 && this.options.random() < 0.9 ? unpaused : ready;
      const worker = from[Math.floor(this.options.random() * from.length)];
      if (worker !== undefined) return worker;
      await sleep(20);
    }
  }

  /**
   * Sends an operation to a worker and resolves with its outcome.
   * @template T
   * @param {WorkerProcess} worker @param {string} op @param {object} args @param {string} [turn]
   * @returns {Promise<import('./worker-process.mjs').Outcome<T>>}
   */
  request(worker, op, args, turn = '') {
    const now = Date.now();
    return new Promise((resolve) => {
      /** @type {Operation} */
      const operation = {
        id: this.#next++,
        op,
        turn,
        at: now,
        startedAt: now,
        overdue: false,
        settle: (outcome) => {
          this.#checkOutcome(worker, operation, outcome);
          resolve(/** @type {import('./worker-process.mjs').Outcome<T>} */ (outcome));
        },
      };
      worker.send(operation, args);
    });
  }

  /**
   * Records the duration and the fault of an operation.
   * @param {WorkerProcess} worker @param {Operation} operation
   * @param {import('./worker-process.mjs').Outcome<unknown>} outcome
   */
  #checkOutcome(worker, operation, outcome) {
    const { log } = this.options;
    const { op, id, startedAt } = operation;
    if (op !== 'block') log.waited(worker.unpausedMsSince(operation.at), `${op} ${id} in ${worker.pid}`);
    if (outcome.kind !== 'fault') return;
    const { error } = outcome;
    log.fault(op, error.code ?? error.name ?? 'unknown');
    const label = `${op} ${id} in ${worker.pid}`;
    if (error.name !== 'Fault')
      log.violation(`${label} failed with an error that is not a Fault: ${JSON.stringify(error)}`);
    if (/^(STORE_DAMAGED|REPLAY_MISMATCH|VIEW_FAILED|ENTRY_TOO_NEW|REPLAY_INCOMPLETE)$/.test(error.code ?? ''))
      log.violation(`${label} failed with ${error.code}: ${error.message}`);
    if (error.code === 'STORE_OWNED' && !this.options.pausesWorkers)
      log.violation(`${label} could not reach the store: ${error.message}`);
    if (worker.unpausedMsSince(startedAt) >= 4500 && /owner|answer/i.test(error.message) && !this.namesPid(error))
      log.violation(`${label} waited for the owner and its fault names no pid: ${error.message}`);
  }

  /** Restarts the time limit of all operations of a turn. @param {string} turn */
  #recordProgress(turn) {
    for (const worker of this.workers)
      for (const operation of worker.operations.values()) {
        if (operation.turn !== turn) continue;
        this.options.log.waited(
          worker.unpausedMsSince(operation.at),
          `${operation.op} ${operation.id} in ${worker.pid}`,
        );
        operation.at = Date.now();
      }
  }

  /** Checks the time limits of all workers and operations. */
  #checkTimeLimits() {
    for (const worker of this.workers) {
      if (worker.state === 'starting') this.#checkStart(worker);
      for (const operation of worker.operations.values()) {
        const ms = worker.unpausedMsSince(operation.at);
        if (operation.op === 'block' || ms < MAX_MS || worker.isEnding) continue;
        const label = `${operation.op} ${operation.id} of ${operation.turn} in ${worker.pid}`;
        if (!operation.overdue) this.options.log.violation(`${label} made no progress for ${MAX_MS} ms`);
        operation.overdue = true;
        if (ms > KILL_MS) this.#abandon(worker);
      }
    }
  }

  /** Checks the time limit of the opening of the store. @param {WorkerProcess} worker */
  #checkStart(worker) {
    const ms = worker.unpausedMsSince(worker.startedAt);
    if (ms < MAX_MS || worker.isEnding) return;
    this.options.log.violation(`worker ${worker.pid} did not open the store within ${MAX_MS} ms`);
    this.#abandon(worker);
  }

  /** Kills a worker that is over a time limit, and replaces it. @param {WorkerProcess} worker */
  #abandon(worker) {
    worker.isEnding = true;
    worker.kill('SIGKILL');
    void worker.exited.then(() => this.fill());
  }

  /** Closes the store in all workers and waits until they exit. */
  async close() {
    this.#open = false;
    const workers = [...this.workers];
    for (const worker of workers) worker.isEnding = true;
    const closing = workers.map(async (worker) => {
      if (worker.state === 'ready') void this.request(worker, 'close', {});
      else worker.kill('SIGKILL');
      const timeout = sleep(MAX_MS, 'timeout', { ref: false });
      if ((await Promise.race([worker.exited, timeout])) !== 'timeout') return;
      this.options.log.violation(`worker ${worker.pid} did not close the store within ${MAX_MS} ms`);
      worker.kill('SIGKILL');
      await worker.exited;
    });
    await Promise.all(closing);
    clearInterval(this.#timer);
  }

  #killAll() {
    for (const worker of this.workers) worker.kill('SIGKILL');
  }
}
