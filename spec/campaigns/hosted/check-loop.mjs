// The checks of a hosted loop at the end of a campaign: no turn is lost, duplicated or early, and each follows the one
// before. What was performed comes from a sink, what was recorded from the stored journal.

import { dueTimesOf } from './due-oracle.mjs';
import { digestOf, headAfter } from './read-loop.mjs';

/** @typedef {import('./read-loop.mjs').StoredLoop} StoredLoop */
/** @typedef {import('./read-loop.mjs').Turn} Turn */
/** @typedef {import('./hosted-host.mjs').SunkEffect} SunkEffect */
/**
 * What a campaign knows of a loop. `effects` is how many effects a turn performs, perhaps by its request, and `sent` has the
 * delivery ids that were sent, with true for those that were acknowledged.
 * @typedef {{ effects: number | ((request: Record<string, any>) => number), sent?: ReadonlyMap<string, boolean>, isBusy?: boolean }} Expected
 */
/** @typedef {(text: string) => void} Report */

/**
 * Checks one loop. `now` is the last time at which a worker had done everything that was due.
 * @param {StoredLoop} loop @param {Expected} expected
 * @param {{ readonly effects: readonly SunkEffect[], readonly now: number, readonly report: Report }} run
 */
export function checkLoop(loop, expected, { effects, now, report }) {
  const say = (/** @type {string} */ text) => report(`${loop.id}: ${text}`);
  checkChain(loop, say);
  checkEffects(loop, expected, effects, say);
  checkDueTimes(loop, now, say);
  checkSignals(loop, expected, say);
  checkHandoffs(loop, say);
}

/** Numbers, heads and receipts. @param {StoredLoop} loop @param {Report} say */
function checkChain({ id, started, turns }, say) {
  let head = headAfter('', { loop: id, digest: started.digest });
  let previous;
  for (const [index, turn] of turns.entries()) {
    const { key, request, ends, receipts, calls } = turn;
    if (key !== `${id}#${index + 1}` || request.turn !== index + 1) say(`turn ${index + 1} is ${key}`);
    const { signal } = request;
    if (signal !== undefined) head = headAfter(head, { signal: digestOf(signal) });
    if (request.head !== head) say(`${key} was requested from another head`);
    if (request.previous !== previous) say(`${key} names another receipt before it`);
    const [end] = ends;
    if (ends.length !== 1 || end === undefined) {
      say(`${key} has ${ends.length} ends`);
      continue;
    }
    if (calls !== 1) say(`${key} was started ${calls} times`);
    const finals = receipts.filter(({ predicate }) => predicate.final);
    const [final] = finals;
    if (finals.length !== 1 || final?.id !== end.receipt) say(`${key} has ${finals.length} final receipts`);
    const handoff = signal?.handoff?.receipt;
    const hosted = {
      ...(handoff !== undefined && { handoff }),
      ...{ head, loop: id, ...(previous !== undefined && { previous }), turn: request.turn },
    };
    for (const { predicate } of receipts)
      if (digestOf(predicate.hosted) !== digestOf(hosted)) say(`a receipt of ${key} names another origin`);
    if (final?.predicate.state !== end.status) say(`the receipt of ${key} says ${final?.predicate.state}`);
    head = headAfter(head, { turn: request.turn, receipt: end.receipt, status: end.status });
    previous = end.receipt;
  }
}

/** Returns the turn of an effect: `INCARNATION:hosted:LOOP:N.KEY/…`. @param {string} key */
export function turnIdOf(key) {
  return key.slice(key.indexOf(':') + 1).split('/')[0] ?? '';
}

/**
 * Each turn has performed its effects, each under one key, and none early.
 * @param {StoredLoop} loop @param {Expected} expected @param {readonly SunkEffect[]} all @param {Report} say
 */
function checkEffects({ id, turns }, expected, all, say) {
  const own = all.filter(({ key }) => turnIdOf(key).match(/^hosted:([^:.]+)/)?.[1] === id);
  /** @type {Map<string, SunkEffect[]>} */
  const byTurn = new Map();
  for (const effect of own) byTurn.set(turnIdOf(effect.key), [...(byTurn.get(turnIdOf(effect.key)) ?? []), effect]);
  for (const { key, request, ends } of turns) {
    const performed = byTurn.get(ends[0]?.turnId) ?? [];
    byTurn.delete(ends[0]?.turnId);
    const keys = new Set(performed.map((effect) => effect.key));
    const count = typeof expected.effects === 'number' ? expected.effects : expected.effects(request);
    if (keys.size !== count) say(`${key} performed ${keys.size} effects`);
    for (const { at, input, tool } of performed) {
      if (at < request.dueAt || at < request.at) say(`${key} was due at ${iso(request.dueAt)} and ran at ${iso(at)}`);
      if (digestOf(input) !== digestOf(request.input)) say(`${key} ran with another input`);
      if (tool === 'exact' && performed.length > 1) say(`${key} performed its effect ${performed.length} times`);
    }
  }
  for (const [turnId, effects] of byTurn) say(`${effects.length} effects of an unknown turn ${turnId}`);
}

