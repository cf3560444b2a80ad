/**
 * The story, told by the parent: process 1 is killed, its journal is read, process 2 finishes, the judge speaks.
 * Nothing waits for a length of time: the kill comes when bank and printer have both acted and neither has answered.
 */
/** @import { RunOutcome } from 'rondo' */
/** @import { Entry, Safety } from 'rondo/protocol' */
/** @import { ReportedEffect, EffectSink } from 'rondo/testing' */
/** @import { Verdict } from './worker.mjs' */
/** @import { Asked } from './world.mjs' */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { openSqlite } from 'rondo/sqlite';
import { startEffectSink } from 'rondo/testing';
import { faultsOf, namesOf, noteOf, progressOf, tally } from './judge.mjs';
import { order } from './order.mjs';
import { bold, dim, green, heading, line, red, row, rule, step, yellow } from './print.mjs';
import { openWorld } from './world.mjs';

/** @typedef {{ file: string, url: string, sink: EffectSink, hear(asked: Asked, happened: boolean): void | Promise<void> }} Stage */
/** @typedef {{ doubt: { name: string } } | { outcome: RunOutcome }} Message */

const cutOff = ['charge card', 'print label'];
const ordered = [...order.items.map((item) => `reserve ${item}`), ...cutOff, ...order.tell.map((who) => `mail ${who}`)];

/** What becomes of an effect whose result is not in the journal. @type {Record<Safety, string>} */
const plans = {
  pure: 'do it again',
  idempotent: 'ask again',
  keyed: 'ask again under the same idempotency key',
  once: 'in doubt: do not ask again, wait for a decision',
};

/** Starts a worker; `ended` tells how it ended, after its last message. @param {Stage} stage */
function startWorker({ file, url }) {
  const worker = fileURLToPath(new URL('worker.mjs', import.meta.url));
  const child = fork(worker, [file], { silent: true, execArgv: [], env: { ...process.env, DEMO_WORLD: url } });
  const words = child.stderr === null ? Promise.resolve('') : text(child.stderr);
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')]).then(
    ([[code, signal]]) => signal ?? code,
  );
  return { child, pid: child.pid ?? 0, ended, words };
}

/** @param {Stage} stage */
async function firstProcess(stage) {
  const { child, pid, ended, words } = startWorker(stage);
  heading('Process 1', `pid ${pid}, takes order ${order.number}`);
  const held = new Set();
  stage.hear = ({ kind, name }) => {
    if (!cutOff.includes(name)) return step(kind, name, 'done, answered');
    step(kind, name, yellow('done, but the answer is still on its way'));
    if (held.add(name).size === cutOff.length) child.kill('SIGKILL');
    return new Promise(() => {});
  };
  const end = await ended;
  if (end !== 'SIGKILL') throw new Error(`Process 1 ended by itself (${end}) before it was killed. ${await words}`);
  line(red('SIGKILL. The card is charged, the label is printed, and process 1 never knew.'));
}

/** @param {string} file @returns {Promise<Entry[]>} */
async function readJournal(file) {
  const store = await openSqlite(file);
  try {
    const entries = [];
    for await (const some of store.journal.read(`order-${order.number}`, 0)) entries.push(...some);
    return entries;
  } finally {
    await store.close();
  }
}

/** @param {readonly Entry[]} left */
function showLeft(left) {
  heading('What it left', `a journal of ${left.length} entries`);
  const { done } = progressOf(left);
  for (const { kind = '', name = '', safety = 'pure', type } of left) {
    if (type !== 'effect.requested') continue;
    const known = done.includes(name);
    step(kind, name, row([safety, known ? 'result' : 'no result', known ? 'replay it' : plans[safety]], [10, 9]));
  }
}

/** What a look at the printer shows. @param {EffectSink} sink @param {string} name @returns {Verdict} */
function decide(sink, name) {
  const printed = sink.reportedEffects().find((seen) => seen.kind === 'happened' && noteOf(seen).name === name);
  if (printed === undefined) return { decision: 'retry', by: 'the sink' };
  return { decision: 'supply', by: 'the sink', value: noteOf(printed).answer };
}

