// The checks of all hosted loops of a store, and of its receipts.

import { checkLoop } from './check-loop.mjs';
import { hostedHost } from './hosted-host.mjs';
import { readLoops } from './read-loop.mjs';

/**
 * Checks a store that no worker uses, and counts.
 * @param {{ readonly store: import('rondo/host').Store, readonly clock: import('rondo/host').Clock, readonly ids: import('rondo/host').Ids,
 *   readonly effects: readonly import('./hosted-host.mjs').SunkEffect[],
 *   readonly expected: ReadonlyMap<string, import('./check-loop.mjs').Expected>,
 *   readonly report: (text: string) => void }} run
 */
export async function checkStore({ store, clock, ids, effects, expected, report }) {
  const loops = await readLoops(store);
  const now = clock.now();
  for (const loop of loops) {
    const own = expected.get(loop.id);
    if (own === undefined) report(`${loop.id} was never started`);
    else checkLoop(loop, own, { effects, now, report });
  }
  for (const id of expected.keys()) if (!loops.some((loop) => loop.id === id)) report(`${id} is not in the store`);
  for (const loop of loops) checkTargets(loop, loops, report);
  const host = hostedHost({ store, clock, ids, perform: () => undefined });
  const verdict = await host.receipts?.verify(undefined);
  if (verdict?.valid !== true) report(`the receipts are not valid: ${JSON.stringify(verdict)}`);
  const late = await store.dueTurns.list(now, 10);
  if (late.length > 0) report(`the index has due turns: ${JSON.stringify(late)}`);
  const turns = loops.flatMap((loop) => loop.turns);
  const dropped = loops.reduce((sum, loop) => sum + loop.skipped.length, 0);
  /** @type {Record<string, number>} */
  const causes = {};
  for (const { request } of turns) causes[request.cause] = (causes[request.cause] ?? 0) + 1;
  const failed = turns.filter(({ ends }) => ends[0]?.status !== 'ok').length;
  return { loops: loops.length, turns, causes, failed, dropped };
}

/**
 * Each delivered handoff has one turn of its target.
 * @param {import('./read-loop.mjs').StoredLoop} loop @param {readonly import('./read-loop.mjs').StoredLoop[]} loops
 * @param {(text: string) => void} report
 */
function checkTargets({ id, handedOff }, loops, report) {
  for (const { key, value } of handedOff) {
    const target = loops.find((loop) => loop.id === value.target);
    const [, receipt] = key.split(' ');
    const isOwn = (/** @type {any} */ { signal, cause }) => signal?.handoff?.receipt === receipt && cause !== 'retry';
    const turns = target?.turns.filter(({ request }) => isOwn(request)) ?? [];
    if (turns.length !== 1) report(`${id}: the ${key} has ${turns.length} turns`);
  }
}
