/**
 * The checks of the demo: compare the reports of the sink, which come from outside of both processes, with the journal,
 * and describe every difference.
 */
/** @import { Entry } from 'rondo/protocol' */
/** @import { ReportedEffect } from 'rondo/testing' */
/** @import { ReportData } from './services.mjs' */

/**
 * @typedef {object} EffectCounts
 * @property {string} name
 * @property {number} received
 * @property {number} performed
 * @property {Set<string>} keys
 * @property {Set<number>} pids
 */

/**
 * @typedef {object} Evidence
 * @property {readonly string[]} expectedEffects names of the effects that must be performed once each
 * @property {readonly string[]} interruptedEffects names of the effects without a result when process 1 was killed
 * @property {readonly ReportedEffect[]} reports
 * @property {readonly Entry[]} entriesAtKill the journal when process 1 was killed
 * @property {readonly Entry[]} journal the journal at the end
 * @property {number} secondPid the pid of process 2
 * @property {unknown} output the output of the loop in process 2
 */

/** @param {ReportedEffect} report */
export function reportData({ data }) {
  return /** @type {ReportData} */ (/** @type {unknown} */ (data));
}

/**
 * Counts how often each effect was requested and performed, by name.
 * @param {readonly ReportedEffect[]} reports
 */
export function countEffects(reports) {
  /** @type {Map<string, EffectCounts>} */
  const countsByName = new Map();
  for (const report of reports) {
    const { name, key, pid } = reportData(report);
    const counts = countsByName.get(name) ?? { name, received: 0, performed: 0, keys: new Set(), pids: new Set() };
    countsByName.set(name, counts);
    if (report.kind === 'performed') counts.performed += 1;
    else counts.received += 1;
    counts.keys.add(key);
    counts.pids.add(pid);
  }
  return countsByName;
}

/** Returns a function from the key of a step to its name, '' if it has none. @param {readonly Entry[]} entries */
export function stepNames(entries) {
  const names = new Map(entries.map(({ key, name }) => /** @type {const} */ ([key, name])).filter(([, name]) => name));
  return (/** @type {string} */ key) => names.get(key) ?? '';
}

/**
 * Returns the names of the effects that have an intent, and of those that have a result.
 * @param {readonly Entry[]} entries
 */
export function effectProgress(entries) {
  const nameOf = stepNames(entries);
  const namesByType = (/** @type {string} */ type) =>
    entries.filter((entry) => entry.type === type).map(({ key }) => nameOf(key));
  return { requested: namesByType('effect.requested'), returned: namesByType('effect.returned') };
}

/** @param {Evidence} evidence */
function problemsInReports({ expectedEffects, reports, entriesAtKill, secondPid }) {
  const countsByName = countEffects(reports);
  const { returned } = effectProgress(entriesAtKill);
  const problems = [];
  for (const name of expectedEffects)
    if (!countsByName.get(name)?.performed) problems.push(`"${name}" was lost: it was never performed.`);
  for (const { name, performed, keys, pids } of countsByName.values()) {
    if (!expectedEffects.includes(name)) problems.push(`"${name}" was requested, but is not part of the order.`);
    if (performed > 1) problems.push(`"${name}" was performed ${performed} times.`);
    if (keys.size > 1) problems.push(`"${name}" was requested with ${keys.size} different idempotency keys.`);
    if (returned.includes(name) && pids.has(secondPid))
      problems.push(`"${name}" had a result, but process 2 requested it again.`);
  }
  return problems;
}

/** @param {Evidence} evidence */
function problemsInJournal({ expectedEffects, interruptedEffects, entriesAtKill, journal }) {
  const problems = [];
  const before = effectProgress(entriesAtKill);
  const after = effectProgress(journal);
  for (const name of interruptedEffects) {
    if (!before.requested.includes(name))
      problems.push(`"${name}" was requested before its intent was in the journal.`);
    if (before.returned.includes(name)) problems.push(`"${name}" already had a result when process 1 was killed.`);
  }
  for (const name of expectedEffects) {
    const results = after.returned.filter((returnedName) => returnedName === name).length;
    if (results !== 1) problems.push(`"${name}" has ${results} results in the journal.`);
  }
  const prefix = JSON.stringify(journal.slice(0, entriesAtKill.length));
  if (prefix !== JSON.stringify(entriesAtKill)) problems.push('Process 2 changed entries that process 1 had written.');
  const gap = journal.findIndex(({ seq }, index) => seq !== index);
  if (gap >= 0) problems.push(`The journal has a gap at entry ${gap}.`);
  return problems;
}

/** @param {Evidence} evidence */
function problemsInResult({ reports, entriesAtKill, journal, output }) {
  const problems = [];
  const onlyEntry = (/** @type {string} */ type) => {
    const entries = journal.filter((entry) => entry.type === type);
    if (entries.length !== 1) problems.push(`The journal has ${entries.length} entries ${type}; one was expected.`);
    return entries[0];
  };
  const [set, fired, resolved, completed] = [
    onlyEntry('timer.set'),
    onlyEntry('timer.fired'),
    onlyEntry('effect.resolved'),
    onlyEntry('call.completed'),
  ];
  if ((fired?.at ?? 0) < (set?.until ?? 0)) problems.push('The timer fired too early.');
  if ((resolved?.seq ?? 0) < entriesAtKill.length) problems.push('An effect was resolved before process 1 was killed.');
  const answerTo = (/** @type {string} */ name) =>
    reports.map(reportData).find((data) => data.name === name)?.answer ?? 'nothing';
  const expected = JSON.stringify({ receipt: answerTo('charge card'), parcel: answerTo('print label') });
  if (JSON.stringify(output) !== expected)
    problems.push(`Process 2 returned ${JSON.stringify(output)}, not ${expected}.`);
  const recorded = JSON.stringify(completed?.value);
  if (recorded !== expected) problems.push(`The journal has ${recorded} as the result, not ${expected}.`);
  return problems;
}

/** Returns a description of every failed check. @param {Evidence} evidence @returns {string[]} */
export function findProblems(evidence) {
  return [...problemsInReports(evidence), ...problemsInJournal(evidence), ...problemsInResult(evidence)];
}
