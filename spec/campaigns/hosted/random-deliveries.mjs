// Random deliveries: valid ones, and every kind that must not cause a turn. Each says what the server has to answer.

import { signDelivery } from 'rondo/signals';

/**
 * @typedef {object} Delivery
 * @property {string} kind
 * @property {string} loop
 * @property {string} id
 * @property {string} body
 * @property {Record<string, string>} headers
 * @property {readonly number[]} answers The permitted statuses.
 * @property {boolean} mayCause True if it may be accepted.
 */

const LARGE_BYTES = 70_000;
const LATE_SECONDS = 600;
/** How often each kind occurs. @type {readonly [kind: string, weight: number][]} */
const KINDS = [
  ['fresh', 40],
  ['old', 6],
  ['forbidden', 6],
  ['duplicate', 14],
  ['changed', 5],
  ['late', 5],
  ['early', 3],
  ['forged', 6],
  ['tampered', 4],
  ['unsigned', 2],
  ['elsewhere', 5],
  ['oversized', 2],
  ['misfit', 4],
  ['malformed', 2],
];

/** Makes deliveries for loops, each with a secret of its own. */
export class RandomDeliveries {
  #random;
  #secretOf;
  #loops;
  #now;
  #count = 0;
  /** The deliveries that were accepted. @type {Delivery[]} */
  #accepted = [];

  /**
   * @param {{ readonly loops: readonly string[], readonly secretOf: (loop: string) => string, readonly random: () => number,
   *   readonly now: () => number }} options
   */
  constructor({ loops, secretOf, random, now }) {
    this.#loops = loops;
    this.#secretOf = secretOf;
    this.#random = random;
    this.#now = now;
  }

  /** Notes that a delivery was accepted: later ones repeat it. @param {Delivery} delivery */
  accepted(delivery) {
    this.#accepted.push(delivery);
  }

  /** Returns the next delivery. @returns {Delivery} */
  next() {
    const kind = this.#kind();
    const known = this.#pick(this.#accepted);
    if (/^(duplicate|changed|elsewhere)$/.test(kind))
      return known === undefined ? this.#fresh('fresh') : this.#repeat(kind, known);
    return /^(fresh|old|forbidden)$/.test(kind) ? this.#fresh(kind) : this.#invalid(kind);
  }

  #kind() {
    let rest = this.#random() * KINDS.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [kind, weight] of KINDS) {
      rest -= weight;
      if (rest < 0) return kind;
    }
    return 'fresh';
  }

  /** @template T @param {readonly T[]} items @returns {T | undefined} */
  #pick(items) {
    return items[Math.floor(this.#random() * items.length)];
  }

  /** @param {string} kind @param {{ tool?: string, more?: object, ageSeconds?: number, secret?: string }} [parts] */
  #make(kind, { tool = 'report', more = {}, ageSeconds = 0, secret } = {}) {
    this.#count += 1;
    const loop = this.#pick(this.#loops) ?? '';
    const id = `evt-${this.#count}`;
    const body = JSON.stringify({ n: this.#count, tool, ...more });
    return {
      kind,
      loop,
      id,
      body,
      headers: this.#sign(loop, id, body, ageSeconds, secret),
      answers: [202],
      mayCause: true,
    };
  }

  /** @param {string} loop @param {string} id @param {string} body @param {number} ageSeconds @param {string} [secret] */
  #sign(loop, id, body, ageSeconds = 0, secret = this.#secretOf(loop)) {
    const timestamp = Math.floor(this.#now() / 1000) - ageSeconds;
    return { 'content-type': 'application/json', ...signDelivery(secret, { id, timestamp, body }) };
  }

  /** @param {string} kind @returns {Delivery} */
  #fresh(kind) {
    // An old one is as late as the window permits: it overtakes, and is overtaken by, others.
    const ageSeconds = kind === 'old' ? Math.floor(this.#random() * 200) : 0;
    return this.#make(kind, { ageSeconds, ...(kind === 'forbidden' && { tool: 'erase' }) });
  }

  /** @param {string} kind @param {Delivery} known @returns {Delivery} */
  #repeat(kind, known) {
    const { loop, id, body } = known;
    if (kind === 'duplicate') return { ...known, kind, headers: this.#sign(loop, id, body), answers: [200] };
    if (kind === 'changed') {
      const changed = JSON.stringify({ n: -1, tool: 'report' });
      return { ...known, kind, body: changed, headers: this.#sign(loop, id, changed), answers: [409], mayCause: false };
    }
    const others = this.#loops.filter((other) => other !== loop);
    return {
      ...known,
      kind,
      loop: this.#pick(others) ?? '',
      headers: this.#sign(loop, id, body),
      answers: [401],
      mayCause: false,
    };
  }

  /** @param {string} kind @returns {Delivery} */
  #invalid(kind) {
    const refused = { answers: [401], mayCause: false };
    if (kind === 'late') return { ...this.#make(kind, { ageSeconds: LATE_SECONDS }), ...refused };
    if (kind === 'early') return { ...this.#make(kind, { ageSeconds: -LATE_SECONDS }), ...refused };
    if (kind === 'forged') return { ...this.#make(kind, { secret: 'the secret of an attacker' }), ...refused };
    if (kind === 'oversized') {
      const delivery = this.#make(kind, { more: { text: 'a'.repeat(LARGE_BYTES) } });
      return { ...delivery, answers: [413], mayCause: false };
    }
    if (kind === 'misfit') return { ...this.#make(kind, { more: { extra: true } }), answers: [422], mayCause: false };
    const delivery = this.#make(kind);
    if (kind === 'tampered') return { ...delivery, body: delivery.body.replace('report', 'erase'), ...refused };
    if (kind === 'unsigned') return { ...delivery, headers: { 'content-type': 'application/json' }, ...refused };
    const body = '{"n": 1, "n": 2}';
    return {
      ...delivery,
      body,
      headers: this.#sign(delivery.loop, delivery.id, body),
      answers: [400],
      mayCause: false,
    };
  }
}
