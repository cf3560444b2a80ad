// A process of the campaign of budgets: a host on a SQLite store that runs, resumes and forks turns until it is killed.
// A command is a JSON line on stdin, its report a JSON line on stdout.

import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { seededRandom } from 'rondo/testing';
import { budgetHost } from './budget-host.mjs';

const [file = '', sinkPath = '', seed = '0'] = process.argv.slice(2);
const random = seededRandom(Number(seed));
/** The grant under which each session runs. @type {Map<string, string>} */
const grantOf = new Map();
const MAX_FORK_TRIES = 12;

/** Connects to the sink. Returns a function that reports what is performed, and waits for the reply. */
async function connectSink() {
  const socket = connect(sinkPath);
  await once(socket, 'connect');
  socket.on('error', () => process.exit(3));
  /** @type {Map<number, () => void>} */
  const pending = new Map();
  createInterface({ input: socket }).on('line', (line) => {
    const { id } = JSON.parse(line);
    pending.get(id)?.();
    pending.delete(id);
  });
  let nextId = 0;
  return (/** @type {object} */ message) =>
    /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const id = nextId++;
        pending.set(id, resolve);
        socket.write(`${JSON.stringify({ id, ...message })}\n`);
      })
    );
}

const send = await connectSink();
const grantAt = (/** @type {string} */ turn) => grantOf.get(turn.split('.')[0] ?? '') ?? '';
const recorder = {
  effect: (/** @type {{ tool: string, key: string }} */ { tool, key }) =>
    send({ effect: { tool, key, grant: grantAt(key.slice(key.indexOf(':') + 1)) } }),
  modelCall: (/** @type {{ turn: string, request: string, input: number, output: number }} */ call) =>
    send({ call: { ...call, grant: grantAt(call.turn) } }),
};
const store = await openSqlite(file);
const host = budgetHost({ store, clock: systemClock, ids: systemIds, recorder, random });

/** Returns the grant that a session has recorded last. @param {string} session */
async function recordedGrant(session) {
  let id = '';
  for (const { type, value } of await host.archive.entries(session)) {
    const { grant, id: given } = /** @type {any} */ (value ?? {});
    if (type === 'rondo.turn.opened') id = grant?.id ?? id;
    if (type === 'rondo.turn.granted') id = given;
  }
  return id;
}

/** Runs a turn, and returns its result with its grant. @param {string} grant @param {() => Promise<any>} work */
async function resultOf(grant, work) {
  const { turnId, status, reason, error } = await work();
  return { grant, turnId, status, reason, error };
}

/** @type {Readonly<Record<string, (command: any) => Promise<unknown>>>} */
const operations = {
  run: ({ session, loop, input, grant }) => {
    grantOf.set(session, grant.id);
    const request = { loop, input, key: 'k', sessionId: session, grant };
    return resultOf(grant.id, () => host.run(/** @type {never} */ (request)));
  },
  resume: async ({ turnId, grant }) => {
    const [session] = turnId.split('.');
    const grantId = grant?.id ?? (await recordedGrant(session));
    grantOf.set(session, grantId);
    return resultOf(grantId, () => host.resume(turnId, /** @type {never} */ ({ ...(grant && { grant }) })));
  },
  fork: async ({ turnId }) => {
    const entries = await host.archive.entries(turnId.split('.')[0]);
    for (let tries = 0; tries < MAX_FORK_TRIES; tries++) {
      const at = Math.floor(random() * entries.length);
      const forked = await host.fork(turnId, { at }).catch(() => undefined);
      if (forked !== undefined) return { turnId: forked.turnId };
    }
    return {};
  },
  close: async () => {
    await host.close();
    await store.close();
  },
};

/** Executes a command and prints its report. @param {{ id: number, op: string }} command */
async function execute(command) {
  const { id, op } = command;
  const report = await operations[op]?.(command).then(
    (value) => ({ id, value }),
    ({ code, message, stack }) => ({ id, error: { code, message, stack } }),
  );
  process.stdout.write(`${JSON.stringify(report)}\n`);
  if (op === 'close') process.exit(0);
}

createInterface({ input: process.stdin })
  .on('line', (line) => void execute(JSON.parse(line)))
  .on('close', () => process.exit(0));
process.stdout.write(`${JSON.stringify({ ready: process.pid })}\n`);
