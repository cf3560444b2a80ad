// Runs the cases of one subject and counts them by area: options, lanes, report and exit code.

import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { root, show, within } from '../support/store-attack.mjs';

/** @typedef {{ id: string, run: (subject: any) => unknown, waits?: boolean, ms?: number }} Case */

/**
 * @typedef {object} Attacks
 * @property {readonly string[]} areas What the ids of cases begin with.
 * @property {readonly string[]} modules Files that export `cases(seed)`, without their extension.
 * @property {number} caseMs How long a case may take if it does not say so itself.
 * @property {(seed: number, id: string) => { end(): Promise<unknown>, assertSound?(): void }} subject What a case is given.
 * @property {Record<string, { type: 'string', default: string }>} [options] Options beside the common ones.
 * @property {(cases: Case[], values: any) => Case[][]} [lanes] The queue of each lane; lanes may share one. @default one lane
 * @property {(error: Error) => string} [flawOf] What an error says of a case. @default its message
 */

/** @param {Attacks} attacks @param {number} seed @param {Case} one @returns {Promise<string | undefined>} */
async function attempt({ subject, caseMs, flawOf = ({ message }) => message }, seed, { id, run, ms = caseMs }) {
  const made = subject(seed, id);
  try {
    await within(Promise.resolve(run(made)), ms, 'the case to end');
    made.assertSound?.();
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? flawOf(thrown) : show(thrown);
  } finally {
    await made.end().catch((thrown) => console.log(`${id}: cleaning up failed: ${show(String(thrown))}`));
  }
}

/** @param {Map<string, { held: number, failed: number, skipped: number }>} results @param {string} id @param {string | undefined} flaw */
function count(results, id, flaw) {
  const result = results.get(id.split('.')[0] ?? '');
  if (result === undefined) throw new TypeError(`${id} has no area.`);
  if (flaw === undefined) result.held += 1;
  else if (flaw.startsWith('skipped')) {
    result.skipped += 1;
    console.log(`${id}: ${flaw}`);
  } else {
    result.failed += 1;
    console.log(`FAILED ${id}: ${flaw}`);
  }
}

/** Prints the counts. @returns {number} how many cases failed */
function report(results, seconds) {
  const total = { held: 0, failed: 0, skipped: 0 };
  for (const [area, { held, failed, skipped }] of results) {
    total.held += held;
    total.failed += failed;
    total.skipped += skipped;
    const left = skipped > 0 ? `, ${skipped} skipped` : '';
    console.log(`${area}: ${held + failed} cases: ${held} held, ${failed} failed${left}`);
  }
  const { held, failed, skipped } = total;
  console.log(`${held + failed} cases: ${held} held, ${failed} failed (${skipped} skipped, ${seconds} s)`);
  return failed;
}

/** Runs what the command line asks for, and ends the process. @param {Attacks} attacks */
export async function runAttacks(attacks) {
  const { areas, modules, options = {}, lanes = (cases) => [cases] } = attacks;
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      seed: { type: 'string', default: '1' },
      part: { type: 'string', default: '1/1' },
      list: { type: 'boolean', default: false },
      ...options,
    },
  });
  const seed = Number(values.seed);
  const loaded = await Promise.all(modules.map((name) => import(`./${name}.mjs`)));
  const [part = 1, parts = 1] = values.part.split('/').map(Number);
  /** @type {Case[]} */
  const cases = loaded
    .flatMap((module) => module.cases(seed))
    .filter(({ id }, n) => id.startsWith(values.only) && n % parts === part - 1);
  const ids = new Set(cases.map(({ id }) => id));
  if (ids.size !== cases.length) throw new TypeError('Two cases have one id.');
  if (values.list) {
    for (const id of ids) console.log(id);
    rmSync(root, { recursive: true, force: true });
    process.exit(0);
  }
  const results = new Map(areas.map((area) => [area, { held: 0, failed: 0, skipped: 0 }]));
  const started = performance.now();
  const run = async (queue) => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift())
      count(results, one.id, await attempt(attacks, seed, one));
  };
  await Promise.all(lanes(cases, values).map(run));
  rmSync(root, { recursive: true, force: true });
  const failed = report(results, Math.round((performance.now() - started) / 1000));
  process.exit(failed > 0 ? 1 : 0);
}
