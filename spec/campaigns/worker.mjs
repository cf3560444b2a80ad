// One process of a campaign: opens the store, runs turns with a host of its own, and carries out commands.
// A command is a JSON line on stdin, its report a JSON line on stdout. It installs no signal handlers.

import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Host, Registry, systemClock, systemIds } from 'rondo';
import { openSqlite } from 'rondo/sqlite';
import { loopsOf } from './plans.mjs';
import { connectSink } from './sink-client.mjs';

const [file = '', sink = '', copies = ''] = process.argv.slice(2);

/** @param {unknown} report */
const tell = (report) => process.stdout.write(`${JSON.stringify(report)}\n`);

/** @param {unknown} thrown */
function errorOf(thrown) {
  const { name, code, message, data, stack } = /** @type {Record<string, unknown>} */ (thrown ?? {});
  return { name, code, message: message ?? String(thrown), data, ...(code === undefined && { stack }) };
}

const perform = await connectSink(sink);
/** @type {import('rondo').Store} */
let store;
try {
  store = await openSqlite(file);
} catch (thrown) {
  tell({ fatal: errorOf(thrown) });
  process.exit(1);
}
const registry = new Registry();
for (const loop of loopsOf(perform)) registry.add(loop);
const host = new Host({ store, clock: systemClock, ids: systemIds, registry });

/** @param {import('rondo/protocol').TurnResult | undefined} result */
const short = (result) => {
  if (result === undefined) return undefined;
  const { turnId, sessionId, status, output, error, pending, reason } = result;
  return { turnId, sessionId, status, output, error, pending, reason };
};

/** @typedef {{ id: number, op: string } & Record<string, string>} Command */

/** @type {Readonly<Record<string, (command: never) => Promise<unknown>>>} */
const operations = {
  /** @param {Command & { input: unknown }} command */
  run: async ({ loop = '', input, sessionId = '', key = '' }) => short(await host.run({ loop, input, sessionId, key })),
  /** @param {Command} command */
  resume: async ({ turnId = '' }) => short(await host.resume(turnId)),
  /** @param {Command} command */
  cancel: ({ turnId = '', reason = '' }) => host.cancel(turnId, reason),
  /** @param {Command & { approved: boolean }} command */
  answer: async ({ approval = '', approved, by = '' }) => (await host.answer({ id: approval, approved, by })).id,
  /** @param {Command & { decision: 'retry' | 'supply' }} command */
  decide: ({ key = '', decision, by = '', value }) => host.resolveEffect(key, decision, by, value),
  /** @param {Command} command */
  turns: async ({ session }) =>
    (await host.archive.turns(session)).map(({ turnId, sessionId, status }) => ({ turnId, sessionId, status })),
  /** @param {Command} command */
  approvals: async ({ session }) => (await host.archive.approvals(session)).map(({ id, turnId }) => ({ id, turnId })),
  /** @param {Command} command */
  result: async ({ turnId = '' }) => short(await host.archive.result(turnId)),
  /** @param {Command & { ms: number }} command */
  block: async ({ ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  close: () => store.close(),
};

/** @param {Command} command */
async function carryOut(command) {
  const { id, op } = command;
  try {
    const value = await operations[op]?.(/** @type {never} */ (command));
    tell({ id, value });
  } catch (thrown) {
    tell({ id, error: errorOf(thrown) });
  }
  if (op === 'close') process.exit(0);
}

/** True if this process is recorded as the owner of the store. */
async function isOwner() {
  try {
    return JSON.parse(await readFile(`${file}.owner`, 'utf8')).pid === process.pid;
  } catch {
    return false;
  }
}

/** Reads, copies and searches all files of the data directory for as long as this process owns the store. */
async function copyForEver() {
  const folder = dirname(file);
  await mkdir(copies, { recursive: true });
  for (;;) {
    await sleep(30);
    if (!(await isOwner())) continue;
    const items = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const item of items.filter((one) => one.isFile())) {
      const from = join(folder, item.name);
      await copyFile(from, join(copies, `${process.pid}-${item.name}`)).catch(() => {});
      const text = await readFile(from).catch(() => Buffer.alloc(0));
      text.includes('a text that no file holds');
    }
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => void carryOut(JSON.parse(line)))
  .on('close', () => process.exit(0));
tell({ ready: process.pid });
if (copies !== '') await copyForEver();