/** @param {number} time */
function iso(time) {
  return new Date(time).toISOString();
}

/**
 * Each due time has one turn, or was dropped by a rule of the document, and the turns have no other due times.
 * @param {StoredLoop} loop @param {number} now @param {Report} say
 */
function checkDueTimes({ started, turns, skipped, stopped }, now, say) {
  const { schedule, overlap = 'skip', catchUp = 'one' } = started.document;
  checkRetries(turns, say);
  const scheduled = turns.filter(({ request }) => request.cause === 'schedule');
  if (schedule === undefined || schedule.delayMs !== undefined) return;
  const until = stopped === undefined ? now : stopped.at;
  const due = dueTimesOf(schedule, started.at, until);
  const isDue = new Set(due);
  for (const { key, request } of scheduled) if (!isDue.has(request.dueAt)) say(`${key} has no due time`);
  const wasOpen = (/** @type {number} */ time) =>
    turns.some(({ request, ends }) => request.at < time && time <= (ends[0]?.at ?? now));
  for (const time of due) {
    const own = scheduled.filter(({ request }) => request.dueAt === time).length;
    const covered = scheduled.filter(({ request }) => request.dueAt < time && time <= request.through).length;
    const dropped = skipped.filter(({ from, until: end }) => from <= time && time <= end);
    const isDropped = dropped.length > 0;
    const handled = own + covered + (isDropped ? 1 : 0);
    // The loop may have stopped before a worker came to it.
    if (handled === 0 && stopped !== undefined) continue;
    if (handled !== 1) say(`the due time ${iso(time)} has ${own} turns, ${covered} late ones, dropped: ${isDropped}`);
    if (isDropped && !(wasOpen(time) && overlap === 'skip') && catchUp !== 'none') say(`${iso(time)} was dropped`);
    if (covered > 0 && catchUp !== 'one' && !(wasOpen(time) && overlap === 'queue-one'))
      say(`${iso(time)} was covered by a later turn`);
  }
}

/** A retry waits for its delay, follows a turn that failed, and repeats its input and its signal. @param {readonly Turn[]} turns @param {Report} say */
function checkRetries(turns, say) {
  for (const [index, { key, request }] of turns.entries()) {
    if (request.at < request.dueAt) say(`${key} was requested before it was due`);
    const failed = turns[index - 1]?.request;
    const before = turns[index - 1]?.ends[0];
    if ((request.cause === 'retry') !== (before?.retryAt !== undefined)) say(`${key} is no retry of the turn before`);
    if (request.cause === 'retry' && request.dueAt !== before?.retryAt) say(`${key} has another time for its retry`);
    if (request.cause !== 'retry') continue;
    if (digestOf(request.input) !== digestOf(failed?.input)) say(`${key} has another input than the turn it retries`);
    if (request.signal?.id !== failed?.signal?.id) say(`${key} has another signal than the turn it retries`);
  }
}

/** Each accepted delivery has one turn. @param {StoredLoop} loop @param {Expected} expected @param {Report} say */
function checkSignals({ turns, received, stopped }, { sent, isBusy = false }, say) {
  const known = new Set(received.map(({ id }) => id));
  if (known.size !== received.length) say('a delivery was accepted twice');
  const caused = turns.filter(({ request }) => request.signal !== undefined && request.cause !== 'retry');
  const causes = caused.map(({ request }) => request.signal.id);
  if (new Set(causes).size !== causes.length) say('a delivery caused two turns');
  for (const id of causes) if (!known.has(id)) say(`the unknown delivery ${id} caused a turn`);
  if (stopped === undefined && !isBusy)
    for (const id of known) if (!causes.includes(id)) say(`the delivery ${id} has no turn`);
  if (sent === undefined) return;
  for (const { id, value } of received)
    if (value.handoff === undefined && !sent.has(id)) say(`the delivery ${id} was never sent`);
  for (const [id, isAcknowledged] of sent) if (isAcknowledged && !known.has(id)) say(`the delivery ${id} was lost`);
}

/** Each handoff was delivered once. @param {StoredLoop} loop @param {Report} say */
function checkHandoffs({ turns, handedOff }, say) {
  const outgoing = turns.flatMap(({ ends }) =>
    (ends[0]?.handoffs ?? []).map((/** @type {any} */ each) => `handoff ${each.receipt} ${each.target}`),
  );
  const delivered = handedOff.map(({ key }) => key);
  if (outgoing.join() !== delivered.join()) say(`${outgoing.length} handoffs and ${delivered.length} deliveries`);
  for (const { key, value } of handedOff)
    if (!/^(accepted|duplicate)$/.test(value.result)) say(`${key}: ${value.result}`);
}
