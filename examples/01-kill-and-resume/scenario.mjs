/**
 * Runs the scenario from the parent: kills process 1, reads its journal, waits for process 2 and runs the checks.
 * Nothing depends on timing: the kill happens when bank and printer have acted and neither has answered.
 */
/** @import { RunOutcome } from 'rondo/host' */
/** @import { Entry, Safety } from 'rondo/protocol' */
/** @import { ReportedEffect, EffectSink } from 'rondo/testing' */
/** @import { ResolutionMessage } from './worker.mjs' */
/** @import { ServiceRequest } from './services.mjs' */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { openSqlite } from 'rondo/sqlite';
import { startEffectSink } from 'rondo/testing';
import { countEffects, effectProgress, findProblems, reportData, stepNames } from './checks.mjs';
import { order } from './order.mjs';
import { bold, dim, green, heading, line, red, row, rule, step, yellow } from './print.mjs';
import { startServices } from './services.mjs';

/**
 * @typedef {object} Scenario
 * @property {string} file the database
 * @property {string} url of the services
 * @property {EffectSink} sink
 * @property {(request: ServiceRequest, performed: boolean) => void | Promise<void>} onRequest
 */
/** @typedef {{ effectInDoubt: { name: string } } | { outcome: RunOutcome }} WorkerMessage */

const interruptedEffects = ['charge card', 'print label'];
const expectedEffects = [
  ...order.items.map((item) => `reserve ${item}`),
  ...interruptedEffects,
  ...order.recipients.map((recipient) => `mail ${recipient}`),
];

/** How process 2 continues with an effect that has no result in the journal. @type {Record<Safety, string>} */
const continuations = {
  pure: 'run it again',
  idempotent: 'send it again',
  keyed: 'send it again with the same idempotency key',
  once: 'in doubt: wait until it is resolved',
};

/**
 * Starts a worker. `ended` resolves with its exit code or signal, after its last message.
 * @param {Scenario} scenario
 */
function startWorker({ file, url }) {
  const worker = fileURLToPath(new URL('worker.mjs', import.meta.url));
  const child = fork(worker, [file], { silent: true, execArgv: [], env: { ...process.env, DEMO_SERVICES: url } });
  const stderr = child.stderr === null ? Promise.resolve('') : text(child.stderr);
  const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')]).then(
    ([[code, signal]]) => signal ?? code,
  );
  return { child, pid: child.pid ?? 0, ended, stderr };
}

/** Starts process 1 and kills it while its interrupted effects have no answer. @param {Scenario} scenario */
async function runFirstProcess(scenario) {
  const { child, pid, ended, stderr } = startWorker(scenario);
  heading('Process 1', `pid ${pid}, runs order ${order.number}`);
  const unanswered = new Set();
  scenario.onRequest = ({ kind, name }) => {
    if (!interruptedEffects.includes(name)) return step(kind, name, 'performed, answered');
    step(kind, name, yellow('performed, not answered yet'));
    if (unanswered.add(name).size === interruptedEffects.length) child.kill('SIGKILL');
    return new Promise(() => {});
  };
  const exit = await ended;
  if (exit !== 'SIGKILL') throw new Error(`Process 1 ended (${exit}) before it was killed. ${await stderr}`);
  line(red('SIGKILL. The card is charged and the label is printed, but process 1 received no answer.'));
}

/** @param {string} file @returns {Promise<Entry[]>} */
async function readJournal(file) {
  const store = await openSqlite(file);
  try {
    const entries = [];
    for await (const batch of store.journal.read(`order-${order.number}`, 0)) entries.push(...batch);
    return entries;
  } finally {
    await store.close();
  }
}

/** @param {readonly Entry[]} entries */
function printEntriesAtKill(entries) {
  heading('After the kill', `a journal of ${entries.length} entries`);
  const { returned } = effectProgress(entries);
  for (const { kind = '', name = '', safety = 'pure', type } of entries) {
    if (type !== 'effect.requested') continue;
    const cells = returned.includes(name)
      ? [safety, 'result', 'replay it']
      : [safety, 'no result', continuations[safety]];
    step(kind, name, row(cells, [10, 9]));
  }
}

/**
 * Resolves an effect in doubt from the reports of the sink.
 * @param {EffectSink} sink
 * @param {string} name
 * @returns {ResolutionMessage}
 */
