// Shared by the attacks: temporary directories, processes that execute commands, and expectations with a description of
// the actual result.

import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export { sleep };

const actorProgram = fileURLToPath(new URL('../attacks/actor.mjs', import.meta.url));
/** The temporary directory of all cases of this run. */
export const root = realpathSync(mkdtempSync(join(tmpdir(), 'ra-')));

/** The time limit of a command. It detects a hang; a silent owner is given up after ten seconds, and cases run side by side. */
export const LONGEST_MS = 20_000;

/** A failed expectation: the expected and the actual result. */
export class ExpectationError extends Error {}

/** Throws if a condition is false. @param {boolean} condition @param {string} expected @param {unknown} actual */
export function expect(condition, expected, actual) {
  if (!condition) throw new ExpectationError(`expected ${expected}; happened: ${show(actual)}`);
}

/** Returns a value as one line of at most 400 characters. @param {unknown} value */
export function show(value) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.replace(/\s+/g, ' ').slice(0, 400);
}

/**
 * Resolves with the result of `work`, and rejects after `ms` milliseconds.
 * @template T @param {Promise<T>} work @param {number} ms @param {string} expected @returns {Promise<T>}
 */
export async function within(work, ms, expected) {
  const stop = new AbortController();
  const timeout = sleep(ms, undefined, { signal: stop.signal }).then(
    () => Promise.reject(new ExpectationError(`expected ${expected} within ${ms} ms; happened: nothing yet`)),
    () => new Promise(() => {}),
  );
  try {
    return await Promise.race([work, timeout]);
  } finally {
    stop.abort();
    work.catch(() => undefined);
  }
}

/**
 * The response to a command.
 * @typedef {{ ok?: any, fault?: { name: string, code: string, message: string, data?: any } }} Answer
 */

/** A process that executes commands on stores. Each command and each response is one line of JSON. */
export class Actor {
  /** The reports of acknowledged appends. */
  acked = [];
  /** The unhandled error of the process. */
  crash;
  /** The step at which the injected fault occurred. */
  at;
  ended = false;
  code;
  signal;
  stderr = '';
  #requestCount = 0;
  #pending = new Map();
  #markReady;

  /** @param {{ plan?: object, as?: readonly string[], env?: object, args?: readonly string[] }} [options] */
  constructor({ plan, as = [], env = {} } = {}) {
    const [command, ...args] = [...as, process.execPath, actorProgram];
    const { ATTACK_PLAN: _, ...rest } = process.env;
    const extra = plan === undefined ? {} : { ATTACK_PLAN: JSON.stringify(plan) };
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...rest, ...extra, ...env } });
    this.child.stdin.on('error', () => undefined);
    this.child.stderr.on('data', (chunk) => {
      this.stderr = (this.stderr + chunk).slice(-4000);
    });
    createInterface({ input: this.child.stdout }).on('line', (line) => this.#receive(line));
    this.ready = new Promise((resolve) => {
      this.#markReady = resolve;
    });
    this.closed = new Promise((resolve) => {
      this.child.once('error', resolve);
      this.child.once('close', (code, signal) => {
        Object.assign(this, { ended: true, code, signal });
        for (const resolvePending of this.#pending.values()) resolvePending({ gone: `code ${code}, signal ${signal}` });
        resolve(undefined);
      });
    });
  }

  /** The pid of the actor, which differs from that of the child if a wrapper such as unshare started it. */
  get pid() {
    return this.ownPid ?? this.child.pid ?? 0;
  }

  /** Handles one line of output. @param {string} line */
  #receive(line) {
    let report;
    try {
      report = JSON.parse(line);
    } catch {
      this.stderr += line;
      return;
    }
    if (report.ready !== undefined) this.#markReady(undefined);
    if (report.crash !== undefined) this.crash = report.crash;
    if (report.at !== undefined) this.at = report.at;
    if (report.acked !== undefined) this.acked.push(report);
    if (report.pumping !== undefined) this.pumping = true;
    this.#pending.get(report.n)?.(report);
    this.#pending.delete(report.n);
  }

  /**
   * Sends a command. Resolves with `{ ok }`, `{ fault }`, or `{ gone }` if the process has exited.
   * @param {string} command @param {object} [args] @param {number} [ms] @returns {Promise<any>}
   */
  async do(command, args = {}, ms = LONGEST_MS) {
    if (this.ended) return { gone: `code ${this.code}, signal ${this.signal}` };
    const n = ++this.#requestCount;
    const response = new Promise((resolve) => this.#pending.set(n, resolve));
    this.child.stdin.write(`${JSON.stringify({ ...args, n, do: command })}\n`);
    return within(response, ms, `a response to ${command}`);
  }

  /**
   * Sends a command that must succeed, and returns its result.
   * @param {string} command @param {object} [args] @param {number} [ms] @returns {Promise<any>}
   */
  async must(command, args = {}, ms = LONGEST_MS) {
    const response = await this.do(command, args, ms);
    expect('ok' in response, `${command} to succeed`, response.fault ?? { ...response, crash: this.crash });
    return response.ok;
  }

  /**
   * Opens a store, claims a session and appends `count` entries.
   * @param {string} path @param {string} session @param {number} count
   */
  async fill(path, session = 'a', count = 3) {
    const opened = await this.must('open', { path });
    const { fence, next } = await this.must('claim', { session });
    for (let n = 0; n < count; n++) await this.must('append', { session, fence, first: next + n });
    return { ...opened, fence, next: next + count };
  }

  /** Sends a signal to the process. @param {NodeJS.Signals} name */
  signalled(name) {
    process.kill(this.pid, name);
  }

  /** Kills the process and waits until it has exited. */
  async kill() {
    if (!this.ended) this.child.kill('SIGKILL');
    await this.closed;
  }
}

