// Beside a server: while a server runs on a store, every verb of the command line works on that store, and a second
// script starts and resumes turns with its own code. See README.md.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createProject } from './server/project.mjs';
import { ServerCampaign } from './server/server-campaign.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    verbs: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
});

const BIN = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));
const SCRIPT = fileURLToPath(new URL('server/second-script.mjs', import.meta.url));
const MAX_COMMAND_MS = 40_000;
const POLL_MS = 50;
/** The worker of the server sees a turn within this time. */
const WORKER_POLL_MS = 1000;

let commands = 0;
/** @type {ServerCampaign} */
const campaign = new ServerCampaign('beside-a-server', Number(values.seed), () => ({ commands }));
const { log, shared, folder } = campaign;
const project = createProject(folder);
const env = {
  PATH: process.env.PATH,
  HOME: join(folder, 'home'),
  RONDO_DATA: shared.data,
  RONDO_TRUST: join(project, 'loops'),
  CAMPAIGN_SINK: shared.sink,
};
mkdirSync(env.HOME);

/** @typedef {{ code: number | null, stdout: string, stderr: string }} Ended */

/**
 * Runs a program in the project. `onOutput` is called with the child whenever it has printed something.
 * @param {readonly string[]} args @param {{ input?: string, onOutput?: (child: import('node:child_process').ChildProcess, stderr: string) => void }} [options]
 * @returns {Promise<Ended>}
 */
async function run(args, { input = '', onOutput } = {}) {
  const child = spawn(process.execPath, args, { cwd: project, env, timeout: MAX_COMMAND_MS, killSignal: 'SIGKILL' });
  const output = { stdout: '', stderr: '' };
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
    child[name].setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
      output[name] += chunk;
      onOutput?.(child, output.stderr);
    });
  }
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [code] = await once(child, 'close');
  log.write('command', { args, code, ...output });
  return { code, ...output };
}

/** Runs a verb and returns the JSON document that it prints. @param {readonly string[]} args @returns {Promise<any>} */
async function readJson(args) {
  const { stdout } = await run([BIN, ...args, '--json']);
  return JSON.parse(stdout);
}

/** The turns that the verbs use, each in the state that its verb needs. */
/** @typedef {Awaited<ReturnType<typeof prepare>>} Fixtures */

/** Starts a turn of the server. @param {string} loop @param {string} name @param {object} [input] @returns {Promise<string>} */
async function startTurn(loop, name, input = {}) {
  const [server] = campaign.servers;
  const answer = await server?.request('/turns', { loop, name, ...input });
  return String(answer?.turnId);
}

/** Waits until a turn ends or pauses. @param {string} turnId */
async function awaitTurn(turnId) {
  const [server] = campaign.servers;
  return server?.request(`/turns/${turnId}/result`);
}

/** Leaves an effect in doubt: kills the command that performs it. The worker of the server then pauses the turn. */
async function leaveEffectInDoubt() {
  const file = join(folder, 'hanging');
  const args = [BIN, 'run', 'hang', '--key', 'doubt', '--input', JSON.stringify({ file })];
  const child = spawn(process.execPath, args, { cwd: project, env, stdio: 'ignore' });
  const until = Date.now() + MAX_COMMAND_MS;
  while (!existsSync(file) && Date.now() < until) await sleep(POLL_MS);
  child.kill('SIGKILL');
  await once(child, 'exit');
  for (;;) {
    const { runs } = await readJson(['runs']);
    const turn = /** @type {{ loopId: string, turnId: string, status: string }[]} */ (runs).find(
      ({ loopId }) => loopId === 'hang',
    );
    if (turn?.status === 'paused') return turn.turnId;
    if (Date.now() > until) throw new Error(`The turn of the killed command is ${turn?.status}, not paused.`);
    await sleep(POLL_MS);
  }
}