function resolutionFor(sink, name) {
  const performed = sink
    .reportedEffects()
    .find((report) => report.kind === 'performed' && reportData(report).name === name);
  if (performed === undefined) return { resolution: 'retry', by: 'the sink' };
  return { resolution: 'supply', by: 'the sink', value: reportData(performed).answer };
}

/** Starts process 2, resolves its effects in doubt and waits until it ends. @param {Scenario} scenario */
async function runSecondProcess(scenario) {
  const { child, pid, ended, stderr } = startWorker(scenario);
  heading('Process 2', `pid ${pid}, the same command on the same journal`);
  scenario.onRequest = ({ kind, name }, performed) =>
    step(
      kind,
      name,
      performed ? 'performed, answered' : yellow('known key: not performed again, first answer repeated'),
    );
  /** @type {RunOutcome | undefined} */
  let outcome;
  child.on('message', (/** @type {WorkerMessage} */ message) => {
    if ('outcome' in message) {
      outcome = message.outcome;
      return child.disconnect();
    }
    const { name } = message.effectInDoubt;
    const resolution = resolutionFor(scenario.sink, name);
    step('printer', name, yellow('in doubt: look for it in the reports of the sink'));
    step('', '', resolution.value === undefined ? 'not performed: retry' : `performed: supply "${resolution.value}"`);
    return child.send(resolution);
  });
  const exit = await ended;
  if (exit !== 0 || outcome === undefined) throw new Error(`Process 2 failed (${exit}). ${await stderr}`);
  if (outcome.status === 'error') throw new Error(`The order failed: ${outcome.error.message}`);
  if (outcome.status !== 'ok') throw new Error(`The order is still ${outcome.status}.`);
  line(green(`finished: ${JSON.stringify(outcome.output)}`));
  return { secondPid: pid, output: outcome.output };
}

/** @param {readonly ReportedEffect[]} reports @param {number} secondPid */
function printCounts(reports, secondPid) {
  heading('The checks', 'requests and effects that the sink recorded');
  const widths = [16, 8, 9];
  const countsByName = countEffects(reports);
  line(dim(row(['effect', 'received', 'performed', 'sent by'], widths)));
  for (const name of expectedEffects) {
    const { received = 0, performed = 0, keys = new Set(), pids = new Set() } = countsByName.get(name) ?? {};
    const senders = [...pids].map((pid) => (pid === secondPid ? 2 : 1)).join(' and ');
    const remark = received > 1 && keys.size === 1 ? ', with one idempotency key' : '';
    line(row([name, received, performed, `process ${senders}${yellow(remark)}`], widths));
  }
}

/** @param {readonly Entry[]} journal @param {number} entriesBeforeKill */
function printJournal(journal, entriesBeforeKill) {
  heading('The journal', 'one entry per fact, written once');
  const widths = [3, 16, 10];
  const nameOf = stepNames(journal);
  line(dim(row(['seq', 'type', 'key', 'name'], widths)));
  for (const { seq, type, key, until, value, resolution, by } of journal) {
    if (seq === 0) rule('process 1', 52);
    if (seq === entriesBeforeKill) rule('SIGKILL, process 2', 52);
    const name = resolution === undefined ? nameOf(key) : `${resolution}, by ${by}`;
    line(row([seq, type, key, until === undefined ? name : `${value} ms`], widths));
  }
}

/** Runs the scenario and returns the failed checks. @param {string} folder @returns {Promise<string[]>} */
export async function runScenario(folder) {
  const sink = await startEffectSink(join(folder, 'sink.log'));
  /** @type {Scenario} */
  const scenario = { file: join(folder, 'journal.db'), url: '', sink, onRequest: () => {} };
  const services = await startServices(sink.url, (request, performed) => scenario.onRequest(request, performed));
  scenario.url = services.url;
  try {
    await runFirstProcess(scenario);
    const entriesAtKill = await readJournal(scenario.file);
    printEntriesAtKill(entriesAtKill);
    const { secondPid, output } = await runSecondProcess(scenario);
    const journal = await readJournal(scenario.file);
    const reports = sink.reportedEffects();
    const evidence = { expectedEffects, interruptedEffects, reports, entriesAtKill, journal, secondPid, output };
    const problems = findProblems(evidence);
    printCounts(reports, secondPid);
    line(problems.length === 0 ? bold(green('Nothing was done twice, nothing was lost.')) : red('A check failed.'));
    printJournal(journal, entriesAtKill.length);
    return problems;
  } finally {
    services.close();
    await sink.close();
  }
}
