// The checks at the end of a campaign: compares the journal with the effects that the sink received and with the
// reports of the workers.

import { isDeepStrictEqual } from 'node:util';
import { expandLeaves, Host, Registry, systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { checkCommandTurn } from './commands.mjs';
import { isExternal, outputOf } from './plans.mjs';

/** @typedef {import('rondo/protocol').Entry} Entry */
/** @typedef {import('./client.mjs').Turn} Turn */
/** @typedef {readonly import('./commands.mjs').CommandTurn[]} CommandTurns */
/** @typedef {import('./sink.mjs').Sink} Sink */
/**
 * The results of a campaign.
 * @typedef {{ readonly turns: readonly Turn[], readonly commands: CommandTurns, readonly sink: Sink }} CampaignResults
 */
/**
 * A turn, the entries of its session and its last entry.
 * @typedef {{ readonly turn: Turn, readonly entries: readonly Entry[], readonly end: Entry | undefined }} TurnRecord
 */

/**
 * Returns a description of each violation.
 * @param {string} file @param {CampaignResults} results
 * @returns {Promise<string[]>}
 */
export async function checkJournal(file, results) {
  /** @type {string[]} */
  const violations = [];
  try {
    await inspect(file, results, violations);
  } catch (thrown) {
    violations.push(`the store cannot be read to its end: ${String(thrown)}`);
  }
  return violations;
}

/**
 * Opens the store and checks its sessions.
 * @param {string} file @param {CampaignResults} results @param {string[]} violations
 */
async function inspect(file, { turns, commands, sink }, violations) {
  const store = await openSqlite(file, { check: 'full' });
  const { report } = /** @type {{ report?: { damage?: readonly unknown[] } }} */ (/** @type {unknown} */ (store));
  if (report?.damage === undefined) violations.push('the store does not report whether it is damaged');
  else if (report.damage.length > 0) violations.push(`the store is damaged: ${JSON.stringify(report.damage)}`);
  const host = new Host({ store, clock: systemClock, ids: systemIds, registry: new Registry() });
  const names = new Set([...turns, ...commands].map(({ name }) => name));
  // The command line seals its turns, and keeps what was refused: both have a stream of the runtime.
  for (const { session } of await store.journal.list())
    if (!names.has(session) && session !== 'rondo:refusals' && session !== 'rondo:receipts')
      violations.push(`the store has an unknown session "${session}"`);
  for (const turn of turns) {
    const entries = expandLeaves(await host.archive.entries(turn.name));
    const ends = entries.filter(({ key, type }) => key === turn.turnId && /^call\.(completed|errored)$/.test(type));
    const starts = entries.filter(({ key, type }) => type === 'call.started' && !key.includes('/'));
    if (starts.length > 1) violations.push(`${turn.name} started ${starts.length} times`);
    if (ends.length > 1) violations.push(`${turn.name} ended ${ends.length} times`);
    const turnRecord = { turn, entries, end: ends[0] };
    const checks = [checkEnd, checkReports, checkCancels, checkAnswers, checkResolutions, checkFaults];
    violations.push(...checks.flatMap((check) => check(turnRecord)), ...checkEffects(turnRecord, sink));
  }
  for (const turn of commands) violations.push(...checkCommandTurn(turn, await host.archive.entries(turn.name), sink));
  await store.close();
}

/**
 * A turn ends with its output, or by a cancel or a denial that the journal has.
 * @param {TurnRecord} record @returns {string[]}
 */
function checkEnd({ turn, entries, end }) {
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

/** The workers report the end that the journal has. @param {TurnRecord} record @returns {string[]} */
function checkReports({ turn, end }) {
  return turn.ends.flatMap(({ status, output, error }) => {
    const completed = end?.type === 'call.completed';
    const matches =
      status === 'ok'
        ? completed && isDeepStrictEqual(output, end.value)
        : !completed && error?.code === end?.error?.code;
    const reported = JSON.stringify({ status, output, error });
    return matches ? [] : [`${turn.name} was reported as ${reported}; the journal has ${JSON.stringify(end)}`];
  });
}

/**
 * The journal has every acknowledged cancel and no refused one. No effect starts after a cancel.
 * @param {TurnRecord} record @returns {string[]}
 */
function checkCancels({ turn, entries }) {
  const requests = entries.filter(({ type }) => type === 'cancel.requested');
  const reasons = new Set(requests.map(({ reason }) => reason));
  const sentReasons = new Set(turn.cancels.map(({ name }) => name));
  const violations = [...reasons]
    .filter((reason) => !sentReasons.has(reason ?? ''))
    .map((reason) => `${turn.name} has an unknown cancel "${reason}"`);
  for (const { name, outcome } of turn.cancels) {
    const isDone = outcome.kind === 'ok' && outcome.value === true;
    const isNotDone = outcome.kind === 'refused' || (outcome.kind === 'ok' && outcome.value === false);
    if (isDone && requests.length === 0) violations.push(`"${name}" was acknowledged and is not in the journal`);
    if (isNotDone && reasons.has(name)) violations.push(`"${name}" was reported as not done and is in the journal`);
  }
  const first = requests[0]?.seq ?? Number.POSITIVE_INFINITY;
  const late = entries.filter(({ type, seq }) => type === 'effect.requested' && seq > first);
  return [...violations, ...late.map(({ key }) => `${turn.name} started the effect ${key} after it was cancelled`)];
}

/** Returns the answers to approvals in the journal. @param {readonly Entry[]} entries */
function answersIn(entries) {
  const answers = entries.filter(({ type, name = '' }) => type === 'signal.received' && name.startsWith('approval '));
  return answers.map(({ name = '', value }) => {
    const { by, approved } = /** @type {{ by: string, approved: boolean }} */ (/** @type {unknown} */ (value));
    return { id: name.slice('approval '.length), by, approved };
  });
}

/**
 * The journal has every acknowledged answer, no refused one, and one answer for each approval.
 * @param {TurnRecord} record @returns {string[]}
 */
function checkAnswers({ turn, entries }) {
  const recorded = answersIn(entries);
  const violations = turn.answers.flatMap(({ name, outcome, id }) => {
    const isRecorded = recorded.some((answer) => answer.by === name && answer.id === id);
    if (outcome.kind === 'ok' && !isRecorded)
      return [`${turn.name}: the answer of ${name} was acknowledged and is lost`];
    if (outcome.kind === 'refused' && isRecorded)
      return [`${turn.name}: the answer of ${name} was refused and is recorded`];
    return [];
  });
  const repeated = recorded.filter(({ id }, i) => recorded.findIndex((other) => other.id === id) !== i);
  return [...violations, ...repeated.map(({ id }) => `${turn.name}: ${id} was answered twice`)];
}

/** The journal has every acknowledged resolution and no refused one. @param {TurnRecord} record @returns {string[]} */
function checkResolutions({ turn, entries }) {
  return turn.resolutions.flatMap(({ name, outcome }) => {
    const isRecorded = entries.some(({ type, by }) => type === 'effect.resolved' && by === name);
    if (outcome.kind === 'ok' && !isRecorded)
      return [`${turn.name}: the resolution of ${name} was acknowledged and is lost`];
    if (outcome.kind === 'refused' && isRecorded)
      return [`${turn.name}: the resolution of ${name} was refused and is recorded`];
    return [];
  });
}

/** A fault names its turn if the turn has started. @param {TurnRecord} record @returns {string[]} */
function checkFaults({ turn, entries }) {
  const startedAt = entries.find(({ type }) => type === 'call.started')?.at ?? Number.POSITIVE_INFINITY;
  const unnamed = turn.unnamedFaults.filter(({ at }) => at > startedAt);
  return unnamed.map(({ text }) => `${turn.name} had started, and a fault does not name it: ${text}`);
}

/**
 * The sink received each effect as often as its safety permits.
 * @param {TurnRecord} record @param {Sink} sink @returns {string[]}
 */
function checkEffects({ turn, entries, end }, sink) {
  const returned = new Set(entries.filter(({ type }) => type === 'effect.returned').map(({ key }) => key));
  const steps = entries.filter(({ type, key }) => type === 'effect.requested' && returned.has(key));
  const returnedSteps = new Set(steps.map(({ value }) => /** @type {{ step?: string } | undefined} */ (value)?.step));
  return turn.plan.steps.filter(isExternal).flatMap(({ op, step }) => {
    const attempts = sink.attemptsOf({ turn: turn.name, step });
    const label = `${turn.name} ${step}`;
    const keys = new Set(attempts.map(({ key }) => key));
    const isOnce = op === 'once' || op === 'ask';
    if (isOnce && attempts.length > 1)
      return [`${label} was performed ${attempts.length} times: ${JSON.stringify(attempts)}`];
    if (keys.size > 1)
      return [`${label} was performed under ${keys.size} idempotency keys: ${JSON.stringify(attempts)}`];
    if (attempts.length > 0) return [];
    if (end?.type === 'call.completed') return [`${label} was never performed, and its turn is complete`];
    return returnedSteps.has(step) ? [`${label} was never performed and has a result`] : [];
  });
}