/** Starts the turns. */
async function prepare() {
  const ended = await startTurn('delivery', 'ended', { ms: 10 });
  const other = await startTurn('delivery', 'other', { ms: 10 });
  const removable = await startTurn('delivery', 'removable', { ms: 10 });
  const flagFile = join(folder, 'flag');
  const failed = await startTurn('flaky', 'failed', { file: flagFile });
  const approvals = [await startTurn('refund', 'approved'), await startTurn('refund', 'denied')];
  const signalled = await startTurn('payment', 'signalled', { ms: 10 });
  const scripted = await startTurn('payment', 'scripted', { ms: 10 });
  for (const turnId of [ended, other, removable, failed, ...approvals, signalled, scripted]) await awaitTurn(turnId);
  const doubtful = await leaveEffectInDoubt();
  return { ended, other, removable, failed, flagFile, approvals, signalled, scripted, doubtful };
}

/** Returns the id of the approval of a turn. @param {string | undefined} turnId @returns {Promise<string>} */
async function approvalOf(turnId) {
  const { approvals } = /** @type {{ approvals: { id: string, turnId: string }[] }} */ (await readJson(['approvals']));
  return approvals.find((approval) => approval.turnId === turnId)?.id ?? 'none';
}

const sessionOf = (/** @type {string} */ turnId) => turnId.slice(0, turnId.lastIndexOf('.'));

/** A command line with its exit code, and what else its output must contain. */
/** @typedef {{ args: readonly string[], code: number, prints?: string | RegExp, input?: string, interrupt?: RegExp }} Command */

