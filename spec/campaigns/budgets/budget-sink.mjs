// Counts what really happens under a grant, independently of its budget.

/** The price of all models of the campaign: odd numbers, so that most costs are rounded. */
export const PRICE = { inputPerMillion: 333_333, outputPerMillion: 7_777_777 };

/** @param {number} input @param {number} output */
function microsOf(input, output) {
  return Math.ceil((input * PRICE.inputPerMillion + output * PRICE.outputPerMillion) / 1_000_000);
}

/** Everything that was performed under one grant. */
export class BudgetSink {
  /** The idempotency keys of effects, by tool. @type {Map<string, string>} */
  effects = new Map();
  /** The turns that performed something. @type {Set<string>} */
  turns = new Set();
  modelCalls = 0;
  inputTokens = 0;
  outputTokens = 0;
  costMicros = 0;
  #limits;

  /** @param {{ limits: { [counter: string]: number | { [tool: string]: number } } }} grant */
  constructor({ limits }) {
    this.#limits = limits;
  }

  /** @param {string} tool @param {string} idempotencyKey */
  effect(tool, idempotencyKey) {
    this.effects.set(idempotencyKey, tool);
    this.turns.add(idempotencyKey.split(':')[1]?.split('/')[0] ?? '');
  }

  /** @param {string} turn @param {number} input @param {number} output */
  modelCall(turn, input, output) {
    this.turns.add(turn);
    this.modelCalls += 1;
    this.inputTokens += input;
    this.outputTokens += output;
    this.costMicros += microsOf(input, output);
  }

  /**
   * Returns the limits that were exceeded. A crash repeats model calls, which are rounds that count once.
   * @param {{ countsCalls: boolean }} options
   */
  violations({ countsCalls }) {
    const { effects, turns, modelRounds, inputTokens, outputTokens, costMicros } = this.#limits;
    const ofTool = (/** @type {string} */ tool) => [...this.effects.values()].filter((name) => name === tool).length;
    /** @type {[string, number, unknown][]} */
    const compared = [
      ['inputTokens', this.inputTokens, inputTokens],
      ['outputTokens', this.outputTokens, outputTokens],
      ['costMicros', this.costMicros, costMicros],
      ['turns', this.turns.size, turns],
    ];
    if (countsCalls) compared.push(['modelRounds', this.modelCalls, modelRounds]);
    if (typeof effects === 'number') compared.push(['effects', this.effects.size, effects]);
    else for (const [tool, limit] of Object.entries(effects ?? {})) compared.push([tool, ofTool(tool), limit]);
    return compared.flatMap(([counter, count, limit]) =>
      typeof limit === 'number' && count > limit ? [`${count} of ${limit} ${counter}`] : [],
    );
  }
}