/** The fixture of a case: a directory, processes, and cleanups. */
export class StoreFixture {
  actors = [];
  #cleanups = [];

  /** @param {number} seed @param {string} id */
  constructor(seed, id) {
    this.random = randomOf(seed, id);
    this.folder = mkdtempSync(join(root, 'c'));
    this.path = join(this.folder, 'd', 'j.db');
  }

  /** Starts a process. @param {ConstructorParameters<typeof Actor>[0]} [options] */
  async actor(options) {
    const actor = new Actor(options);
    this.actors.push(actor);
    await within(Promise.race([actor.ready, actor.closed]), 20_000, 'a process to start');
    return actor;
  }

  /** Registers a cleanup function. Cleanups run in reverse order. @param {() => unknown} cleanup */
  atEnd(cleanup) {
    this.#cleanups.push(cleanup);
  }

  /** Asserts that no process had an unhandled error or exited with another code than 0. */
  assertSound() {
    for (const { crash, code, stderr } of this.actors) {
      expect(crash === undefined, 'no unhandled error in a process', crash);
      expect(code === undefined || code === null || code === 0, 'no process to exit with an error', { code, stderr });
    }
  }

  /** Kills the processes, runs the cleanups and removes the directory. */
  async end() {
    for (const actor of this.actors) {
      if (!actor.ended) actor.child.kill('SIGKILL');
      await actor.closed;
    }
    for (const cleanup of this.#cleanups.reverse()) await cleanup();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/**
 * Returns a random number generator that depends only on the seed and the id of the case.
 * @param {number} seed @param {string} id
 */
export function randomOf(seed, id) {
  let state = seed >>> 0;
  for (const character of id) state = (Math.imul(state ^ character.charCodeAt(0), 0x01000193) + 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Asserts that a response is a Fault with one of these codes and a message without a stack.
 * @param {any} response @param {readonly string[]} codes
 */
export function expectFault(response, codes) {
  const { fault } = response;
  expect(fault?.name === 'Fault' && codes.includes(fault.code), `a Fault ${codes.join(' or ')}`, fault ?? response);
  expect(fault.message.length > 20 && !/\n\s+at /.test(fault.message), 'a message without a stack', fault.message);
}

/**
 * Asserts that a new process reads exactly these values and no damage.
 * @param {StoreFixture} fixture @param {string} path @param {string} session @param {readonly string[]} values
 */
export async function expectStored(fixture, path, session, values) {
  const reader = await fixture.actor();
  const { damage } = await reader.must('open', { path });
  expect(damage.length === 0, 'a store without damage', damage);
  const found = await reader.must('values', { session });
  expect(JSON.stringify(found) === JSON.stringify(values), `the values ${show(values)}`, found);
  await reader.must('close');
  await reader.kill();
}