/** Returns the commands of each verb. @type {{ readonly [verb: string]: (fixtures: Fixtures) => Promise<readonly Command[]> }} */
const commandsByVerb = {
  init: async () => [{ args: ['init', 'new-project'], code: 0 }],
  dev: async () => [{ args: ['dev'], code: 130, interrupt: /loop/ }],
  run: async () => [
    { args: ['run', 'delivery', '--input', '{"name": "from-the-verb", "ms": 10}'], code: 0, prints: 'from-the-verb' },
    { args: ['run', 'delivery', '--input', '{"name": "ended", "ms": 10}', '--key', 'ended'], code: 0, prints: 'ended' },
  ],
  chat: async () => [{ args: ['chat', 'helper'], code: 0, input: 'Hello\n' }],
  resume: async () => {
    const sleeping = await startTurn('delivery', 'resumed', { ms: 2000 });
    return [{ args: ['resume', sleeping], code: 0, prints: 'resumed' }];
  },
  retry: async ({ failed, flagFile }) => {
    writeFileSync(flagFile, '');
    return [{ args: ['retry', failed], code: 0, prints: 'done' }];
  },
  fork: async ({ scripted }) => {
    // The fork waits for a signal that never comes, so it performs nothing.
    const { turnId } = await readJson(['fork', scripted, '--at', '2']);
    return [
      { args: ['fork', scripted, '--at', '9999'], code: 1, prints: 'FORK_REFUSED' },
      { args: ['cancel', turnId], code: 0 },
    ];
  },
  receipts: async ({ ended }) => [{ args: ['receipts', ended, '--json'], code: 0, prints: 'sha256:' }],
  verify: async ({ ended }) => [
    { args: ['verify', ended], code: 0, prints: 'valid so far' },
    { args: ['verify', '--all', '--json'], code: 0, prints: '"valid":true' },
  ],
  export: async ({ ended }) => [{ args: ['export', '--turn', ended], code: 0, prints: 'rondo.receipts.v1' }],
  keys: async () => [{ args: ['keys', 'show', '--json'], code: 0, prints: 'publicKey' }],
  close: async () => [{ args: ['close', 'no-such-session'], code: 1, prints: 'TURN_NOT_FOUND' }],
  worker: async () => [{ args: ['worker', '--once'], code: 0 }],
  cancel: async () => {
    const sleeping = await startTurn('delivery', 'cancelled', { ms: 600_000 });
    return [
      { args: ['cancel', sleeping], code: 0 },
      { args: ['status', sleeping], code: 0, prints: 'cancelled' },
    ];
  },
  list: async () => [{ args: ['list'], code: 0, prints: 'delivery' }],
  show: async ({ ended }) => [
    { args: ['show', 'delivery'], code: 0, prints: 'delivery' },
    { args: ['show', ended], code: 0, prints: 'ended#parcel' },
  ],
  plan: async () => [{ args: ['plan', 'convert', 'none.toml'], code: 64 }],
  check: async () => [{ args: ['check'], code: 0, prints: 'No problems' }],
  runs: async ({ ended }) => [{ args: ['runs', '--json'], code: 0, prints: ended }],
  status: async ({ ended, signalled }) => [
    { args: ['status', ended], code: 0, prints: 'ended#parcel' },
    { args: ['status', signalled], code: 0, prints: 'rondo signal' },
  ],
  trace: async ({ ended }) => {
    const sleeping = await startTurn('delivery', 'traced', { ms: 1500 });
    return [
      { args: ['trace', ended], code: 0, prints: 'deliver' },
      { args: ['trace', sleeping, '--follow', '--json'], code: 0, prints: 'call.completed.*\\n$' },
    ];
  },
  events: async ({ ended }) => {
    const sleeping = await startTurn('delivery', 'followed', { ms: 1500 });
    return [
      { args: ['events', sessionOf(ended)], code: 0, prints: 'ended#parcel' },
      { args: ['events', sessionOf(sleeping), '--follow'], code: 0, prints: 'followed#parcel' },
    ];
  },
  diff: async ({ ended, other }) => [{ args: ['diff', ended, other], code: 0, prints: 'other' }],
  replay: async ({ ended }) => [
    { args: ['replay', ended], code: 0 },
    { args: ['replay', ended, '--now'], code: 0 },
  ],
  approvals: async () => [{ args: ['approvals'], code: 0, prints: 'refund' }],
  approve: async ({ approvals }) => [
    { args: ['approve', await approvalOf(approvals[0]), '--as', 'ada'], code: 0, prints: 'ok after' },
  ],
  deny: async ({ approvals }) => [
    { args: ['deny', await approvalOf(approvals[1]), '--as', 'ada'], code: 0, prints: 'APPROVAL_DENIED' },
  ],
  resolve: async ({ doubtful }) => [
    { args: ['resolve', doubtful, '--result', '"by hand"', '--as', 'ada'], code: 0, prints: 'by hand' },
  ],
  signal: async ({ signalled }) => [
    {
      args: ['signal', signalled, 'paid', '--payload', '{"amount": 5}', '--id', 'a'],
      code: 0,
      prints: 'ok after',
    },
  ],
  trust: async () => [{ args: ['trust'], code: 0 }],
  host: async () => {
    const grant = { allowedTools: ['deliver'], limits: {} };
    const document = {
      id: 'watch',
      loop: 'delivery',
      next: '$.signal.payload',
      grant,
      turn: {},
      stop: { maxTurns: 1 },
    };
    const file = join(folder, 'watch.json');
    // No signal comes, so the worker of the server runs no turn of it.
    writeFileSync(file, JSON.stringify({ ...document, signals: { order: { schema: { type: 'object' } } } }));
    return [
      { args: ['host', 'start', file, '--trust', folder], code: 0, prints: 'waiting' },
      { args: ['host', 'status', 'watch', '--json'], code: 0, prints: '"turns":0' },
      { args: ['host', 'pause', 'watch'], code: 0, prints: 'paused' },
      { args: ['host', 'stop', 'watch', '--reason', 'done'], code: 0, prints: /Stopped by .*: done/ },
    ];
  },
  harness: async () => {
    const directory = join(project, 'harness');
    const expect = { status: 'ok', output: 'done' };
    const file = join(folder, 'harness-flag');
    const item = { name: 'flaky', loop: 'flaky', input: { file }, expect };
    mkdirSync(directory);
    writeFileSync(file, '');
    writeFileSync(join(directory, 'harness.json'), JSON.stringify({ cases: [item] }));
    return [{ args: ['harness', directory, '--trust', directory], code: 0, prints: 'all ok' }];
  },
  conformance: async () => [{ args: ['conformance', '--only', 'DEF-01'], code: 0 }],
  doctor: async () => [{ args: ['doctor', '--full'], code: 0 }],
  remove: async ({ removable }) => [
    { args: ['remove', sessionOf(removable), '--yes', '--as', 'ada'], code: 0 },
    { args: ['status', removable], code: 1 },
  ],
  completion: async () => [
    { args: ['completion', 'bash'], code: 0 },
    { args: ['completion', 'ids', 'run'], code: 0, prints: 'delivery' },
  ],
  demo: async () => [{ args: ['demo'], code: 0 }],
  help: async () => [
    { args: ['help'], code: 0 },
    { args: ['help', 'run'], code: 0 },
  ],
};

