// A clock that several processes read from one file, which the campaign writes. Time passes in them when the campaign
// says so, and in no other way.

import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** As many digits as a time has. */
const DIGITS = 16;
/** How often a sleeper reads the clock, in real milliseconds. */
const POLL_MS = 5;

/** The clock, as a process of the campaign reads it. */
export class SharedClock {
  #file;
  #buffer = Buffer.alloc(DIGITS);
  #last = 0;

  /** @param {string} path */
  constructor(path) {
    this.#file = openSync(path, 'r');
  }

  now() {
    const length = readSync(this.#file, this.#buffer, 0, DIGITS, 0);
    if (length === DIGITS) this.#last = Number(this.#buffer.toString('ascii'));
    return this.#last;
  }

  elapsed() {
    return this.now();
  }

  /** @param {number} ms @param {AbortSignal} signal */
  async sleep(ms, signal) {
    const until = this.now() + ms;
    while (this.now() < until) await wait(POLL_MS, undefined, { signal });
    signal.throwIfAborted();
  }
}

/** The clock, as the campaign sets it. */
export class ClockHand {
  #file;
  #now;

  /** @param {string} path @param {number} start */
  constructor(path, start) {
    this.#file = openSync(path, 'w');
    this.#now = start;
    this.set(start);
  }

  now() {
    return this.#now;
  }

  /** Sets the clock forward. @param {number} now */
  set(now) {
    this.#now = Math.max(now, this.#now);
    // One write of a few bytes: a reader gets all of them, or those before.
    writeSync(this.#file, String(this.#now).padStart(DIGITS, '0'), 0);
  }

  close() {
    closeSync(this.#file);
  }
}
