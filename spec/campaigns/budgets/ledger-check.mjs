// Compares the ledger of a grant, as the store has it, with what really happened and how the turns ended.

import { limitsByCounter } from './budget-sink.mjs';

/** @typedef {Record<string, number>} Amounts */
/**
 * How the turns of a grant ended, once none of them can continue.
 * @typedef {object} GrantOutcome
 * @property {ReadonlySet<string>} opened The turns that ran under the grant.
 * @property {boolean} isTurnRefused True if the grant had no turn left for one.
 * @property {readonly string[]} stops The reasons of the turns that stopped at the grant and stay stopped.
 * @property {(turnId: string) => boolean} wasInterrupted Returns true if a crash interrupted the turn.
 */

/** The limits that stop a turn exactly when they are used up. The others stop it when less is left than it needs. */
const EXACT_COUNTERS = /^(effects(:.+)?|modelRounds|toolRounds|turns|outputTokens)$/;

/** The ledger of one grant, folded from its entries. */
export class LedgerEntries {
  /** What was reserved by the key of an attempt. @type {Map<string, Amounts>} */
  reserved = new Map();
  /** What was used by the key of an attempt. @type {Map<string, Amounts>} */
  settled = new Map();
  /** The attempts that have paid twice. @type {string[]} */
  repeated = [];

  /** Reads the ledger of a grant. @param {import('rondo/host').Store} store @param {string} grantId */
  static async read(store, grantId) {
    const ledger = new LedgerEntries();
    for await (const entries of store.journal.read(`rondo:grant:${grantId}`, 0))
      for (const { type, key, value } of entries) {
        const { amounts = {} } = /** @type {{ amounts?: Amounts }} */ (value ?? {});
        if (type === 'rondo.budget.reserved' && ledger.reserved.has(key)) ledger.repeated.push(key);
        if (type === 'rondo.budget.reserved') ledger.reserved.set(key, amounts);
        if (type === 'rondo.budget.settled' && !ledger.settled.has(key)) ledger.settled.set(key, amounts);
      }
    return ledger;
  }

  /** Returns what is reserved and used of a counter. @param {string} counter */
  used(counter) {
    let sum = 0;
    for (const [key, amounts] of this.reserved) sum += this.settled.get(key)?.[counter] ?? amounts[counter] ?? 0;
    return sum;
  }

  /** Returns what paid for one unit of a counter: the effects, model calls or turns. @param {string} counter */
  payers(counter) {
    const paid = [...this.reserved].filter(([, amounts]) => (amounts[counter] ?? 0) > 0);
    return new Set(paid.map(([key]) => key.slice(0, key.lastIndexOf('#'))));
  }

  /** Returns the model calls whose use is recorded: they were certainly performed. */
  settledRounds() {
    const used = [...this.settled].filter(([, { outputTokens = 0 }]) => outputTokens > 0);
    return new Set(used.map(([key]) => key.slice(0, key.lastIndexOf('#'))));
  }
}

/**
 * Returns what is wrong about one grant, and how many limits were reached exactly.
 * @param {LedgerEntries} ledger @param {import('./budget-sink.mjs').CampaignGrant} grant
 * @param {import('./budget-sink.mjs').BudgetSink} sink @param {GrantOutcome} outcome
 */
export function checkLedger(ledger, grant, sink, outcome) {
  const work = sink.under(grant.id);
  const performed = work.counts();
  const limits = limitsByCounter(grant.limits);
  /** @type {string[]} */
  const problems = ledger.repeated.map((key) => `${key} has paid twice`);
  for (const [counter, limit] of Object.entries(limits)) {
    const [count, used] = [performed[counter] ?? 0, ledger.used(counter)];
    if (count > limit) problems.push(`${count} of ${limit} ${counter} were performed`);
    if (used > limit) problems.push(`${used} of ${limit} ${counter} are reserved`);
    if (count > used && counter !== 'turns')
      problems.push(`${count} ${counter} were performed, and ${used} are reserved`);
  }
  problems.push(...comparePayers(ledger, work, outcome));
  const { exact, problems: inexact } = checkExact(ledger, limits, performed, outcome);
  return { exact, lost: lostUnits(ledger, work), problems: [...problems, ...inexact] };
}

