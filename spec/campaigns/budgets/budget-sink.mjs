// Counts what really happens under the grants of one run, independently of their budgets.

/** @typedef {{ [counter: string]: number | { [tool: string]: number } }} Limits */
/** @typedef {{ id: string, allowedTools: readonly string[], limits: Limits }} CampaignGrant */
/** @typedef {{ tool: string, key: string, grant: string }} PerformedEffect */
/** @typedef {{ turn: string, request: string, input: number, output: number, grant: string }} PerformedModelCall */

/** The price of all models of the campaign: odd numbers, so that most costs are rounded. */
export const PRICE = { inputPerMillion: 333_333, outputPerMillion: 7_777_777 };

/** @param {number} input @param {number} output */
function microsOf(input, output) {
  return Math.ceil((input * PRICE.inputPerMillion + output * PRICE.outputPerMillion) / 1_000_000);
}

/** Returns the limits of a grant by counter: a limit of one tool is the counter `effects:TOOL`. @param {Limits} limits */
export function limitsByCounter(limits) {
  const { effects, ...others } = limits;
  const ofTools = typeof effects === 'object' ? Object.entries(effects) : [];
  return /** @type {Record<string, number>} */ ({
    ...others,
    ...(typeof effects === 'number' && { effects }),
    ...Object.fromEntries(ofTools.map(([tool, limit]) => [`effects:${tool}`, limit])),
  });
}

/** What was performed under one grant. */
class PerformedWork {
  /** The tools of effects by their key, without the incarnation of the session. @type {Map<string, string>} */
  effects = new Map();
  /** The model rounds: a repeated call has the same turn and request. @type {Set<string>} */
  rounds = new Set();
  /** The turns that performed something. @type {Set<string>} */
  turns = new Set();
  /** All calls of models, repeated ones too. */
  modelCalls = 0;
  inputTokens = 0;
  outputTokens = 0;
  costMicros = 0;

  /** Returns how much was performed, by counter. @returns {Record<string, number>} */
  counts() {
    const { effects, rounds, turns, inputTokens, outputTokens, costMicros } = this;
    const tools = [...effects.values()];
    const ofTools = [...new Set(tools)].map((tool) => [
      `effects:${tool}`,
      tools.filter((name) => name === tool).length,
    ]);
    return {
      ...Object.fromEntries(ofTools),
      ...{ effects: effects.size, modelRounds: rounds.size, turns: turns.size },
      ...{ inputTokens, outputTokens, costMicros },
    };
  }
}

/** Everything that was performed in one run. */
export class BudgetSink {
  /** The number of effects and model calls that were received. */
  events = 0;
  /** @type {Map<string, PerformedWork>} */
  #byGrant = new Map();

  /** Returns what was performed under a grant. @param {string} grant */
  under(grant) {
    const found = this.#byGrant.get(grant) ?? new PerformedWork();
    this.#byGrant.set(grant, found);
    return found;
  }

  /** Resolves when this many more events are received, or when it is no longer wanted. @param {number} count @param {() => boolean} isDone */
  async received(count, isDone) {
    const until = this.events + count;
    while (this.events < until && !isDone()) await new Promise((resolve) => setTimeout(resolve, 2));
  }

  /** @param {PerformedEffect} effect */
  effect({ tool, key, grant }) {
    this.events += 1;
    const effect = key.slice(key.indexOf(':') + 1);
    const work = this.under(grant);
    work.effects.set(effect, tool);
    work.turns.add(effect.split('/')[0] ?? '');
  }

  /** @param {PerformedModelCall} call */
  modelCall({ turn, request, input, output, grant }) {
    this.events += 1;
    const work = this.under(grant);
    work.turns.add(turn);
    work.rounds.add(`${turn} ${request}`);
    work.modelCalls += 1;
    work.inputTokens += input;
    work.outputTokens += output;
    work.costMicros += microsOf(input, output);
  }

  /** The totals of the run, for the summary. */
  totals() {
    const work = [...this.#byGrant.values()];
    return {
      effects: work.reduce((sum, { effects }) => sum + effects.size, 0),
      modelCalls: work.reduce((sum, { modelCalls }) => sum + modelCalls, 0),
    };
  }
}
