// Attacks on what tools and commands may reach, on their limits, and on where secrets and escape sequences end up. See README.md.

import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Scene } from './confinement/scene.mjs';
import { root, show, within } from './stage.mjs';

const AREAS = ['data', 'sandbox', 'limits', 'keyring', 'secrets', 'output', 'terminal'];
const CASE_MS = 90_000;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    seed: { type: 'string', default: '1' },
    part: { type: 'string', default: '1/1' },
    list: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);

/** @typedef {{ id: string, run: (scene: Scene) => Promise<unknown>, ms?: number }} Case */

/** @returns {Promise<Case[]>} */
async function allCases() {
  const names = ['data-tools', 'data-commands', 'data-races', 'data-verbs', 'sandbox', 'resources', 'keyring'];
  const modules = await Promise.all(
    [...names, 'swaps', 'secrets-http', 'secrets-others', 'sinks', 'screens', 'hidden'].map(
      (name) => import(`./confinement/${name}.mjs`),
    ),
  );
  return modules.flatMap(({ cases }) => cases(seed));
}

/** @param {Case} one */
async function attempt({ id, run, ms = CASE_MS }) {
  const scene = new Scene(seed, id);
  try {
    await within(Promise.resolve(run(scene)), ms, 'the case to end');
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : show(thrown);
  } finally {
    await scene.end().catch((thrown) => console.log(`${id}: cleaning up failed: ${show(String(thrown))}`));
  }
}

const results = new Map(AREAS.map((area) => [area, { held: 0, failed: 0, skipped: 0 }]));

/** @param {Case} one */
async function judge(one) {
  const flaw = await attempt(one);
  const result = results.get(one.id.split('.')[0] ?? '');
  if (result === undefined) throw new TypeError(`${one.id} has no area.`);
  if (flaw === undefined) result.held += 1;
  else if (flaw.startsWith('skipped')) {
    result.skipped += 1;
    console.log(`${one.id}: ${flaw}`);
  } else {
    result.failed += 1;
    console.log(`FAILED ${one.id}: ${flaw}`);
  }
}

const [part = 1, parts = 1] = values.part.split('/').map(Number);
const cases = (await allCases()).filter(({ id }, n) => id.startsWith(values.only) && n % parts === part - 1);
const ids = new Set(cases.map(({ id }) => id));
if (ids.size !== cases.length) throw new TypeError('Two cases have one id.');
if (values.list) {
  for (const id of ids) console.log(id);
  rmSync(root, { recursive: true, force: true });
  process.exit(0);
}
const started = performance.now();
for (const one of cases) await judge(one);
rmSync(root, { recursive: true, force: true });
const total = { held: 0, failed: 0, skipped: 0 };
for (const [area, result] of results) {
  const { held, failed, skipped } = result;
  total.held += held;
  total.failed += failed;
  total.skipped += skipped;
  console.log(
    `${area}: ${held + failed} cases: ${held} held, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
  );
}
const seconds = Math.round((performance.now() - started) / 1000);
console.log(
  `${total.held + total.failed} cases: ${total.held} held, ${total.failed} failed (${total.skipped} skipped, ${seconds} s)`,
);
process.exit(total.failed > 0 ? 1 : 0);
