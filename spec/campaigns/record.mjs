// What a campaign keeps while it runs: a log of all commands and reports, the violations, and how long operations took.

import { openSync, writeSync } from 'node:fs';

/** A campaign with so many violations is ended. */
const MOST_VIOLATIONS = 30;
/** Further ones are dropped. */
const KEPT_VIOLATIONS = 200;

export class CampaignRecord {
  /** @type {string[]} */
  violations = [];
  /** Faults that operations were rejected with, by operation and code. @type {Record<string, number>} */
  faults = {};
  longestOperationMs = 0;
  longestOperation = '';
  #file;
  #start = Date.now();

  /** @param {string} path of the log */
  constructor(path) {
    this.#file = openSync(path, 'a');
  }

  /** @param {string} event @param {object} facts */
  log(event, facts) {
    writeSync(this.#file, `${JSON.stringify({ ms: Date.now() - this.#start, event, ...facts })}\n`);
  }

  /** @param {string} text */
  violation(text) {
    if (this.violations.length >= KEPT_VIOLATIONS) return;
    this.violations.push(text);
    this.log('violation', { text });
  }

  /** True if it is of no use to go on. */
  get spent() {
    return this.violations.length >= MOST_VIOLATIONS;
  }

  /** @param {string} op @param {string} code */
  fault(op, code) {
    const name = `${op} ${code}`;
    this.faults[name] = (this.faults[name] ?? 0) + 1;
  }

  /** Notes how long an operation went without progress. @param {number} ms @param {string} what */
  waited(ms, what) {
    if (ms <= this.longestOperationMs) return;
    this.longestOperationMs = ms;
    this.longestOperation = what;
  }
}

/** The value below which this share of the values lies. @param {readonly number[]} values @param {number} share */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}
