// The log of a campaign: all commands and reports, the violations, the faults and the longest operation.

import { openSync, writeSync } from 'node:fs';

/** A campaign ends early after this many violations. */
const MAX_VIOLATIONS = 30;
/** Further violations are not recorded. */
const MAX_RECORDED_VIOLATIONS = 200;

/** Writes the log file and collects the results. */
export class CampaignLog {
  /** @type {string[]} */
  violations = [];
  /** The number of faults by operation and code. @type {Record<string, number>} */
  faults = {};
  longestOperationMs = 0;
  longestOperation = '';
  #file;
  #start = Date.now();

  /** @param {string} path The path of the log file. */
  constructor(path) {
    this.#file = openSync(path, 'a');
  }

  /** Writes an event. @param {string} event @param {object} details */
  write(event, details) {
    writeSync(this.#file, `${JSON.stringify({ ms: Date.now() - this.#start, event, ...details })}\n`);
  }

  /** Records a violation. @param {string} text */
  violation(text) {
    if (this.violations.length >= MAX_RECORDED_VIOLATIONS) return;
    this.violations.push(text);
    this.write('violation', { text });
  }

  /** True if the campaign must end because of its violations. */
  get isFull() {
    return this.violations.length >= MAX_VIOLATIONS;
  }

  /** Counts a fault. @param {string} op @param {string} code */
  fault(op, code) {
    const name = `${op} ${code}`;
    this.faults[name] = (this.faults[name] ?? 0) + 1;
  }

  /** Records the time that an operation made no progress. @param {number} ms @param {string} operation */
  waited(ms, operation) {
    if (ms <= this.longestOperationMs) return;
    this.longestOperationMs = ms;
    this.longestOperation = operation;
  }
}

/**
 * Returns the quantile of the values, or null if there are none.
 * @param {readonly number[]} values @param {number} share
 */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
}
