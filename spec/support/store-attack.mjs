// What the cases share: directories of their own, processes that obey, and expectations that say what happened instead.

import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export { sleep };

const program = fileURLToPath(new URL('../attacks/actor.mjs', import.meta.url));
export const root = realpathSync(mkdtempSync(join(tmpdir(), 'ra-')));

/** Longer than any verb may take, with some room for starting a process on a busy machine. */
export const LONGEST_MS = 10_500;

/** What did not hold: what was expected, and what happened. */
export class Broken extends Error {}

/** @param {boolean} held @param {string} expected @param {unknown} happened */
export function expect(held, expected, happened) {
  if (!held) throw new Broken(`expected ${expected}; happened: ${show(happened)}`);
}

/** @param {unknown} value */
export function show(value) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.replace(/\s+/g, ' ').slice(0, 400);
}

/** Rejects after a time. @template T @param {Promise<T>} work @param {number} ms @param {string} what @returns {Promise<T>} */
export async function within(work, ms, what) {
  const stop = new AbortController();
  const late = sleep(ms, undefined, { signal: stop.signal }).then(
    () => Promise.reject(new Broken(`expected ${what} within ${ms} ms; happened: nothing yet`)),
    () => new Promise(() => {}),
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    stop.abort();
    work.catch(() => undefined);
  }
}

/** @typedef {{ ok?: any, fault?: { name: string, code: string, message: string, data?: any } }} Answer */

/** A process that obeys. */
export class Actor {
  acked = [];
  crash;
  /** Where a planned step took place. */
  at;
  ended = false;
  code;
  signal;
  stderr = '';
  #count = 0;
  #waiting = new Map();
  #tellReady;

  /** @param {{ plan?: object, as?: readonly string[], env?: object, args?: readonly string[] }} [options] */
  constructor({ plan, as = [], env = {} } = {}) {
    const [command, ...args] = [...as, process.execPath, program];
    const { ATTACK_PLAN: _, ...rest } = process.env;
    const extra = plan === undefined ? {} : { ATTACK_PLAN: JSON.stringify(plan) };
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...rest, ...extra, ...env } });
    this.child.stdin.on('error', () => undefined);
    this.child.stderr.on('data', (piece) => {
      this.stderr = (this.stderr + piece).slice(-4000);
    });
    createInterface({ input: this.child.stdout }).on('line', (line) => this.#hear(line));
    this.ready = new Promise((resolve) => {
      this.#tellReady = resolve;
    });
    this.closed = new Promise((resolve) => {
      this.child.once('error', resolve);
      this.child.once('close', (code, signal) => {
        Object.assign(this, { ended: true, code, signal });
        for (const resolveOne of this.#waiting.values()) resolveOne({ gone: `code ${code}, signal ${signal}` });
        resolve(undefined);
      });
    });
  }

  /** The process of the actor itself, where a wrapper such as unshare started it. */
  get pid() {
    return this.ownPid ?? this.child.pid ?? 0;
  }

  #hear(line) {
    let report;
    try {
      report = JSON.parse(line);
    } catch {
      this.stderr += line;
      return;
    }
    if (report.ready !== undefined) this.#tellReady(undefined);
    if (report.crash !== undefined) this.crash = report.crash;
    if (report.at !== undefined) this.at = report.at;
    if (report.acked !== undefined) this.acked.push(report);
    if (report.pumping !== undefined) this.pumping = true;
    this.#waiting.get(report.n)?.(report);
    this.#waiting.delete(report.n);
  }

  /** Does something, and tells what came of it. @param {string} what @param {object} [args] @param {number} [ms] @returns {Promise<any>} */
  async do(what, args = {}, ms = LONGEST_MS) {
    if (this.ended) return { gone: `code ${this.code}, signal ${this.signal}` };
    const n = ++this.#count;
    const answer = new Promise((resolve) => this.#waiting.set(n, resolve));
    this.child.stdin.write(`${JSON.stringify({ ...args, n, do: what })}\n`);
    return within(answer, ms, `an answer to ${what}`);
  }

  /** Does something that must succeed. @param {string} what @param {object} [args] @param {number} [ms] @returns {Promise<any>} */
  async must(what, args = {}, ms = LONGEST_MS) {
    const answer = await this.do(what, args, ms);
    expect('ok' in answer, `${what} to succeed`, answer.fault ?? { ...answer, crash: this.crash });
    return answer.ok;
  }

  /** Opens a store, claims a session and appends to it. @param {string} path @param {string} session @param {number} count */
  async fill(path, session = 'a', count = 3) {
    const opened = await this.must('open', { path });
    const { fence, next } = await this.must('claim', { session });
    for (let n = 0; n < count; n++) await this.must('append', { session, fence, first: next + n });
    return { ...opened, fence, next: next + count };
  }

  /** @param {NodeJS.Signals} name */
  signalled(name) {
    process.kill(this.pid, name);
  }

  async kill() {
    if (!this.ended) this.child.kill('SIGKILL');
    await this.closed;
  }
}

/** What one case has: a directory, its processes, and how all of it ends. */
export class Stage {
  actors = [];
  #ends = [];
  /** @param {number} seed @param {string} id */
  constructor(seed, id) {
    this.random = randomOf(seed, id);
    this.folder = mkdtempSync(join(root, 'c'));
    this.path = join(this.folder, 'd', 'j.db');
  }

  /** @param {ConstructorParameters<typeof Actor>[0]} [options] */
  async actor(options) {
    const actor = new Actor(options);
    this.actors.push(actor);
    await within(Promise.race([actor.ready, actor.closed]), 20_000, 'a process to start');
    return actor;
  }

  /** @param {() => unknown} end */
  atEnd(end) {
    this.#ends.push(end);
  }

  /** No process may have ended by an error that nobody handled. */
  assertSound() {
    for (const { crash, code, stderr } of this.actors) {
      expect(crash === undefined, 'no unhandled error in a process', crash);
      expect(code === undefined || code === null || code === 0, 'no process to end by itself', { code, stderr });
    }
  }

  async end() {
    for (const actor of this.actors) {
      if (!actor.ended) actor.child.kill('SIGKILL');
      await actor.closed;
    }
    for (const end of this.#ends.reverse()) await end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Numbers in [0, 1) that depend on the seed and the case alone. @param {number} seed @param {string} id */
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

/** The answer is a Fault with one of these codes, told to a person. @param {any} answer @param {readonly string[]} codes */
export function expectFault(answer, codes) {
  const { fault } = answer;
  expect(fault?.name === 'Fault' && codes.includes(fault.code), `a Fault ${codes.join(' or ')}`, fault ?? answer);
  expect(fault.message.length > 20 && !/\n\s+at /.test(fault.message), 'a message without a stack', fault.message);
}

/** A process of its own finds exactly these values, and no damage. @param {Stage} stage @param {string} path @param {string} session @param {readonly string[]} values */
export async function expectStored(stage, path, session, values) {
  const reader = await stage.actor();
  const { damage } = await reader.must('open', { path });
  expect(damage.length === 0, 'a store without damage', damage);
  const found = await reader.must('values', { session });
  expect(JSON.stringify(found) === JSON.stringify(values), `the values ${show(values)}`, found);
  await reader.must('close');
  await reader.kill();
}
