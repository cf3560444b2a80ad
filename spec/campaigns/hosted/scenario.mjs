// The hosted loops of the campaign of kills, and what an operator does meanwhile: starts them, sends signals, some of them
// twice, answers approvals and resolves effects in doubt. A request that fails with its host is repeated on the next one.

import { turnIdOf } from './check-loop.mjs';

/** @typedef {import('rondo/host').Host} Host */
/** @typedef {import('./hosted-host.mjs').SunkEffect} SunkEffect */
/** @typedef {import('./check-loop.mjs').Expected} Expected */
/** @typedef {{ readonly at: number, readonly perform: (host: Host) => Promise<void> }} Action */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** In Berlin, 23:00 before the night in which 02:00 to 03:00 does not exist. */
export const START = Date.UTC(2026, 2, 28, 22);

const ORDER = { schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } };

/**
 * Returns the document of a hosted loop.
 * @param {string} id @param {string} loop @param {object} more @param {readonly string[]} [tools]
 */
export function documentOf(id, loop, more, tools = [loop]) {
  const grant = { allowedTools: tools, limits: { effects: 100_000 } };
  const document = { id, loop, input: { loop: id }, grant, stop: { maxTurns: 100_000 }, ...more };
  return /** @type {import('rondo').HostedLoopDocument} */ (/** @type {unknown} */ (document));
}

const SUMMER_TIME = { cron: '0,30 1,2,3 * * *', zone: 'Europe/Berlin' };
const HANDOFF = {
  target: 'desk',
  input: { from: '$.last.key' },
  grant: { limits: { effects: 5 } },
  reason: 'each hour',
};

/** The documents, with how many effects each turn performs. `hours` is the distance of most intervals. @param {number} hours */
function loopsOf(hours) {
  const everyMs = hours * HOUR_MS;
  /** @type {[effects: number, document: import('rondo').HostedLoopDocument][]} */
  const loops = [
    [2, documentOf('berlin', 'pair', { schedule: SUMMER_TIME, catchUp: 'all' }, ['report'])],
    [1, documentOf('daily', 'report', { schedule: { ...SUMMER_TIME, cron: '30 2 * * *' }, catchUp: 'none' })],
    [1, documentOf('desk', 'report', { acceptsHandoffsFrom: ['beat'] })],
    [1, documentOf('beat', 'report', { schedule: { everyMs }, overlap: 'queue-one', handoffs: [HANDOFF] })],
    [1, documentOf('orders', 'report', { schedule: { everyMs: 2 * everyMs }, signals: { order: ORDER }, ...MAPPED })],
    [1, documentOf('inbox', 'report', { signals: { order: ORDER }, ...MAPPED })],
    [1, documentOf('gated', 'gated', { schedule: { everyMs: 3 * everyMs } })],
    [1, documentOf('flaky', 'flaky', { schedule: { everyMs }, retry: { maxFailures: 2, delayMs: 5 * MINUTE_MS } })],
    [1, documentOf('exact', 'exact', { schedule: { everyMs: 2 * everyMs }, catchUp: 'all' })],
    [1, documentOf('chain', 'report', { stop: { maxTurns: 3 }, turn: { history: 'session' } })],
    [1, documentOf('later', 'report', { schedule: { delayMs: 2 * everyMs } })],
  ];
  return loops;
}
/** The input of a turn says what caused it. */
const MAPPED = { next: { turn: '$.turn', head: '$.head' } };

/** The operator of the scenario. */
export class Scenario {
  /** @type {Map<string, Expected>} */
  expected = new Map();
  /** When the operator approved the calls of a turn. @type {Map<string, number>} */
  approvedAt = new Map();
  repeatedDeliveries = 0;
  resolved = 0;
  /** @type {Action[]} */
  #actions = [];
  #documents;
  #effects;
  #now;

