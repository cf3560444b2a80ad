// The judgement at the end of a campaign: what the journal holds, against what the sink saw and the workers reported.

import { isDeepStrictEqual } from 'node:util';
import { Host, Registry, systemClock, systemIds } from 'rondo';
import { openSqlite } from 'rondo/sqlite';
import { commandFaults } from './commands.mjs';
import { isOutside, outputOf } from './plans.mjs';

/** @typedef {import('rondo/protocol').Entry} Entry */
/** @typedef {import('./turns.mjs').Turn} Turn */
/** @typedef {readonly import('./commands.mjs').CommandTurn[]} CommandTurns */
/** @typedef {{ readonly turns: readonly Turn[], readonly commands: CommandTurns, readonly sink: import('./sink.mjs').Sink }} Known */
/** @typedef {{ readonly turn: Turn, readonly entries: readonly Entry[], readonly end: Entry | undefined }} Case */

/**
 * Everything that must not have happened, in words.
 * @param {string} file @param {Known} known
 * @returns {Promise<string[]>}
 */
export async function judge(file, known) {
  /** @type {string[]} */
  const wrong = [];
  try {
    await inspect(file, known, wrong);
  } catch (thrown) {
    wrong.push(`the store cannot be read to its end: ${String(thrown)}`);
  }
  return wrong;
}

/** @param {string} file @param {Known} known @param {string[]} wrong */
async function inspect(file, { turns, commands, sink }, wrong) {
  const store = await openSqlite(file, { check: 'full' });
  const { report } = /** @type {{ report?: { damage?: readonly unknown[] } }} */ (/** @type {unknown} */ (store));
  if (report?.damage === undefined) wrong.push('the store does not report whether it is damaged');
  else if (report.damage.length > 0) wrong.push(`the store is damaged: ${JSON.stringify(report.damage)}`);
  const host = new Host({ store, clock: systemClock, ids: systemIds, registry: new Registry() });
  const names = new Set([...turns, ...commands].map(({ name }) => name));
  for (const { session } of await store.journal.list())
    if (!names.has(session) && session !== 'rondo:refusals') wrong.push(`the store holds a session "${session}"`);
  for (const turn of turns) {
    const entries = await host.archive.entries(turn.name);
    const ends = entries.filter(({ key, type }) => key === turn.turnId && /^call\.(completed|errored)$/.test(type));
    const begun = entries.filter(({ key, type }) => type === 'call.started' && !key.includes('/'));
    if (begun.length > 1) wrong.push(`${turn.name} was begun ${begun.length} times`);
    if (ends.length > 1) wrong.push(`${turn.name} ended ${ends.length} times`);
    const one = { turn, entries, end: ends[0] };
    const found = [endFaults, reportFaults, cancelFaults, answerFaults, decisionFaults, anonymousFaults];
    wrong.push(...found.flatMap((look) => look(one)), ...effectFaults(one, sink));
  }
  for (const turn of commands) wrong.push(...commandFaults(turn, await host.archive.entries(turn.name), sink));
  await store.close();
}

/** A turn ends with its output, or by a cancel or a denial that was asked for. @param {Case} one @returns {string[]} */
function endFaults({ turn, entries, end }) {
  if (end === undefined) return [`${turn.name} (${turn.turnId}) did not end`];
  if (end.type === 'call.completed')
    return isDeepStrictEqual(end.value, outputOf(turn.plan))
      ? []
      : [`${turn.name} ended with ${JSON.stringify(end.value)}`];
  const { code = '' } = end.error ?? {};
  const denied = answersIn(entries).some(({ approved }) => !approved);
  if (code === 'CANCELLED' && entries.some(({ type }) => type === 'cancel.requested')) return [];
  if (code === 'APPROVAL_DENIED' && denied) return [];
  return [`${turn.name} ended with ${JSON.stringify(end.error)}`];
}

/** What workers reported as the end is the end. @param {Case} one @returns {string[]} */
function reportFaults({ turn, end }) {
  return turn.ends.flatMap(({ status, output, error }) => {
    const completed = end?.type === 'call.completed';
    const holds =
      status === 'ok'
        ? completed && isDeepStrictEqual(output, end.value)
        : !completed && error?.code === end?.error?.code;
    const told = JSON.stringify({ status, output, error });
    return holds ? [] : [`${turn.name} was reported as ${told}; the journal holds ${JSON.stringify(end)}`];
  });
}

