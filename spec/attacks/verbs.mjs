// The command line with an owner that does not answer: each verb ends in time, names the process, and prints no stack
// trace.

import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, root, show, sleep } from '../support/store-attack.mjs';
import { falseOwner, readOwnerFile } from './wire.mjs';

const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));
/** The time limit of a verb: ten seconds, plus the start of a process on a busy machine. */
const VERB_MS = 20_000;

const hello = {
  id: 'hello',
  name: 'Says hello',
  version: '1.0.0',
  kind: 'prompt',
  inputSchema: { type: 'object', properties: { name: { type: 'string' } } },
  outputSchema: { type: 'object' },
  prompt: { template: 'Greet {{name}}.' },
  backend: { id: 'mock' },
};
const INPUT = '{"name":"Ada"}';

/** The arguments of verbs that use the store. T stands for the id of an existing turn. */
const verbs = {
  run: ['run', 'hello', '--input', INPUT],
  'run-key': ['run', 'hello', '--input', INPUT, '--key', 'k1'],
  resume: ['resume', 'T'],
  'resume-all': ['resume', '--all'],
  cancel: ['cancel', 'T'],
  runs: ['runs'],
  status: ['status', 'T'],
  trace: ['trace', 'T'],
  events: ['events', 'T'],
  replay: ['replay', 'T'],
  diff: ['diff', 'T', 'T'],
  approvals: ['approvals'],
  approve: ['approve', 'T:x'],
  deny: ['deny', 'T:x'],
  resolve: ['resolve', 'T/1', '--fail'],
  check: ['check'],
  doctor: ['doctor'],
};

/** Runs the command line. @param {string} folder @param {readonly string[]} args */
export async function rondo(folder, args) {
  const at = Date.now();
  const child = spawn(process.execPath, [bin, ...args], { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => undefined);
  child.stdin.end('hello\n');
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].on('data', (chunk) => {
      output[name] += chunk;
    });
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), VERB_MS + 3000);
  const [code, signal] = await new Promise((resolve) => child.once('close', (...status) => resolve(status)));
  clearTimeout(timer);
  return { code, signal, ms: Date.now() - at, ...output };
}

/** The template of the projects, with one ended turn. It is created once and copied for each case. */
const template = { folder: '', created: undefined };

/** Creates the template; returns the id of its turn. */
async function createTemplate() {
  template.folder = join(root, 'project');
  mkdirSync(join(template.folder, 'loops'), { recursive: true });
  writeFileSync(join(template.folder, 'loops', 'hello.json'), JSON.stringify(hello));
  const ran = await rondo(template.folder, ['run', 'hello', '--input', INPUT, '--key', 'first', '--json']);
  expect(ran.code === 0, 'a turn', ran);
  return JSON.parse(ran.stdout).turnId;
}

/**
 * Creates the project of a case; returns the id of its turn.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 */
async function createProject(fixture) {
  template.created ??= createTemplate();
  const turn = await template.created;
  cpSync(template.folder, fixture.folder, { recursive: true });
  fixture.path = join(fixture.folder, '.rondo', 'journal.db');
  return turn;
}

/** Owners that do not answer. Each function returns the pid that the message must name. */
const unresponsiveOwners = {
  stopped: async (fixture) => {
    const owner = await fixture.actor();
    await owner.must('open', { path: fixture.path });
    owner.signalled('SIGSTOP');
    return owner.pid;
  },
  blocked: async (fixture) => {
    const owner = await fixture.actor();
    await owner.must('open', { path: fixture.path });
    owner.do('block', { ms: 40_000 }).catch(() => undefined);
    await sleep(50);
    return owner.pid;
  },
  mute: async (fixture) => {
    const { close } = await falseOwner(fixture.path, () => {});
    fixture.atEnd(close);
    return process.pid;
  },
  garbage: async (fixture) => {
    const { close } = await falseOwner(fixture.path, (wire) => wire.send('garbage\n'));
    fixture.atEnd(close);
    return process.pid;
  },
  'no-socket': async (fixture) => {
    const { close } = await falseOwner(fixture.path, () => {});
    await close();
    return process.pid;
  },
};

/**
 * Asserts that a verb ends in time, without a stack trace or internal text.
 * @param {Awaited<ReturnType<typeof rondo>>} ended
 */
