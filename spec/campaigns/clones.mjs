// Hostile clones: an operator clones a repository and uses every verb in it, except for those that grant authority
// (`trust`) or write to a given path (`init`, `--out`). No code of the clone may run, no secret may be sent, and no
// file may change outside of the project's data directory. See README.md.

import { lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seededRandom } from 'rondo/testing';
import { leakIn } from '../support/operator.mjs';
import { definitions } from './clones/definitions.mjs';
import { hostedFilesOf, writeHosting } from './clones/hosting.mjs';
import { journalKinds, plantJournal } from './clones/journals.mjs';
import { configs, projectFiles } from './clones/project-files.mjs';
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

/** `dev` does not end by itself; its own tests cover clones. */
const EXCLUDED_VERBS = ['trust', 'init', 'help', 'dev'];

/**
 * The ids in a clone, for the arguments of the verbs.
 * @typedef {object} CloneIds
 * @property {readonly string[]} loops
 * @property {readonly string[]} turns
 * @property {readonly string[]} approvals
 * @property {readonly string[]} effects
 */

/**
 * Returns the command lines of each verb for the ids of a clone.
 * @type {{ readonly [verb: string]: (ids: CloneIds) => readonly (readonly string[])[] }}
 */
const argumentsByVerb = {
  run: ({ loops }) => loops.map((loop) => ['run', '--json', '--', loop]),
  chat: ({ loops }) => [['chat', '--', loops.at(-1) ?? 'agent']],
  resume: ({ turns }) => [['resume', '--all'], ...turns.map((turn) => ['resume', turn])],
  retry: ({ turns }) => [['retry', turns[0] ?? 'none']],
  fork: ({ turns }) => turns.slice(0, 2).map((turn) => ['fork', turn, '--at', '1']),
  receipts: ({ turns }) => [['receipts'], ['receipts', turns[0] ?? 'none']],
  verify: ({ turns }) => [
    ['verify', '--all'],
    ['verify', turns[0] ?? 'none'],
  ],
  export: ({ turns }) => [['export'], ['export', '--turn', turns[0] ?? 'none', '--as', 'runx']],
  keys: () => [['keys'], ['keys', 'create']],
  close: ({ turns }) => [['close', turns[0]?.split('.')[0] ?? 'none']],
  worker: () => [['worker', '--once']],
  host: ({ loops }) => [
    ...hostedFilesOf(loops).map((file) => ['host', 'start', file]),
    ['worker', '--once'],
    ['host', 'status'],
    ['host', 'status', 'hosted-0', '--turns'],
    ['host', 'stop', 'hosted-0', '--as', 'victim'],
  ],
  harness: () => [['harness', '.']],
  signal: ({ turns }) => [['signal', turns[0] ?? 'none', 'go', '--payload', '{}']],
  cancel: () => [['cancel', 'no-such-turn']],
  list: () => [['list'], ['list', '--json']],
  show: ({ loops }) => loops.slice(0, 3).map((loop) => ['show', '--', loop]),
  plan: () => [['plan', 'convert', 'loops/none.toml']],
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
  completion: () => [
    ['completion', 'bash'],
    ['completion', 'ids', 'run'],
  ],
  demo: () => [['demo']],
};

/** Returns the random functions of a clone. @param {number} n */
function randomFor(n) {
  const random = seededRandom(Number(values.seed) * 100_003 + n);
  const pick = /** @type {import('./clones/definitions.mjs').Pick} */ (
    (all) => /** @type {(typeof all)[number]} */ (all[Math.floor(random() * all.length)])
  );
  return { random, pick };
}

/**
 * Writes the operator's configuration. Its trust file: none, with another directory, or with a permit for the attacker's server.
 * @param {Victim} victim @param {string} kind
 */
function writeOperatorTrust({ home, base, listener }, kind) {
  const folder = join(home, '.config', 'rondo');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  // The operator has signed receipts before.
  writeFileSync(join(folder, 'key-origin'), 'a secret of the operator', { mode: 0o600 });
  if (kind === 'nothing') return;
  mkdirSync(join(base, 'work', 'other'), { recursive: true });
  const directories = `directories = [${JSON.stringify(join(base, 'work', 'other'))}]\n`;
  const hosts = ['127.0.0.1', 'localhost'].map((host) => `"${host}:${listener.port}"`).join(', ');
  const text = kind === 'destination' ? `${directories}destinations = [${hosts}]\n` : directories;
  writeFileSync(join(folder, 'trust.toml'), text, { mode: 0o600 });
}