/** Runs a command and compares its exit code and output. @param {Command} command */
async function check({ args, code, prints = '', input = '', interrupt }) {
  let isInterrupted = false;
  const onOutput = (/** @type {import('node:child_process').ChildProcess} */ child, /** @type {string} */ stderr) => {
    if (isInterrupted || interrupt?.test(stderr) !== true) return;
    isInterrupted = true;
    child.kill('SIGINT');
  };
  const ended = await run([BIN, ...args], { input, onOutput });
  commands += 1;
  const output = ended.stdout + ended.stderr;
  if (ended.code !== code) log.violation(`${args.join(' ')} exits with ${ended.code}, not ${code}: ${output}`);
  else if (!new RegExp(prints).test(output)) log.violation(`${args.join(' ')} does not print ${prints}: ${output}`);
  const [server] = campaign.servers;
  if (server === undefined || server.hasExited) log.violation(`the server has ended at ${args.join(' ')}`);
}

/** Returns the verbs that the help lists. */
async function listVerbs() {
  const { stdout } = await run([BIN, 'help']);
  const after = stdout.slice(stdout.indexOf('\nStart:'));
  return [...after.matchAll(/^ {2}([a-z]+)(?= )/gm)].map((match) => match[1] ?? '');
}

/** Starts and resumes turns with a second script. @param {Fixtures} fixtures */
async function checkSecondScript({ scripted }) {
  const script = async (/** @type {readonly string[]} */ ...args) => {
    const { code, stdout, stderr } = await run([SCRIPT, shared.data, ...args]);
    commands += 1;
    if (code !== 0) log.violation(`the second script exits with ${code}: ${stderr}`);
    try {
      return JSON.parse(stdout);
    } catch {
      return {};
    }
  };
  const { turnId } = await script('start');
  await sleep(WORKER_POLL_MS);
  const { resumed, ran, unknown, awaited } = await script('finish', String(turnId), scripted);
  const expectations = {
    'its own turn': [resumed?.output, 'reported'],
    'a turn of a loop of the server': [ran?.output, 'second-script#parcel'],
    'a loop without its definition': [unknown?.error?.code, 'LOOP_NOT_FOUND'],
    'a turn of the server': [awaited?.output, 'scripted#parcel'],
  };
  for (const [name, [actual, expected]] of Object.entries(expectations))
    if (actual !== expected) log.violation(`the second script: ${name} gives ${JSON.stringify(actual)}`);
}

await campaign.open();
const server = await campaign.startServer();
const fixtures = await prepare();
const verbs = await listVerbs();
const missing = verbs.filter((verb) => commandsByVerb[verb] === undefined);
if (missing.length > 0) log.violation(`the campaign has no command for: ${missing.join(', ')}`);
const selected = values.verbs?.split(',') ?? Object.keys(commandsByVerb);
for (const verb of selected) {
  const all = await commandsByVerb[verb]?.(fixtures);
  for (const command of all ?? []) await check(command);
}
await checkSecondScript(fixtures);
// The worker of the server reports turns of loops that it does not have, and the turn whose effect is in doubt.
const problems = server.problems.splice(0).map(({ code }) => code);
if (problems.toSorted().join() !== 'EFFECT_IN_DOUBT,LOOP_NOT_FOUND')
  log.violation(`the worker of the server reports: ${problems.join()}`);
await campaign.endServers();
campaign.finish({ verbs: selected.length, listedVerbs: verbs.length, commands, problems }, values.keep);
