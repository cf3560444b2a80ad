// Attacks on approvals, trust and identities. See README.md.

import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { World } from './authority/world.mjs';
import { root, show, within } from './stage.mjs';

const AREAS = ['approvals', 'grants', 'targets', 'display', 'trust', 'sends', 'identity'];
const CASE_MS = 90_000;

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    seed: { type: 'string', default: '1' },
    part: { type: 'string', default: '1/1' },
    lanes: { type: 'string', default: '2' },
    list: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);

/** @typedef {{ id: string, run: (world: World) => unknown }} Case */

const MODULES = [
  'programs',
  'arguments',
  'races',
  'answers',
  'gates',
  'kills',
  'grants',
  'files',
  'display',
  'terminal',
].concat(['clones', 'journals', 'reads', 'trusting', 'owner-file', 'settings', 'sends', 'hosts', 'chats', 'keys']);

/** @returns {Promise<Case[]>} */
async function allCases() {
  const modules = await Promise.all(MODULES.map((name) => import(`./authority/${name}.mjs`)));
  return modules.flatMap(({ cases }) => cases(seed));
}

/** @param {Case} one */
async function attempt({ id, run }) {
  const world = new World(seed, id);
  try {
    await within(Promise.resolve(run(world)), CASE_MS, 'the case to end');
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof Error)) return show(thrown);
    return thrown.constructor.name === 'Broken' ? thrown.message : show(thrown.stack ?? thrown.message);
  } finally {
    await world.end().catch((thrown) => console.log(`${id}: cleaning up failed: ${show(String(thrown))}`));
  }
}

const results = new Map(AREAS.map((area) => [area, { held: 0, failed: 0, skipped: 0 }]));

/** @param {Case[]} queue */
async function lane(queue) {
  for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
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
await Promise.all(Array.from({ length: Number(values.lanes) }, () => lane(cases)));
rmSync(root, { recursive: true, force: true });
const total = { held: 0, failed: 0, skipped: 0 };
for (const [area, { held, failed, skipped }] of results) {
  total.held += held;
  total.failed += failed;
  total.skipped += skipped;
  const left = skipped > 0 ? `, ${skipped} skipped` : '';
  console.log(`${area}: ${held + failed} cases: ${held} held, ${failed} failed${left}`);
}
const seconds = Math.round((performance.now() - started) / 1000);
console.log(
  `${total.held + total.failed} cases: ${total.held} held, ${total.failed} failed (${total.skipped} skipped, ${seconds} s)`,
);
process.exit(total.failed > 0 ? 1 : 0);
