/**
 * The judge: compares what the sink saw from outside with what the journal says, and names everything that does not
 * hold. It believes neither process.
 */
/** @import { Entry } from 'rondo/protocol' */
/** @import { ReportedEffect } from 'rondo/testing' */
/** @import { Note } from './world.mjs' */

/** @typedef {{ name: string, asked: number, happened: number, keys: Set<string>, pids: Set<number> }} Line */

/**
 * @typedef {object} Evidence
 * @property {readonly string[]} ordered what has to happen, once each
 * @property {readonly string[]} cutOff what was under way when process 1 was killed
 * @property {readonly ReportedEffect[]} sightings
 * @property {readonly Entry[]} left the journal as process 1 left it
 * @property {readonly Entry[]} journal the journal at the end
 * @property {number} second the pid of process 2
 * @property {unknown} output what process 2 returned
 */

/** @param {ReportedEffect} sighting */
export function noteOf({ data }) {
  return /** @type {Note} */ (/** @type {unknown} */ (data));
}

/** How often each effect was asked for and how often it happened, by name. @param {readonly ReportedEffect[]} sightings */
export function tally(sightings) {
  /** @type {Map<string, Line>} */
  const lines = new Map();
  for (const sighting of sightings) {
    const { name, key, pid } = noteOf(sighting);
    const line = lines.get(name) ?? { name, asked: 0, happened: 0, keys: new Set(), pids: new Set() };
    lines.set(name, line);
    if (sighting.kind === 'happened') line.happened += 1;
    else line.asked += 1;
    line.keys.add(key);
    line.pids.add(pid);
  }
  return lines;
}

/** The name of each step that has one, by key. @param {readonly Entry[]} entries */
export function namesOf(entries) {
  const names = new Map(entries.map(({ key, name }) => /** @type {const} */ ([key, name])).filter(([, name]) => name));
  return (/** @type {string} */ key) => names.get(key) ?? '';
}

/** Names of the effects that have an intent, and of those that have a result. @param {readonly Entry[]} entries */
export function progressOf(entries) {
  const nameAt = namesOf(entries);
  const of = (/** @type {string} */ type) =>
    entries.filter((entry) => entry.type === type).map(({ key }) => nameAt(key));
  return { begun: of('effect.requested'), done: of('effect.returned') };
}

/** @param {Evidence} evidence */
function faultsOutside({ ordered, sightings, left, second }) {
  const lines = tally(sightings);
  const recorded = progressOf(left).done;
  const faults = [];
  for (const name of ordered) if (!lines.get(name)?.happened) faults.push(`"${name}" was lost: it never happened.`);
  for (const { name, happened, keys, pids } of lines.values()) {
    if (!ordered.includes(name)) faults.push(`"${name}" was asked for, and nobody ordered it.`);
    if (happened > 1) faults.push(`"${name}" happened ${happened} times.`);
    if (keys.size > 1) faults.push(`"${name}" was asked for under ${keys.size} different idempotency keys.`);
    if (recorded.includes(name) && pids.has(second)) faults.push(`"${name}" had a result, and process 2 asked again.`);
  }
  return faults;
}

/** @param {Evidence} evidence */
function faultsInside({ ordered, cutOff, left, journal }) {
  const faults = [];
  const before = progressOf(left);
  const after = progressOf(journal);
  for (const name of cutOff) {
    if (!before.begun.includes(name)) faults.push(`"${name}" was asked for before its intent was in the journal.`);
    if (before.done.includes(name)) faults.push(`"${name}" already had a result when process 1 was killed.`);
  }
  for (const name of ordered) {
    const results = after.done.filter((done) => done === name).length;
    if (results !== 1) faults.push(`"${name}" has ${results} results in the journal.`);
  }
  const prefix = JSON.stringify(journal.slice(0, left.length));
  if (prefix !== JSON.stringify(left)) faults.push('Process 2 changed what process 1 had written.');
  const gap = journal.findIndex(({ seq }, index) => seq !== index);
  if (gap >= 0) faults.push(`The journal has a gap at entry ${gap}.`);
  return faults;
}

/** @param {Evidence} evidence */
function faultsAtTheEnd({ sightings, left, journal, output }) {
  const faults = [];
  const only = (/** @type {string} */ type) => {
    const found = journal.filter((entry) => entry.type === type);
    if (found.length !== 1) faults.push(`The journal has ${found.length} entries ${type}; one was expected.`);
    return found[0];
  };
  const [set, fired, decided, completed] = [
    only('timer.set'),
    only('timer.fired'),
    only('effect.resolved'),
    only('call.completed'),
  ];
  if ((fired?.at ?? 0) < (set?.until ?? 0)) faults.push('The timer fired too early.');
  if ((decided?.seq ?? 0) < left.length) faults.push('The doubt was decided before there was one.');
  const gave = (/** @type {string} */ name) =>
    sightings.map(noteOf).find((note) => note.name === name)?.answer ?? 'nothing';
  const right = JSON.stringify({ receipt: gave('charge card'), parcel: gave('print label') });
  if (JSON.stringify(output) !== right) faults.push(`Process 2 returned ${JSON.stringify(output)}, not ${right}.`);
  const held = JSON.stringify(completed?.value);
  if (held !== right) faults.push(`The journal holds ${held} as the result, not ${right}.`);
  return faults;
}

/** Everything that does not hold, in words. @param {Evidence} evidence @returns {string[]} */
export function faultsOf(evidence) {
  return [...faultsOutside(evidence), ...faultsInside(evidence), ...faultsAtTheEnd(evidence)];
}