/** Creates one clone. @param {Victim} victim @param {number} n */
async function createClone(victim, n) {
  const { random, pick } = randomFor(n);
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
  writeOperatorTrust(victim, operator);
  const add = (/** @type {typeof configs} */ table, /** @type {number} */ count) => {
    for (let i = 0; i < count; i++) {
      const name = pick(Object.keys(table));
      if (kinds.includes(name)) continue;
      kinds.push(name);
      try {
        table[name]?.(victim, clone, pick);
      } catch (error) {
        // Two hostile parts need the same path. The second one is left out.
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
  // A refused configuration stops every verb that reads it, so half of the clones have none.
  if (random() < 0.5) add(configs, 1);
  add(projectFiles, Math.floor(random() * 2.5));
  writeHosting(victim, clone, pick);
  return { clone, operator, kinds };
}

/** Returns the directories that Rondo may write to. @param {Victim} victim */
function dataDirectories({ project }) {
  return ['.rondo', 'state']
    .map((name) => join(project, name))
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true);
}

/**
 * Parses JSON output and returns the ids in it, or none.
 * @param {string} text @param {(document: any) => readonly string[]} from
 */
function idsIn(text, from) {
  try {
    return from(JSON.parse(text));
  } catch {
    return [];
  }
}

/**
 * Returns the ids of the clone that the verbs are used on.
 * @param {Victim} victim @param {Clone} clone @returns {Promise<CloneIds>}
 */
async function idsOf(victim, { loops }) {
  const runs = await victim.rondo(['runs', '--json']);
  const pending = await victim.rondo(['approvals', '--json']);
  const turns = idsIn(runs.stdout, ({ runs: all }) => all.map((/** @type {any} */ { turnId }) => turnId));
  const approvals = idsIn(pending.stdout, ({ approvals: all }) => all.map((/** @type {any} */ { id }) => id));
  const effects = turns.flatMap((turn) => [`${turn}/0`, `${turn}/1`]);
  return { loops: [...new Set(loops)], turns, approvals, effects };
}

/**
 * Returns the violations of one command.
 * @param {Victim} victim @param {Map<string, string>} before @param {Awaited<ReturnType<Victim['rondo']>>} ended
 * @param {string} operator
 */
function violationsOf(victim, before, ended, operator) {
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
      ? [`sent a request to this machine: ${requests[0]?.slice(0, 100)}`]
      : []),
    ...(printed === undefined ? [] : [`printed ${printed}`]),
    ...(ended.late ? ['did not end'] : []),
    ...(ended.code === null && !ended.late ? ['exited by a signal'] : []),
    ...(/\n\s+at .*\.js:\d+/.test(ended.stderr) ? [`printed a stack trace: ${ended.stderr.slice(0, 200)}`] : []),
  ];
}

const summary = { clones: 0, commands: 0, kinds: new Set(), violations: /** @type {string[]} */ ([]) };

/** Creates a clone, uses every verb in it and records the violations. @param {number} n */
async function attack(n) {
  const victim = new Victim();
  await victim.open();
  try {
    const { clone, operator, kinds } = await createClone(victim, n);
    for (const kind of kinds) summary.kinds.add(kind);
    let before = victim.snapshot(dataDirectories(victim));
    const ids = await idsOf(victim, clone);
    const commandLines = Object.values(argumentsByVerb).flatMap((argumentsFor) => argumentsFor(ids));
    for (const args of commandLines) {
      const ended = await victim.rondo(args);
      summary.commands += 1;
      const found = violationsOf(victim, before, ended, operator);
      if (values.verbose)
        console.log(
          `${n} [${kinds.join(', ')}; ${operator}] ${args.join(' ')} -> ${ended.code} ${(ended.stderr || ended.stdout).trim().split('\n')[0]?.slice(0, 160)}`,
        );
      for (const text of found) {
        const violation = `clone ${n} (${kinds.join(', ')}; operator: ${operator}): rondo ${args.join(' ')}: ${text}`;
        summary.violations.push(violation);
        console.log(violation);
      }
      if (found.length > 0) {
        victim.listener.requests.length = 0;
        rmSync(victim.executionLog, { force: true });
        before = victim.snapshot(dataDirectories(victim));
      }
    }
    summary.clones += 1;
  } finally {
    victim.close();
  }
}

/** Throws if the help lists a verb that this campaign does not use. */
async function assertAllVerbsAreUsed() {
  const victim = new Victim();
  await victim.open();
  const { stdout } = await victim.rondo(['--help']);
  victim.close();
  const verbs = [...stdout.matchAll(/^ {2}([a-z][a-z-]*)(?: \[| <|\s{2})/gm)].map(([, verb = '']) => verb);
  const missing = verbs.filter((verb) => !(verb in argumentsByVerb) && !EXCLUDED_VERBS.includes(verb));
  if (verbs.length < 15 || missing.length > 0)
    throw new Error(`The campaign does not use these verbs: ${missing.join(', ') || 'all of them'}.`);
}

await assertAllVerbsAreUsed();
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
