// The command line in front of an owner that does not answer: each verb ends in time, says which process it is, and shows no stack.

import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, root, show, sleep } from '../support/store-attack.mjs';
import { falseOwner, recordOf } from './wire.mjs';

const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));
/** Ten seconds, and the start of a process on a busy machine. */
const VERB_MS = 12_000;

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

/** Verbs that need the store, and what they are given; T is a turn that is there. */
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

/** Runs one command line. @param {string} folder @param {readonly string[]} args */
export async function rondo(folder, args) {
  const at = Date.now();
  const child = spawn(process.execPath, [bin, ...args], { cwd: folder, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => undefined);
  child.stdin.end('hello\n');
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].on('data', (piece) => {
      said[name] += piece;
    });
  }
  const late = setTimeout(() => child.kill('SIGKILL'), VERB_MS + 3000);
  const [code, signal] = await new Promise((resolve) => child.once('close', (...how) => resolve(how)));
  clearTimeout(late);
  return { code, signal, ms: Date.now() - at, ...said };
}

/** A project with one turn that has ended, made once and copied for each case. */
const made = { folder: '', making: undefined };

async function make() {
  made.folder = join(root, 'project');
  mkdirSync(join(made.folder, 'loops'), { recursive: true });
  writeFileSync(join(made.folder, 'loops', 'hello.json'), JSON.stringify(hello));
  const ran = await rondo(made.folder, ['run', 'hello', '--input', INPUT, '--key', 'first', '--json']);
  expect(ran.code === 0, 'a turn', ran);
  return JSON.parse(ran.stdout).turnId;
}

/** @param {import('../support/store-attack.mjs').Stage} stage */
async function project(stage) {
  made.making ??= make();
  const turn = await made.making;
  cpSync(made.folder, stage.folder, { recursive: true });
  stage.path = join(stage.folder, '.rondo', 'journal.db');
  return turn;
}

/** Owners that do not answer; each gives the pid that has to be told. */
const states = {
  stopped: async (stage) => {
    const owner = await stage.actor();
    await owner.must('open', { path: stage.path });
    owner.signalled('SIGSTOP');
    return owner.pid;
  },
  blocked: async (stage) => {
    const owner = await stage.actor();
    await owner.must('open', { path: stage.path });
    owner.do('block', { ms: 25_000 }).catch(() => undefined);
    await sleep(50);
    return owner.pid;
  },
  mute: async (stage) => {
    const { close } = await falseOwner(stage.path, () => {});
    stage.atEnd(close);
    return process.pid;
  },
  garbage: async (stage) => {
    const { close } = await falseOwner(stage.path, (wire) => wire.send('garbage\n'));
    stage.atEnd(close);
    return process.pid;
  },
  'no-socket': async (stage) => {
    const { close } = await falseOwner(stage.path, () => {});
    await close();
    return process.pid;
  },
};

