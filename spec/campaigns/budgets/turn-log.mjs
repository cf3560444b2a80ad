// What the turns of a run reported: which were opened under which grant, and how each ended last.

/**
 * How often turns are continued at most until none makes progress. A group of up to 100 branches can stop after each of
 * them, so a turn may need that many.
 */
export const MAX_PASSES = 1000;

/** @typedef {{ turnId: string, status: string, reason?: string | undefined, error?: unknown }} Result */

/** The results of the turns of one run. */
export class TurnLog {
  /** The last result of each turn that ran, with its grant. @type {Map<string, Result & { grant: string }>} */
  #last = new Map();
  /** @type {Map<string, Set<string>>} */
  #opened = new Map();
  /** @type {Set<string>} */
  #refusing = new Set();
  /** The sessions whose turns a crash interrupted. @type {Set<string>} */
  #interrupted = new Set();
  /** @type {string[]} */
  #changed = [];

  /**
   * Records the result of a turn. Returns false if its grant had no turn left, so that it did not run.
   * @param {string} grant @param {Result} result
   */
  ended(grant, result) {
    const { turnId, status, reason = '' } = result;
    const before = this.#last.get(turnId)?.status ?? '';
    if (['ok', 'error'].includes(before) && status !== before)
      this.#changed.push(`${turnId} had ended as ${before}, and is ${status} (${reason})`);
    if (status === 'stopped' && reason.startsWith('turns: ')) {
      this.#refusing.add(grant);
      return false;
    }
    if (!['ok', 'error', 'stopped'].includes(status)) throw new Error(`${turnId} ended as ${status}.`);
    this.#last.set(turnId, { ...result, grant });
    this.#opened.set(grant, this.openedUnder(grant).add(turnId));
    return true;
  }

  /** Records that a crash interrupted the turn of a session. @param {string} session */
  interrupted(session) {
    this.#interrupted.add(session);
  }

  /** True if a crash interrupted a turn. @param {string} turnId */
  wasInterrupted(turnId) {
    return this.#interrupted.has(turnId.split('.')[0] ?? '');
  }

  /** The turns that ran. */
  turns() {
    return [...this.#last.keys()];
  }

  /** The turns that ended. */
  endedTurns() {
    return this.turns().filter((turnId) => this.#last.get(turnId)?.status !== 'stopped');
  }

  /** The turns that stopped at a grant. */
  stoppedTurns() {
    return this.turns().filter((turnId) => this.#last.get(turnId)?.status === 'stopped');
  }

  /** The turns that ran under a grant. @param {string} grant @returns {Set<string>} */
  openedUnder(grant) {
    return this.#opened.get(grant) ?? new Set();
  }

  /** True if a grant had no turn left for a turn. @param {string} grant */
  isRefusing(grant) {
    return this.#refusing.has(grant);
  }

  /** The reasons of the turns that are stopped at a grant. @param {string} grant */
  stopsAt(grant) {
    const last = [...this.#last.values()].filter((result) => result.grant === grant && result.status === 'stopped');
    return last.map(({ reason = '' }) => reason);
  }

  /** The results that changed after the end of a turn, and those with an error that no tool of the campaign throws. */
  problems() {
    const failures = [...this.#last.values()].flatMap(({ turnId, error }) => {
      const { code, message } = /** @type {{ code?: string, message?: string }} */ (error ?? {});
      const isExpected = error === undefined || code === 'TOOL_FAILED' || /at random|rounds/.test(message ?? '');
      return isExpected ? [] : [`${turnId} failed with ${code}: ${message}`];
    });
    return [...this.#changed, ...failures];
  }
}