  /**
   * @param {{ readonly hours: number, readonly signals: number, readonly effects: () => readonly SunkEffect[],
   *   readonly now: () => number, readonly random: () => number, readonly duration: number }} options
   */
  constructor({ hours, signals, effects, now, random, duration }) {
    this.#documents = loopsOf(hours);
    this.#effects = effects;
    this.#now = now;
    for (const [count, document] of this.#documents) {
      const sent = document.signals === undefined ? undefined : new Map();
      this.expected.set(document.id, { effects: count, ...(sent !== undefined && { sent }) });
      this.#actions.push({
        at: START,
        perform: async (host) => void (await host.hosted.start(document, { by: 'ada' })),
      });
    }
    for (let n = 0; n < signals; n++)
      for (const loop of ['orders', 'inbox']) {
        // The first ones are sent before any worker has run.
        const at = n === 0 ? START : START + Math.floor((random() * duration) / MINUTE_MS) * MINUTE_MS;
        this.#send(loop, n, at);
        if (n % 2 === 0) this.#send(loop, n, at + Math.floor(random() * 2) * 30 * MINUTE_MS);
      }
    this.#actions.sort((a, b) => a.at - b.at);
  }

  /** When the next action is due; undefined if there is none. */
  get nextAt() {
    return this.#actions[0]?.at;
  }

  /** When the last action is due; undefined if there is none. */
  get lastAt() {
    return this.#actions.at(-1)?.at;
  }

  /** Performs all actions that are due. Those that fail stay due. @param {Host} host */
  async act(host) {
    for (let [next] = this.#actions; next !== undefined && next.at <= this.#now(); [next] = this.#actions) {
      await next.perform(host);
      this.#actions.shift();
    }
    await this.#answer(host);
    await this.#resolve(host);
  }

  /** Pauses a loop in the middle of the time, and resumes it. @param {string} loop @param {number} from @param {number} to */
  pause(loop, from, to) {
    const by = { by: 'ada' };
    this.#actions.push({ at: from, perform: async (host) => void (await host.hosted.pause(loop, by)) });
    this.#actions.push({ at: to, perform: async (host) => void (await host.hosted.resume(loop, by)) });
    this.#actions.sort((a, b) => a.at - b.at);
  }

  /** Returns the effects that happened before their approval. @param {readonly SunkEffect[]} effects */
  earlyApprovals(effects) {
    const gated = effects.filter(({ tool }) => tool === 'gated');
    const early = gated.filter(
      ({ key, at }) => !(at >= (this.approvedAt.get(turnIdOf(key)) ?? Number.POSITIVE_INFINITY)),
    );
    return early.map(({ key }) => `${key} happened before its approval`);
  }

  /** @param {string} loop @param {number} n @param {number} at */
  #send(loop, n, at) {
    const sent = /** @type {Map<string, boolean>} */ (this.expected.get(loop)?.sent);
    const id = `evt-${n}`;
    const perform = async (/** @type {Host} */ host) => {
      const isKnown = sent.get(id) === true;
      if (!sent.has(id)) sent.set(id, false);
      const receipt = await host.hosted.signal({ loop, name: 'order', payload: { n }, id });
      if (isKnown && receipt !== 'duplicate') throw new Error(`The delivery ${id} was accepted twice.`);
      if (isKnown) this.repeatedDeliveries += 1;
      sent.set(id, true);
    };
    this.#actions.push({ at, perform });
  }

  /** Approves what waits for an approval. @param {Host} host */
  async #answer(host) {
    const waiting = await host.hosted.status('gated');
    if (waiting.turnId === undefined || waiting.reason !== 'approval') return;
    for (const { id, turnId } of await host.archive.approvals(waiting.turnId.split('.')[0])) {
      if (!this.approvedAt.has(turnId)) this.approvedAt.set(turnId, this.#now());
      await host.answer({ id, approved: true, by: 'ada' });
    }
  }

  /** Finds out whether an effect in doubt happened, and records it. @param {Host} host */
  async #resolve(host) {
    const { turnId } = await host.hosted.status('exact');
    const isStored = turnId !== undefined && (await host.archive.has(turnId));
    const result = isStored ? await host.archive.restingResult(turnId) : undefined;
    if (result?.status !== 'paused') return;
    for (const item of result.pending) {
      if (item.kind !== 'doubt') continue;
      const hasHappened = this.#effects().some(({ key }) => key.endsWith(`:${item.key}`));
      const [resolution, value] = hasHappened
        ? /** @type {const} */ (['supply', { performed: 'resolved' }])
        : /** @type {const} */ (['retry', undefined]);
      try {
        await host.resolveEffect(item.key, resolution, 'ada', value);
      } catch (thrown) {
        // It is being performed, or was resolved before.
        if (/** @type {{ code?: string }} */ (thrown).code === 'ANSWER_REFUSED') continue;
        throw thrown;
      }
      this.resolved += 1;
    }
  }
}
