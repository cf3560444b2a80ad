// Runs the cases of an attack script and counts them by area: options, lanes, report and exit code.

import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { root, show, within } from '../support/store-attack.mjs';

/** @typedef {{ id: string, run: (fixture: any) => unknown, waits?: boolean, ms?: number }} Case */
/** @typedef {{ end(): Promise<unknown>, assertSound?(): void }} Fixture */

/**
 * @typedef {object} Attacks
 * @property {readonly string[]} areas The first segments of the ids of cases.
 * @property {readonly string[]} modules The files that export `cases(seed)`, without their extension.
 * @property {number} caseMs The time limit of a case without a limit of its own.
 * @property {(seed: number, id: string) => Fixture} subject Creates the fixture that a case receives.
 * @property {Record<string, { type: 'string', default: string }>} [options] Command line options of this script.
 * @property {(cases: Case[], values: any) => Case[][]} [lanes] The queue of each lane; lanes may share a queue. By
 *   default, there is one lane.
 * @property {readonly string[]} [known] The ids of cases that are known to fail; README.md says why.
 * @property {(error: Error) => string} [describeFailure] The printed text of an error. By default, its
 *   message.
 */

/**
 * Runs one case. Returns the failure, or undefined if the case holds.
 * @param {Attacks} attacks @param {number} seed @param {Case} attackCase @returns {Promise<string | undefined>}
 */
async function runCase(attacks, seed, { id, run, ms = attacks.caseMs }) {
  const { subject: createFixture, describeFailure = ({ message }) => message } = attacks;
  const fixture = createFixture(seed, id);
  try {
    await within(Promise.resolve(run(fixture)), ms, 'the case to end');
    fixture.assertSound?.();
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? describeFailure(thrown) : show(thrown);
  } finally {
    await fixture.end().catch((thrown) => console.log(`${id}: the cleanup failed: ${show(String(thrown))}`));
  }
}

/** @typedef {{ held: number, failed: number, known: number, skipped: number }} Counts */

/**
 * Adds the result of a case to the counts of its area, and prints it if the case did not hold.
 * @param {Map<string, Counts>} results @param {string} id @param {string | undefined} failure
 * @param {readonly string[]} known
 */
function addResult(results, id, failure, known) {
  const result = results.get(id.split('.')[0] ?? '');
  if (result === undefined) throw new TypeError(`${id} belongs to no area.`);
  if (failure === undefined) result.held += 1;
  else if (failure.startsWith('skipped')) {
    result.skipped += 1;
    console.log(`${id}: ${failure}`);
  } else if (known.includes(id)) {
    result.known += 1;
    console.log(`KNOWN ${id}: ${failure}`);
  } else {
    result.failed += 1;
    console.log(`FAILED ${id}: ${failure}`);
  }
}

/** Prints the counts. @returns {number} the number of failed cases */
function report(results, seconds) {
  const total = { held: 0, failed: 0, known: 0, skipped: 0 };
  for (const [area, { held, failed, known, skipped }] of results) {
    total.held += held;
    total.failed += failed;
    total.known += known;
    total.skipped += skipped;
    const skippedText = skipped > 0 ? `, ${skipped} skipped` : '';
    const knownText = known > 0 ? `, ${known} known to fail` : '';
    console.log(`${area}: ${held + failed + known} cases: ${held} held, ${failed} failed${knownText}${skippedText}`);
  }
  const { held, failed, known, skipped } = total;
  const rest = `${known} known to fail, ${skipped} skipped, ${seconds} s`;
  console.log(`${held + failed + known} cases: ${held} held, ${failed} failed (${rest})`);
  return failed;
}

/** Runs the cases that the command line selects, then exits the process. @param {Attacks} attacks */
export async function runAttacks(attacks) {
  const { areas, modules, options = {}, known = [], lanes = (cases) => [cases] } = attacks;
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
  if (ids.size !== cases.length) throw new TypeError('Two cases have the same id.');
  if (values.list) {
    for (const id of ids) console.log(id);
    rmSync(root, { recursive: true, force: true });
    process.exit(0);
  }
  const results = new Map(areas.map((area) => [area, { held: 0, failed: 0, known: 0, skipped: 0 }]));
  const started = performance.now();
  const run = async (queue) => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      addResult(results, next.id, await runCase(attacks, seed, next), known);
  };
  await Promise.all(lanes(cases, values).map(run));
  rmSync(root, { recursive: true, force: true });
  const failed = report(results, Math.round((performance.now() - started) / 1000));
  process.exit(failed > 0 ? 1 : 0);
}
