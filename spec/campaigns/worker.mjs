// A worker process of a campaign: opens the store, creates a host and executes commands. A command is a JSON line on
// stdin, its report a JSON line on stdout. The process installs no signal handlers.

import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Host, Registry, systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { loopsOf } from './plans.mjs';
import { connectSink } from './sink-client.mjs';

const [file = '', sink = '', copies = ''] = process.argv.slice(2);

/** Prints a report as a line of JSON. @param {unknown} report */
const printReport = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);

/** Returns the fields of an error for a report. @param {unknown} error */
function errorFields(error) {
  const { name, code, message, data, stack } = /** @type {Record<string, unknown>} */ (error ?? {});
  return { name, code, message: message ?? String(error), data, ...(code === undefined && { stack }) };
}

const perform = await connectSink(sink);
/** @type {import('rondo/host').Store} */
let store;
try {
  store = await openSqlite(file);
} catch (error) {
  printReport({ fatal: errorFields(error) });
  process.exit(1);
}
const registry = new Registry();
for (const loop of loopsOf(perform)) registry.add(loop);
const host = new Host({ store, clock: systemClock, ids: systemIds, registry });

/** Returns the fields of a result for a report. @param {import('rondo/protocol').TurnResult | undefined} result */
const resultFields = (result) => {
  if (result === undefined) return undefined;
  const { trace: _, ...fields } = result;
  return fields;
};

/** @typedef {{ id: number, op: string } & Record<string, string>} Command */

/** @type {Readonly<Record<string, (command: never) => Promise<unknown>>>} */
const operations = {
  /** @param {Command & { input: unknown }} command */
  run: async ({ loop = '', input, sessionId = '', key = '' }) =>
    resultFields(await host.run({ loop, input, sessionId, key })),
  /** @param {Command} command */
  resume: async ({ turnId = '' }) => resultFields(await host.resume(turnId)),
  /** @param {Command} command */
  cancel: ({ turnId = '', reason = '' }) => host.cancel(turnId, reason),
  /** @param {Command & { approved: boolean }} command */
  answer: async ({ approval = '', approved, by = '' }) => (await host.answer({ id: approval, approved, by })).id,
  /** @param {Command & { resolution: 'retry' | 'supply' }} command */
  resolve: ({ key = '', resolution, by = '', value }) => host.resolveEffect(key, resolution, by, value),
  /** @param {Command} command */
  turns: async ({ session }) =>
    (await host.archive.turns(session)).map(({ turnId, sessionId, status }) => ({ turnId, sessionId, status })),
  /** @param {Command} command */
  approvals: async ({ session }) => (await host.archive.approvals(session)).map(({ id, turnId }) => ({ id, turnId })),
  /** @param {Command} command */
  result: async ({ turnId = '' }) => resultFields(await host.archive.result(turnId)),
  /** @param {Command & { ms: number }} command */
  block: async ({ ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  close: () => store.close(),
};

/** Executes a command and prints its report. @param {Command} command */
async function execute(command) {
  const { id, op } = command;
  try {
    const value = await operations[op]?.(/** @type {never} */ (command));
    printReport({ id, value });
  } catch (error) {
    printReport({ id, error: errorFields(error) });
  }
  if (op === 'close') process.exit(0);
}

/** True if the owner file names this process. */
async function isOwner() {
  try {
    return JSON.parse(await readFile(`${file}.owner`, 'utf8')).pid === process.pid;
  } catch {
    return false;
  }
}

/** Reads, copies and searches all files of the data directory in a loop, while this process owns the store. */
async function copyFilesInLoop() {
  const folder = dirname(file);
  await mkdir(copies, { recursive: true });
  for (;;) {
    await sleep(30);
    if (!(await isOwner())) continue;
    const items = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const item of items.filter((entry) => entry.isFile())) {
      const from = join(folder, item.name);
      await copyFile(from, join(copies, `${process.pid}-${item.name}`)).catch(() => {});
      const content = await readFile(from).catch(() => Buffer.alloc(0));
      content.includes('a text that no file contains');
    }
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => void execute(JSON.parse(line)))
  .on('close', () => process.exit(0));
printReport({ ready: process.pid });
if (copies !== '') await copyFilesInLoop();
