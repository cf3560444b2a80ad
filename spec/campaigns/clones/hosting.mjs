// What drives the loops of a clone: files of hosted loops, and a harness that approves every tool call.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @typedef {import('./victim.mjs').Victim} Victim */
/** @typedef {import('./definitions.mjs').Clone} Clone */
/** @typedef {import('./definitions.mjs').Pick} Pick */

/** Returns the loops of a clone that have an id. The others are files. @param {{ readonly loops: readonly string[] }} clone */
const idsIn = ({ loops }) => [...new Set(loops)].filter((loop) => !loop.startsWith('loops/'));

/** Returns the files of the hosted loops of a clone. @param {readonly string[]} loops */
export const hostedFilesOf = (loops) => idsIn({ loops }).map((_, index) => `hosted-${index}.json`);

/** Writes a hosted loop for each loop of a clone, and a harness for all. @param {Victim} victim @param {Clone} clone @param {Pick} pick */
export function writeHosting({ project }, clone, pick) {
  const ids = idsIn(clone);
  const grant = { allowedTools: ids, limits: {}, ...(ids.length > 0 && { unconfined: ids }) };
  const write = (/** @type {string} */ name, /** @type {object} */ value) =>
    writeFileSync(join(project, name), JSON.stringify(value));
  const stop = { maxTurns: pick([1, 2]), ...pick([{}, { approval: 'ignore' }]) };
  for (const [index, loop] of ids.entries())
    write(`hosted-${index}.json`, { id: `hosted-${index}`, loop, input: {}, grant, turn: {}, stop });
  const approvals = ids.map((tool) => ({ tool, approved: true, by: 'operator' }));
  const expect = { status: 'ok' };
  const turns = ids.map((loop, index) => ({ name: `turn-${index}`, loop, grant, approvals, expect }));
  const ends = { reason: 'max_turns' };
  const hosted = hostedFilesOf(ids).map((host, index) => ({ name: `host-${index}`, host, approvals, expect: ends }));
  write('harness.json', { cases: [...turns, ...hosted] });
}
