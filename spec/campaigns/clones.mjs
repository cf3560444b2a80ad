// Hostile clones: an operator clones a repository and tries every verb in it, except for those that give authority (`trust`) or
// write where they are told (`init`, `--out`). Nothing of the clone may run, no secret may be sent, and no file may
// change outside of the project's data directory. See README.md.

import { lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seededRandom } from 'rondo/testing';
import { leakIn } from '../support/operator.mjs';
import { definitions } from './clones/definitions.mjs';
import { journalKinds, plantJournal } from './clones/journals.mjs';
import { configs, surroundings } from './clones/surroundings.mjs';
import { changes, Victim } from './clones/victim.mjs';

/** @typedef {import('./clones/definitions.mjs').Clone} Clone */

const { values } = parseArgs({
  options: {
    clones: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    lanes: { type: 'string', default: '3' },
    only: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
});

const NOT_TRIED = ['trust', 'init', 'help'];

/** @typedef {{ loops: readonly string[], turns: readonly string[], approvals: readonly string[], effects: readonly string[] }} Known */

/** How each verb is used on what the clone holds. @type {{ readonly [verb: string]: (known: Known) => readonly (readonly string[])[] }} */
const uses = {
  run: ({ loops }) => loops.map((loop) => ['run', '--json', '--', loop]),
  chat: ({ loops }) => [['chat', '--', loops.at(-1) ?? 'agent']],
  resume: ({ turns }) => [['resume', '--all'], ...turns.map((turn) => ['resume', turn])],
  cancel: () => [['cancel', 'no-such-turn']],
  list: () => [['list'], ['list', '--json']],
  show: ({ loops }) => loops.slice(0, 3).map((loop) => ['show', '--', loop]),
  check: () => [['check'], ['check', '--json']],
  runs: () => [['runs']],
  status: ({ turns }) => [['status', turns[0] ?? 'none']],
  trace: ({ turns }) => [['trace', turns[0] ?? 'none', '--json']],
  events: ({ turns }) => [['events', turns[0]?.split('.')[0] ?? 'none']],
  diff: ({ turns }) => [['diff', turns[0] ?? 'none', turns[0] ?? 'none']],
  replay: ({ turns }) =>
    turns.flatMap((turn) => [
      ['replay', turn],
      ['replay', turn, '--now'],
    ]),
  approvals: ({ approvals }) => [['approvals'], ...approvals.map((id) => ['approvals', '--full', id])],
  approve: ({ approvals }) =>
    (approvals.length > 0 ? approvals : ['none']).map((id) => ['approve', id, '--as', 'victim']),
  deny: ({ approvals }) => [['deny', approvals[0] ?? 'none', '--as', 'victim']],
  resolve: ({ effects }) =>
    (effects.length > 0 ? effects : ['none']).map((id) => ['resolve', id, '--retry', '--as', 'victim']),
  conformance: () => [['conformance', '--only', 'DEF-01']],
  doctor: () => [
    ['doctor'],
    ['doctor', '--json'],
    ['doctor', '--full'],
    ['doctor', '--accept', 'anchor', '--as', 'victim'],
  ],
  remove: ({ turns }) => [['remove', turns[0]?.split('.')[0] ?? 'none', '--yes', '--as', 'victim']],
  demo: () => [['demo']],
};

/** @param {number} n */
function pickOf(n) {
  const random = seededRandom(Number(values.seed) * 100_003 + n);
  const pick = /** @type {import('./clones/definitions.mjs').Pick} */ (
    (all) => /** @type {(typeof all)[number]} */ (all[Math.floor(random() * all.length)])
  );
  return { random, pick };
}

/** The operator has trusted other places, or allows this server, or has said nothing. @param {Victim} victim @param {string} kind */
function plantOperator({ home, base, listener }, kind) {
  if (kind === 'nothing') return;
  const folder = join(home, '.config', 'rondo');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  mkdirSync(join(base, 'work', 'other'), { recursive: true });
  const directories = `directories = [${JSON.stringify(join(base, 'work', 'other'))}]\n`;
  const hosts = ['127.0.0.1', 'localhost'].map((host) => `"${host}:${listener.port}"`).join(', ');
  const text = kind === 'destination' ? `${directories}destinations = [${hosts}]\n` : directories;
  writeFileSync(join(folder, 'trust.toml'), text, { mode: 0o600 });
}

/** Makes one clone. @param {Victim} victim @param {number} n */
async function make(victim, n) {
  const { random, pick } = pickOf(n);
  /** @type {Clone} */
  const clone = { loops: [] };
  /** @type {string[]} */
  const kinds = [];
  if (random() < 0.4) {
    const kind = pick(journalKinds);
    await plantJournal(kind, victim, clone);
    kinds.push(kind);
  }
  const operator = pick(['nothing', 'nothing', 'other', 'destination']);
  plantOperator(victim, operator);
  const add = (/** @type {typeof configs} */ table, /** @type {number} */ count) => {
    for (let i = 0; i < count; i++) {
      const name = pick(Object.keys(table));
      if (kinds.includes(name)) continue;
      kinds.push(name);
      try {
        table[name]?.(victim, clone, pick);
      } catch (error) {
        // Two of them want the same place: the second one is left out.
        if (
          !['EEXIST', 'ENOTDIR', 'ENOENT', 'EACCES', 'EPERM', 'EISDIR', 'ENXIO', 'ELOOP', 'EROFS', 'EINVAL'].includes(
            String(/** @type {NodeJS.ErrnoException} */ (error).code),
          )
        )
          throw error;
      }
    }
  };
  add(definitions, 1 + Math.floor(random() * 3));
  // Settings that are refused stop every verb that reads them: most clones have none.
  if (random() < 0.5) add(configs, 1);
  add(surroundings, Math.floor(random() * 2.5));
  return { clone, operator, kinds };
}

/** The directories that Rondo may write to. @param {Victim} victim */
function dataDirectories({ project }) {
  return ['.rondo', 'state']
    .map((name) => join(project, name))
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true);
}