function assertReadableEnd(ended) {
  const { code, signal, ms, stdout, stderr } = ended;
  expect(signal === null && ms < VERB_MS, `an end within ${VERB_MS} ms`, { code, signal, ms, stderr });
  const text = stdout + stderr;
  expect(!/\n\s+at .*\d+:\d+/.test(text), 'no stack trace', text);
  expect(!/Internal error|undefined|\[object/.test(text), 'a readable message', text);
}

/**
 * A verb names the process of an owner that does not answer.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {readonly string[]} args
 * @param {(fixture: any) => Promise<number>} startOwner
 */
async function namesOwner(fixture, args, startOwner) {
  const turn = await createProject(fixture);
  const pid = await startOwner(fixture);
  const ended = await rondo(
    fixture.folder,
    args.map((arg) => arg.replace(/^T\b/, turn)),
  );
  assertReadableEnd(ended);
  const { code, stdout, stderr } = ended;
  expect((stdout + stderr).includes(String(pid)), `the pid ${pid} in the output`, { code, stderr, stdout });
  if (args[0] !== 'doctor' && args[0] !== 'check') expect(code === 70, 'exit code 70', { code, stderr });
}

/** Files of an ended owner, or a responsive owner: neither blocks a verb. */
const leftovers = {
  killed: async (fixture) => {
    const owner = await fixture.actor();
    await owner.must('open', { path: fixture.path });
    await owner.kill();
  },
  'record-garbage': async (fixture) => writeFileSync(`${fixture.path}.owner`, '\0garbage', { mode: 0o600 }),
  'record-wide': async (fixture) => {
    writeFileSync(`${fixture.path}.owner`, '{}');
    chmodSync(`${fixture.path}.owner`, 0o666);
  },
  'socket-file': async (fixture) => writeFileSync(`${fixture.path}.sock`, 'x'),
  living: async (fixture) => {
    const owner = await fixture.actor();
    await owner.must('open', { path: fixture.path });
  },
  'record-garbage-of-living': async (fixture) => {
    const owner = await fixture.actor();
    await owner.must('open', { path: fixture.path });
    const content = readOwnerFile(fixture.path);
    writeFileSync(`${fixture.path}.owner`, JSON.stringify({ ...content, socket: 'beside' }));
  },
};

/** A verb works in spite of the leftovers. */
async function works(fixture, args, createLeftover) {
  const turn = await createProject(fixture);
  await createLeftover(fixture);
  const ended = await rondo(
    fixture.folder,
    args.map((arg) => arg.replace(/^T\b/, turn)),
  );
  assertReadableEnd(ended);
  expect(ended.ms < VERB_MS, 'an answer in time', ended.ms);
  expect(ended.code !== 70 && ended.code !== null, 'an exit code other than 70', {
    code: ended.code,
    stderr: ended.stderr,
  });
}

/** With --json, the Fault is a document on stdout. */
async function printsJson(fixture, verb) {
  const turn = await createProject(fixture);
  const pid = await unresponsiveOwners.stopped(fixture);
  const ended = await rondo(fixture.folder, [...verbs[verb].map((arg) => arg.replace(/^T\b/, turn)), '--json']);
  assertReadableEnd(ended);
  const { error } = JSON.parse(ended.stdout);
  expect(
    error?.code === 'STORE_OWNED' && JSON.stringify(error).includes(String(pid)),
    'STORE_OWNED with the pid',
    ended.stdout,
  );
}

/** A run that timed out has started no turn, or its message says how to resume the turn. */
async function reportsStartedTurn(fixture) {
  await createProject(fixture);
  const owner = await fixture.actor();
  await owner.must('open', { path: fixture.path });
  owner.signalled('SIGSTOP');
  const ended = await rondo(fixture.folder, ['run', 'hello', '--input', INPUT, '--key', 'second']);
  assertReadableEnd(ended);
  owner.signalled('SIGCONT');
  await sleep(500);
  const { runs } = JSON.parse((await rondo(fixture.folder, ['runs', '--json'])).stdout);
  const startedTurns = runs.filter(({ turnId }) => !show(turnId).includes('first')).length - 1;
  expect(startedTurns <= 0 || /resume/.test(ended.stderr), 'no turn, or a message that names it', {
    ended: ended.stderr,
    runs,
  });
}

/** The message about a refused data directory is readable. */
async function refusesData(fixture, create) {
  const { folder } = fixture;
  mkdirSync(join(folder, 'loops'));
  writeFileSync(join(folder, 'loops', 'hello.json'), JSON.stringify(hello));
  create(folder);
  for (const args of [['runs'], ['run', 'hello', '--input', INPUT], ['doctor']])
    assertReadableEnd(await rondo(folder, args));
}

/** Data directories that are refused. */
const refusedData = {
  'data-is-a-link': (folder) => symlinkSync('/tmp', join(folder, '.rondo')),
  'data-is-a-file': (folder) => writeFileSync(join(folder, '.rondo'), 'x'),
  'data-is-a-fifo': (folder) => spawnSync('mkfifo', [join(folder, '.rondo')]),
  'journal-is-a-directory': (folder) => mkdirSync(join(folder, '.rondo', 'journal.db'), { recursive: true }),
  'journal-is-garbage': (folder) => {
    mkdirSync(join(folder, '.rondo'));
    writeFileSync(join(folder, '.rondo', 'journal.db'), 'garbage'.repeat(1000));
  },
  'lock-is-garbage': (folder) => {
    mkdirSync(join(folder, '.rondo'));
    writeFileSync(join(folder, '.rondo', 'journal.db.lock'), 'garbage'.repeat(1000));
  },
  'owner-is-a-fifo': (folder) => {
    mkdirSync(join(folder, '.rondo'));
    spawnSync('mkfifo', [join(folder, '.rondo', 'journal.db.owner')]);
  },
};

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `takeover.verb.${id}`, run, waits: true });
  for (const [state, startOwner] of Object.entries(unresponsiveOwners)) {
    for (const [verb, args] of Object.entries(verbs)) {
      if (state !== 'stopped' && !['run', 'resume', 'cancel', 'runs', 'status', 'doctor'].includes(verb)) continue;
      add(`${state}.${verb}`, (fixture) => namesOwner(fixture, args, startOwner));
    }
  }
  for (const [leftover, createLeftover] of Object.entries(leftovers)) {
    for (const verb of ['run', 'status', 'doctor'])
      add(`${leftover}.${verb}`, (fixture) => works(fixture, verbs[verb], createLeftover));
  }
  for (const verb of ['run', 'runs', 'status', 'cancel', 'resume', 'approve', 'resolve'])
    add(`json.${verb}`, (fixture) => printsJson(fixture, verb));
  for (const [name, create] of Object.entries(refusedData))
    add(`refused.${name}`, (fixture) => refusesData(fixture, create));
  add('honest.run', reportsStartedTurn);
  return all;
}