/**
 * Everything that was performed has paid. What has paid was performed, except for what an interruption prevented.
 * @param {LedgerEntries} ledger @param {ReturnType<import('./budget-sink.mjs').BudgetSink['under']>} work
 * @param {GrantOutcome} outcome
 */
function comparePayers(ledger, work, { opened, wasInterrupted }) {
  /** @type {string[]} */
  const problems = [];
  const effects = ledger.payers('effects');
  for (const key of work.effects.keys()) if (!effects.has(key)) problems.push(`the effect ${key} did not pay`);
  const turns = ledger.payers('turns');
  for (const turn of opened) if (!turns.has(turn)) problems.push(`the turn ${turn} did not pay`);
  for (const turn of turns) if (!opened.has(turn)) problems.push(`the turn ${turn} has paid and was not opened`);
  for (const turn of work.turns) if (!opened.has(turn)) problems.push(`the refused turn ${turn} performed something`);
  const rounds = ledger.payers('modelRounds');
  const settled = ledger.settledRounds();
  if (work.rounds.size > rounds.size) problems.push(`${work.rounds.size} model rounds, of which ${rounds.size} paid`);
  if (settled.size > work.rounds.size)
    problems.push(`${settled.size} model rounds were settled, and ${work.rounds.size} were performed`);
  for (const key of effects)
    if (!work.effects.has(key) && !wasInterrupted(key.split('/')[0] ?? ''))
      problems.push(`the effect ${key} has paid and was not performed`);
  for (const turn of opened) {
    if (wasInterrupted(turn)) continue;
    const paid = [...rounds].filter((key) => key.startsWith(`${turn}/`)).length;
    const performed = [...work.rounds].filter((round) => round.startsWith(`${turn} `)).length;
    if (paid !== performed) problems.push(`${paid} model rounds of ${turn} have paid, and ${performed} were performed`);
  }
  return problems;
}

/**
 * The number of effects and model rounds that have paid and were not performed.
 * @param {LedgerEntries} ledger @param {ReturnType<import('./budget-sink.mjs').BudgetSink['under']>} work
 */
function lostUnits(ledger, work) {
  const effects = [...ledger.payers('effects')].filter((key) => !work.effects.has(key));
  return effects.length + ledger.payers('modelRounds').size - work.rounds.size;
}

/**
 * A count that is the reason of a stop is used up exactly: what was performed and what was interrupted is the limit.
 * @param {LedgerEntries} ledger @param {Amounts} limits @param {Amounts} performed @param {GrantOutcome} outcome
 */
function checkExact(ledger, limits, performed, { opened, isTurnRefused, stops, wasInterrupted }) {
  /** @type {string[]} */
  const problems = [];
  const reached = new Set(stops.map((reason) => reason.split(': ')[0] ?? ''));
  // The limit of an agent itself.
  reached.delete('rounds');
  if (isTurnRefused) reached.add('turns');
  const isInterrupted = [...opened].some(wasInterrupted);
  let exact = 0;
  for (const counter of reached) {
    const limit = limits[counter];
    if (limit === undefined) problems.push(`a turn stopped at ${counter}, which is not limited`);
    if (limit === undefined || !EXACT_COUNTERS.test(counter)) continue;
    exact += 1;
    const used = ledger.used(counter);
    if (used !== limit) problems.push(`stopped at ${counter} with ${used} of ${limit} reserved`);
    const isCounted = /^(effects|modelRounds)/.test(counter);
    const count = counter === 'turns' ? opened.size : performed[counter];
    if ((counter === 'turns' || (isCounted && !isInterrupted)) && (count ?? 0) !== limit)
      problems.push(`stopped at ${counter} with ${count} of ${limit} performed`);
  }
  return { exact, problems };
}