/** @param {string} text @param {(document: any) => readonly string[]} from */
function idsIn(text, from) {
  try {
    return from(JSON.parse(text));
  } catch {
    return [];
  }
}

/** @param {Victim} victim @param {Clone} clone @returns {Promise<Known>} */
async function look(victim, { loops }) {
  const runs = await victim.rondo(['runs', '--json']);
  const waiting = await victim.rondo(['approvals', '--json']);
  const turns = idsIn(runs.stdout, ({ runs: all }) => all.map((/** @type {any} */ { turnId }) => turnId));
  const approvals = idsIn(waiting.stdout, (all) => all.map((/** @type {any} */ { id }) => id));
  const effects = turns.flatMap((turn) => [`${turn}/0`, `${turn}/1`]);
  return { loops: [...new Set(loops)], turns, approvals, effects };
}

/** What went wrong with one use. @param {Victim} victim @param {Map<string, string>} before @param {Awaited<ReturnType<Victim['rondo']>>} ended @param {string} operator */
function wrong(victim, before, ended, operator) {
  const { requests } = victim.listener;
  const executed = victim.executed();
  const changed = changes(before, victim.snapshot(dataDirectories(victim)));
  const sent = requests.find((request) => leakIn(request) !== undefined);
  const printed = leakIn(ended.stdout + ended.stderr);
  return [
    ...(executed === '' ? [] : [`executed: ${executed}`]),
    ...(changed.length === 0 ? [] : [`changed: ${changed.slice(0, 5).join(', ')}`]),
    ...(sent === undefined ? [] : [`sent ${leakIn(sent)}`]),
    ...(requests.length > 0 && operator !== 'destination'
      ? [`reached this machine: ${requests[0]?.slice(0, 100)}`]
      : []),
    ...(printed === undefined ? [] : [`printed ${printed}`]),
    ...(ended.late ? ['did not end'] : []),
    ...(ended.code === null && !ended.late ? ['was ended by a signal'] : []),
    ...(/\n\s+at .*\.js:\d+/.test(ended.stderr) ? [`showed a stack: ${ended.stderr.slice(0, 200)}`] : []),
  ];
}

const summary = { clones: 0, commands: 0, kinds: new Set(), violations: /** @type {string[]} */ ([]) };

/** @param {number} n */
async function attack(n) {
  const victim = new Victim();
  await victim.open();
  try {
    const { clone, operator, kinds } = await make(victim, n);
    for (const kind of kinds) summary.kinds.add(kind);
    let before = victim.snapshot(dataDirectories(victim));
    const known = await look(victim, clone);
    const lines = Object.values(uses).flatMap((use) => use(known));
    for (const args of lines) {
      const ended = await victim.rondo(args);
      summary.commands += 1;
      const flaws = wrong(victim, before, ended, operator);
      if (values.verbose)
        console.log(
          `${n} [${kinds.join(', ')}; ${operator}] ${args.join(' ')} -> ${ended.code} ${(ended.stderr || ended.stdout).trim().split('\n')[0]?.slice(0, 160)}`,
        );
      for (const flaw of flaws) {
        const violation = `clone ${n} (${kinds.join(', ')}; operator: ${operator}): rondo ${args.join(' ')}: ${flaw}`;
        summary.violations.push(violation);
        console.log(violation);
      }
      if (flaws.length > 0) {
        victim.listener.requests.length = 0;
        rmSync(victim.mark, { force: true });
        before = victim.snapshot(dataDirectories(victim));
      }
    }
    summary.clones += 1;
  } finally {
    victim.close();
  }
}

/** A verb that nobody tried would be a hole in this campaign. */
async function assertAllVerbs() {
  const victim = new Victim();
  await victim.open();
  const { stdout } = await victim.rondo(['--help']);
  victim.close();
  const verbs = [...stdout.matchAll(/^ {2}([a-z][a-z-]*)(?: \[| <|\s{2})/gm)].map(([, verb = '']) => verb);
  const missing = verbs.filter((verb) => !(verb in uses) && !NOT_TRIED.includes(verb));
  if (verbs.length < 15 || missing.length > 0)
    throw new Error(`These verbs are not tried: ${missing.join(', ') || 'all of them'}.`);
}

await assertAllVerbs();
const queue =
  values.only === undefined
    ? Array.from({ length: Number(values.clones) }, (_, n) => n)
    : values.only.split(',').map(Number);
const lane = async () => {
  for (let n = queue.shift(); n !== undefined; n = queue.shift()) await attack(n);
};
await Promise.all(Array.from({ length: Number(values.lanes) }, lane));
console.log(JSON.stringify({ ...summary, kinds: summary.kinds.size, violations: summary.violations }));
process.exitCode = summary.violations.length > 0 ? 1 : 0;
