// The checks at the end of a run, when no turn can continue.

import { checkLedger, LedgerEntries } from './ledger-check.mjs';

/**
 * Checks the grants of a run, and returns what is wrong and what was counted.
 * @param {{ store: import('rondo/host').Store, sink: import('./budget-sink.mjs').BudgetSink,
 *   log: import('./turn-log.mjs').TurnLog, grants: readonly import('./budget-sink.mjs').CampaignGrant[] }} run
 */
export async function checkRun({ store, sink, log, grants }) {
  const problems = log.problems();
  /** @type {string[]} */
  const stops = [];
  let [exact, lost] = [0, 0];
  for (const grant of grants) {
    const outcome = {
      opened: log.openedUnder(grant.id),
      isTurnRefused: log.isRefusing(grant.id),
      stops: log.stopsAt(grant.id),
      wasInterrupted: (/** @type {string} */ turnId) => log.wasInterrupted(turnId),
    };
    const checked = checkLedger(await LedgerEntries.read(store, grant.id), grant, sink, outcome);
    problems.push(...checked.problems.map((text) => `${grant.id}: ${text}, limits ${JSON.stringify(grant.limits)}`));
    exact += checked.exact;
    lost += checked.lost;
    stops.push(...outcome.stops, ...(outcome.isTurnRefused ? ['turns: '] : []));
  }
  const reasons = stops.map((reason) => reason.split(': ')[0] ?? '');
  return { problems, reasons, exact, lost, turns: log.turns().length, ...sink.totals() };
}
