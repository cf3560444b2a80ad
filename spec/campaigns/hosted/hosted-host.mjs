// A host of the campaigns of hosted loops: the loops that their turns run, whose effects go to a sink.

import { defineLoop } from 'rondo';
import { Host, Registry } from 'rondo/host';
import { receiptKeys } from './receipt-keys.mjs';

/**
 * An effect as a sink receives it. `key` is the idempotency key, and `at` the time of the process that performs it.
 * @typedef {{ readonly key: string, readonly tool: string, readonly input: unknown, readonly at: number,
 *   readonly pid?: number }} SunkEffect
 */
/** @typedef {(effect: SunkEffect) => unknown} PerformEffect */
/**
 * @typedef {object} HostParts
 * @property {import('rondo/host').Store} store
 * @property {import('rondo/host').Clock} clock
 * @property {import('rondo/host').Ids} ids
 * @property {PerformEffect} perform
 */

const ANY = { input: true, output: true };
/** The number in the session of a turn, such as 7 in `hosted:LOOP:7`. */
const TURN_NUMBER = /hosted:[^:]+:(\d+)/;

/**
 * The loops. `report` performs one effect and `pair` two of them; `exact` performs one that must not be repeated; `gated`
 * needs an approval; `flaky` fails in every third turn, after its effect; `asking` calls the tool that its input names.
 * @param {PerformEffect} perform @param {() => number} now
 */
function loopsOf(perform, now) {
  const run = (/** @type {string} */ tool) => async (/** @type {unknown} */ input, /** @type {any} */ call) => {
    await perform({ key: call.idempotencyKey, tool, input, at: now() });
    return { performed: TURN_NUMBER.exec(call.idempotencyKey)?.[1] ?? call.idempotencyKey };
  };
  const toolOf = (/** @type {string} */ id, /** @type {object} */ more = {}) =>
    defineLoop(/** @type {never} */ ({ id, ...ANY, safety: 'keyed', tool: run(id), ...more }));
  const [report, erase] = [toolOf('report'), toolOf('erase')];
  const gated = toolOf('gated', { policy: { approval: 'ask' } });
  const exact = toolOf('exact', { safety: 'once' });
  const failing = async (/** @type {unknown} */ input, /** @type {any} */ call) => {
    const { performed } = await run('flaky')(input, call);
    if (Number(performed) % 3 === 0) throw new Error('Every third turn fails.');
    return { performed };
  };
  const flaky = toolOf('flaky', { tool: failing });
  const twice = async (/** @type {any} */ input, /** @type {any} */ scope) => {
    await scope.call(report, input);
    return scope.call(report, input);
  };
  const pair = defineLoop(/** @type {never} */ ({ id: 'pair', ...ANY, run: twice }));
  const askedFor = async (/** @type {any} */ input, /** @type {any} */ scope) => {
    await scope.call(input?.tool === 'erase' ? erase : report, input).catch(() => null);
    return { asked: input?.tool ?? null };
  };
  const asking = defineLoop(/** @type {never} */ ({ id: 'asking', ...ANY, run: askedFor }));
  return [report, erase, gated, exact, flaky, pair, asking];
}

/** Creates a host. @param {HostParts} parts */
export function hostedHost({ store, clock, ids, perform }) {
  const registry = new Registry(new Map());
  for (const loop of loopsOf(perform, () => clock.now())) registry.add(/** @type {never} */ (loop));
  const parts = { store, registry, clock, ids, receiptKeys, providers: new Map() };
  return new Host(/** @type {never} */ (parts));
}
