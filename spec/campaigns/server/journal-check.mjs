// The checks at the end of a campaign with a server: every turn ended once, with its output, and performed its effect
// under one idempotency key.

import { join } from 'node:path';
import { expandLeaves, Host, Registry, systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { effectValue } from '../sink.mjs';

/** A turn that was accepted: its id, its name in the sink and the time that it sleeps. */
/** @typedef {{ readonly turnId: string, readonly name: string, readonly ms: number }} AcceptedTurn */
/** @typedef {import('../sink.mjs').Sink} Sink */
/** @typedef {{ readonly data: string, readonly sink: Sink, readonly turns: readonly AcceptedTurn[] }} Results */

/**
 * Returns a description of each violation, and the delay of each turn: the time from its start to its end without the
 * time that it sleeps.
 * @param {Results} results
 * @returns {Promise<{ violations: string[], delays: number[] }>}
 */
export async function checkServerTurns({ data, sink, turns }) {
  const store = await openSqlite(join(data, 'journal.db'), { check: 'full' });
  const { report } = /** @type {{ report?: { damage?: readonly unknown[] } }} */ (/** @type {unknown} */ (store));
  const violations = report?.damage?.length === 0 ? [] : [`the store is damaged: ${JSON.stringify(report)}`];
  const host = new Host({ store, clock: systemClock, ids: systemIds, registry: new Registry() });
  const names = new Set(turns.map(({ turnId }) => turnId));
  for (const { turnId } of await host.archive.turns())
    if (!names.has(turnId)) violations.push(`the store has a turn that no client started: ${turnId}`);
  const due = await store.dueTurns.list(Number.MAX_SAFE_INTEGER, 10);
  if (due.length > 0) violations.push(`ended turns are in the index of due turns: ${JSON.stringify(due)}`);
  /** @type {number[]} */
  const delays = [];
  for (const turn of turns) {
    const entries = expandLeaves(await host.archive.entries(turn.turnId.slice(0, turn.turnId.lastIndexOf('.'))));
    violations.push(...checkTurn(turn, entries), ...checkEffect(turn, sink));
    const [first, last] = [entries[0]?.at ?? 0, entries.at(-1)?.at ?? 0];
    delays.push(last - first - turn.ms);
  }
  await store.close();
  return { violations, delays };
}

/** @param {AcceptedTurn} turn @param {readonly import('rondo/protocol').Entry[]} entries @returns {string[]} */
function checkTurn({ turnId, name }, entries) {
  const count = (/** @type {string} */ type) => entries.filter((entry) => entry.type === type).length;
  const isRoot = (/** @type {{ key: string }} */ { key }) => key === turnId;
  const [end, ...furtherEnds] = entries.filter((entry) => isRoot(entry) && /^call\.(c|e)/.test(entry.type));
  if (end === undefined) return [`${name} (${turnId}) did not end`];
  const output = effectValue({ turn: name, step: 'parcel' });
  return [
    ...(furtherEnds.length > 0 ? [`${name} ended ${furtherEnds.length + 1} times`] : []),
    ...(end.type === 'call.completed' && end.value === output ? [] : [`${name} ended with ${JSON.stringify(end)}`]),
    ...(count('effect.returned') === 1 ? [] : [`${name} has ${count('effect.returned')} results of its effect`]),
    ...(count('signal.received') > 1 ? [`${name} received its signal ${count('signal.received')} times`] : []),
  ];
}

/** @param {AcceptedTurn} turn @param {Sink} sink @returns {string[]} */
function checkEffect({ name }, sink) {
  const keys = new Set(sink.attemptsOf({ turn: name, step: 'parcel' }).map(({ key }) => key));
  return keys.size === 1 ? [] : [`the effect of ${name} was performed under ${keys.size} idempotency keys`];
}