/** @param {Awaited<ReturnType<typeof rondo>>} ended */
function assertTold(ended) {
  const { code, signal, ms, stdout, stderr } = ended;
  expect(signal === null && ms < VERB_MS, `an end within ${VERB_MS} ms`, { code, signal, ms, stderr });
  const text = stdout + stderr;
  expect(!/\n\s+at .*\d+:\d+/.test(text), 'no stack', text);
  expect(!/Internal error|undefined|\[object/.test(text), 'words for people', text);
}

/** @param {import('../support/store-attack.mjs').Stage} stage @param {readonly string[]} args @param {(stage: any) => Promise<number>} state */
async function unanswered(stage, args, state) {
  const turn = await project(stage);
  const pid = await state(stage);
  const ended = await rondo(
    stage.folder,
    args.map((word) => word.replace(/^T\b/, turn)),
  );
  assertTold(ended);
  const { code, stdout, stderr } = ended;
  expect((stdout + stderr).includes(String(pid)), `the pid ${pid}`, { code, stderr, stdout });
  if (args[0] !== 'doctor' && args[0] !== 'check') expect(code === 70, 'exit code 70', { code, stderr });
}

/** What is left by an owner that is gone keeps no verb from its work. */
const leftBehind = {
  killed: async (stage) => {
    const owner = await stage.actor();
    await owner.must('open', { path: stage.path });
    await owner.kill();
  },
  'record-garbage': async (stage) => writeFileSync(`${stage.path}.owner`, '\0garbage', { mode: 0o600 }),
  'record-wide': async (stage) => {
    writeFileSync(`${stage.path}.owner`, '{}');
    chmodSync(`${stage.path}.owner`, 0o666);
  },
  'socket-file': async (stage) => writeFileSync(`${stage.path}.sock`, 'x'),
  living: async (stage) => {
    const owner = await stage.actor();
    await owner.must('open', { path: stage.path });
  },
  'record-garbage-of-living': async (stage) => {
    const owner = await stage.actor();
    await owner.must('open', { path: stage.path });
    const record = recordOf(stage.path);
    writeFileSync(`${stage.path}.owner`, JSON.stringify({ ...record, socket: 'beside' }));
  },
};

async function works(stage, args, leave) {
  const turn = await project(stage);
  await leave(stage);
  const ended = await rondo(
    stage.folder,
    args.map((word) => word.replace(/^T\b/, turn)),
  );
  assertTold(ended);
  expect(ended.ms < 5000, 'an answer within 5 s', ended.ms);
  expect(ended.code !== 70 && ended.code !== null, 'no fault', { code: ended.code, stderr: ended.stderr });
}

/** With --json the fault is a document on stdout. */
async function asJson(stage, verb) {
  const turn = await project(stage);
  const pid = await states.stopped(stage);
  const ended = await rondo(stage.folder, [...verbs[verb].map((word) => word.replace(/^T\b/, turn)), '--json']);
  assertTold(ended);
  const { error } = JSON.parse(ended.stdout);
  expect(
    error?.code === 'STORE_OWNED' && JSON.stringify(error).includes(String(pid)),
    'STORE_OWNED with the pid',
    ended.stdout,
  );
}

/** A run that was given up did what it said: nothing, or a turn that it named. */
async function honest(stage) {
  await project(stage);
  const owner = await stage.actor();
  await owner.must('open', { path: stage.path });
  owner.signalled('SIGSTOP');
  const ended = await rondo(stage.folder, ['run', 'hello', '--input', INPUT, '--key', 'second']);
  assertTold(ended);
  owner.signalled('SIGCONT');
  await sleep(500);
  const { runs } = JSON.parse((await rondo(stage.folder, ['runs', '--json'])).stdout);
  const more = runs.filter(({ turnId }) => !show(turnId).includes('first')).length - 1;
  expect(more <= 0 || /resume/.test(ended.stderr), 'no turn, or one that was named', { ended: ended.stderr, runs });
}

/** A data directory that is refused is told in words. */
async function refused(stage, make) {
  const { folder } = stage;
  mkdirSync(join(folder, 'loops'));
  writeFileSync(join(folder, 'loops', 'hello.json'), JSON.stringify(hello));
  make(folder);
  for (const args of [['runs'], ['run', 'hello', '--input', INPUT], ['doctor']]) assertTold(await rondo(folder, args));
}

const refusals = {
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
  for (const [state, make] of Object.entries(states)) {
    for (const [verb, args] of Object.entries(verbs)) {
      if (state !== 'stopped' && !['run', 'resume', 'cancel', 'runs', 'status', 'doctor'].includes(verb)) continue;
      add(`${state}.${verb}`, (stage) => unanswered(stage, args, make));
    }
  }
  for (const [left, leave] of Object.entries(leftBehind)) {
    for (const verb of ['run', 'status', 'doctor']) add(`${left}.${verb}`, (stage) => works(stage, verbs[verb], leave));
  }
  for (const verb of ['run', 'runs', 'status', 'cancel', 'resume', 'approve', 'resolve'])
    add(`json.${verb}`, (stage) => asJson(stage, verb));
  for (const [name, make] of Object.entries(refusals)) add(`refused.${name}`, (stage) => refused(stage, make));
  add('honest.run', honest);
  return all;
}