/** @param {Stage} stage */
async function secondProcess(stage) {
  const { child, pid, ended, words } = startWorker(stage);
  heading('Process 2', `pid ${pid}, the same command on the same journal`);
  stage.hear = ({ kind, name }, happened) =>
    step(kind, name, happened ? 'done, answered' : yellow('its key is known: not done again, first answer given'));
  /** @type {RunOutcome | undefined} */
  let outcome;
  child.on('message', (/** @type {Message} */ message) => {
    if ('outcome' in message) {
      outcome = message.outcome;
      return child.disconnect();
    }
    const { name } = message.doubt;
    const verdict = decide(stage.sink, name);
    step('printer', name, yellow('in doubt, so the sink is asked: did it happen?'));
    step('', '', verdict.value === undefined ? 'it did not: retry' : `it did: "${verdict.value}" is its result`);
    return child.send(verdict);
  });
  const end = await ended;
  if (end !== 0 || outcome === undefined) throw new Error(`Process 2 failed (${end}). ${await words}`);
  if (outcome.status === 'error') throw new Error(`The order failed: ${outcome.error.message}`);
  if (outcome.status === 'paused') throw new Error('The order is still waiting for something.');
  line(green(`finished: ${JSON.stringify(outcome.output)}`));
  return { second: pid, output: outcome.output };
}

/** @param {readonly ReportedEffect[]} sightings @param {number} second */
function showTally(sightings, second) {
  heading('The judge', 'what the sink saw from outside');
  const widths = [16, 5, 8];
  const lines = tally(sightings);
  line(dim(row(['effect', 'asked', 'happened', 'asked by'], widths)));
  for (const name of ordered) {
    const { asked = 0, happened = 0, keys = new Set(), pids = new Set() } = lines.get(name) ?? {};
    const who = [...pids].map((pid) => (pid === second ? 2 : 1)).join(' and ');
    const remark = asked > 1 && keys.size === 1 ? ', under one idempotency key' : '';
    line(row([name, asked, happened, `process ${who}${yellow(remark)}`], widths));
  }
}

/** @param {readonly Entry[]} journal @param {number} cut */
function showJournal(journal, cut) {
  heading('The journal', 'one entry per fact, written once');
  const widths = [3, 16, 10];
  const nameAt = namesOf(journal);
  line(dim(row(['seq', 'type', 'key', 'name'], widths)));
  for (const { seq, type, key, until, value, resolution, by } of journal) {
    if (seq === 0) rule('process 1', 52);
    if (seq === cut) rule('SIGKILL, process 2', 52);
    const said = resolution === undefined ? nameAt(key) : `${resolution}, says ${by}`;
    line(row([seq, type, key, until === undefined ? said : `${value} ms`], widths));
  }
}

/** Tells all of it; returns what does not hold. @param {string} folder @returns {Promise<string[]>} */
export async function tellStory(folder) {
  const sink = await startEffectSink(join(folder, 'sink.log'));
  /** @type {Stage} */
  const stage = { file: join(folder, 'journal.db'), url: '', sink, hear: () => {} };
  const world = await openWorld(sink.url, (asked, happened) => stage.hear(asked, happened));
  stage.url = world.url;
  try {
    await firstProcess(stage);
    const left = await readJournal(stage.file);
    showLeft(left);
    const { second, output } = await secondProcess(stage);
    const journal = await readJournal(stage.file);
    const sightings = sink.reportedEffects();
    const faults = faultsOf({ ordered, cutOff, sightings, left, journal, second, output });
    showTally(sightings, second);
    line(faults.length === 0 ? bold(green('Nothing was done twice, nothing was lost.')) : red('It does not hold.'));
    showJournal(journal, left.length);
    return faults;
  } finally {
    world.close();
    await sink.close();
  }
}
