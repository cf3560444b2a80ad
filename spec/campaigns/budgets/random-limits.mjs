// The random grants and requests of the campaign of budgets.

import { LOOPS } from './budget-host.mjs';

/** @typedef {{ session: string, loop: string, input: { prompt: string, width?: number } }} Request */

/**
 * Returns random limits. `most` bounds the number of effects, of which the other counts are a part.
 * @param {() => number} random @param {number} most
 */
export function randomLimits(random, most) {
  const below = (/** @type {number} */ n) => Math.floor(random() * n);
  /** @type {import('./budget-sink.mjs').Limits} */
  const limits = {};
  if (random() < 0.5) limits.effects = random() < 0.2 ? { act: below(most / 3) } : below(most);
  if (random() < 0.3) limits.modelRounds = below(most / 2);
  if (random() < 0.2) limits.toolRounds = below(most / 5);
  if (random() < 0.3) limits.outputTokens = below(400);
  if (random() < 0.2) limits.inputTokens = below(20_000);
  if (random() < 0.3) limits.costMicros = below(20_000);
  if (random() < 0.3) limits.turns = below(6);
  if (Object.keys(limits).length === 0) limits.effects = below(10);
  return limits;
}

/** Returns a random request for the session. @param {() => number} random @param {string} session @returns {Request} */
export function randomRequest(random, session) {
  const below = (/** @type {number} */ n) => Math.floor(random() * n);
  const loop = LOOPS[below(LOOPS.length)] ?? '';
  const width = 1 + below(random() < 0.1 ? 100 : 8);
  return { session, loop, input: { prompt: 'go', ...(loop.startsWith('group') && { width }) } };
}