/** @param {Case} one @returns {string[]} */
function cancelFaults({ turn, entries }) {
  const asked = entries.filter(({ type }) => type === 'cancel.requested');
  const reasons = new Set(asked.map(({ reason }) => reason));
  const known = new Set(turn.cancels.map(({ name }) => name));
  const wrong = [...reasons]
    .filter((reason) => !known.has(reason ?? ''))
    .map((r) => `${turn.name} has a cancel "${r}"`);
  for (const { name, outcome } of turn.cancels) {
    const done = outcome.kind === 'ok' && outcome.value === true;
    const undone = outcome.kind === 'refused' || (outcome.kind === 'ok' && outcome.value === false);
    if (done && asked.length === 0) wrong.push(`"${name}" was acknowledged and is not in the journal`);
    if (undone && reasons.has(name)) wrong.push(`"${name}" was reported as not done and is in the journal`);
  }
  const first = asked[0]?.seq ?? Number.POSITIVE_INFINITY;
  const late = entries.filter(({ type, seq }) => type === 'effect.requested' && seq > first);
  return [...wrong, ...late.map(({ key }) => `${turn.name} began the effect ${key} after it was cancelled`)];
}

/** The answers to approvals that the journal holds. @param {readonly Entry[]} entries */
function answersIn(entries) {
  const answers = entries.filter(({ type, name = '' }) => type === 'signal.received' && name.startsWith('approval '));
  return answers.map(({ name = '', value }) => {
    const { by, approved } = /** @type {{ by: string, approved: boolean }} */ (/** @type {unknown} */ (value));
    return { id: name.slice('approval '.length), by, approved };
  });
}

/** @param {Case} one @returns {string[]} */
function answerFaults({ turn, entries }) {
  const held = answersIn(entries);
  const wrong = turn.answers.flatMap(({ name, outcome, id }) => {
    const taken = held.some((answer) => answer.by === name && answer.id === id);
    if (outcome.kind === 'ok' && !taken) return [`${turn.name}: the answer of ${name} was acknowledged and is lost`];
    if (outcome.kind === 'refused' && taken) return [`${turn.name}: the answer of ${name} was refused and is taken`];
    return [];
  });
  const twice = held.filter(({ id }, i) => held.findIndex((other) => other.id === id) !== i);
  return [...wrong, ...twice.map(({ id }) => `${turn.name}: ${id} was answered twice`)];
}

/** @param {Case} one @returns {string[]} */
function decisionFaults({ turn, entries }) {
  return turn.decisions.flatMap(({ name, outcome }) => {
    const held = entries.some(({ type, by }) => type === 'effect.resolved' && by === name);
    if (outcome.kind === 'ok' && !held) return [`${turn.name}: the decision of ${name} was acknowledged and is lost`];
    if (outcome.kind === 'refused' && held)
      return [`${turn.name}: the decision of ${name} was refused and is recorded`];
    return [];
  });
}

/** Once a turn has begun, a fault names it. @param {Case} one @returns {string[]} */
function anonymousFaults({ turn, entries }) {
  const begun = entries.find(({ type }) => type === 'call.started')?.at ?? Number.POSITIVE_INFINITY;
  const wrong = turn.anonymous.filter(({ at }) => at > begun);
  return wrong.map(({ text }) => `${turn.name} had begun, and a fault does not name it: ${text}`);
}

/** @param {Case} one @param {import('./sink.mjs').Sink} sink @returns {string[]} */
function effectFaults({ turn, entries, end }, sink) {
  const returned = new Set(entries.filter(({ type }) => type === 'effect.returned').map(({ key }) => key));
  const steps = entries.filter(({ type, key }) => type === 'effect.requested' && returned.has(key));
  const recorded = new Set(steps.map(({ value }) => /** @type {{ step?: string } | undefined} */ (value)?.step));
  return turn.plan.steps.filter(isOutside).flatMap(({ op, step }) => {
    const seen = sink.seen({ turn: turn.name, step });
    const what = `${turn.name} ${step}`;
    const keys = new Set(seen.map(({ key }) => key));
    const once = op === 'once' || op === 'ask';
    if (once && seen.length > 1) return [`${what} happened ${seen.length} times: ${JSON.stringify(seen)}`];
    if (keys.size > 1) return [`${what} happened under ${keys.size} idempotency keys: ${JSON.stringify(seen)}`];
    if (seen.length > 0) return [];
    if (end?.type === 'call.completed') return [`${what} never happened, and its turn is complete`];
    return recorded.has(step) ? [`${what} never happened and has a result`] : [];
  });
}
