// A process that does with a store what it is told, one JSON line a command; it ends with code 99 if anything is left unhandled.

import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { driverOf, setUp } from './meddle.mjs';
import { entryOf, obey, tell } from './obey.mjs';

/** @param {unknown} thrown */
function crashed(thrown) {
  tell({ crash: thrown instanceof Error ? `${thrown.name}: ${thrown.message} ${thrown.stack}` : String(thrown) });
  process.exit(99);
}
process.on('uncaughtException', crashed);
process.on('unhandledRejection', crashed);

/** What is to be done at which step of the process, before anything of the package is loaded. */
const plan = setUp(tell);
const { openSqlite, openDriver } = await import('rondo/sqlite');

/** @type {Map<string, Awaited<ReturnType<typeof openSqlite>>>} */
const stores = new Map();
/** @type {Map<string, { release(): void }>} */
const leases = new Map();
const notes = [];

/** @param {{ store?: string }} command */
const storeOf = ({ store = 'main' }) => stores.get(store);

/** @type {Record<string, (command: any) => unknown>} */
const acts = {
  open: async ({ path, store = 'main', options = {} }) => {
    const driver = plan === undefined ? {} : { driver: driverOf(openDriver, plan) };
    const opened = await openSqlite(path, { notify: (text) => notes.push(text), ...driver, ...options });
    stores.set(store, opened);
    return { owner: opened.owner, damage: opened.report.damage };
  },
  claim: async (command) => {
    const { fence, nextSeq: next } = await storeOf(command).journal.claim(command.session);
    return { fence, next };
  },
  append: async (command) => {
    const { session, fence, first, value = `v${first}` } = command;
    await storeOf(command).journal.append({ session, fence, firstSeq: first, entries: [entryOf(first, value)] });
  },
  put: (command) => storeOf(command).blobs.put(command.session, command.digest, command.text),
  list: (command) => storeOf(command).journal.list(),
  remove: (command) => storeOf(command).journal.remove(command.session),
  values: async (command) => {
    const all = [];
    for await (const some of storeOf(command).journal.read(command.session, 0))
      all.push(...some.map(({ value }) => value));
    return all;
  },
  get: async (command) => (await storeOf(command).blobs.get(command.session, command.digest)) ?? null,
  load: async (command) => (await storeOf(command).snapshots.load(command.session)) ?? null,
  owner: (command) => storeOf(command).owner,
  notes: () => notes,
  close: (command) => storeOf(command).close(),
  acquire: async (command) => {
    const { session, turn = 't' } = command;
    const answer = async (request, send) => {
      for (let n = 0; n < (command.pieces ?? 0); n++) send({ n });
      return { from: process.pid, request };
    };
    const lease = await storeOf(command).leases.acquire(session, { turn, handleRequest: answer });
    if (lease !== undefined) leases.set(session, lease);
    return lease !== undefined;
  },
  release: ({ session }) => leases.get(session)?.release(),
  holdings: (command) => storeOf(command).leases.list(),
  ask: async (command) => {
    const pieces = [];
    const reply = await storeOf(command).leases.request(command.session, command.request ?? {}, {
      onChunk: (piece) => pieces.push(piece),
    });
    return { ...reply, pieces: pieces.length };
  },
  /** Reads all files of the store, which drops the POSIX locks of this process. */
  read: ({ path }) => {
    for (const name of readdirSync(dirname(path))) if (!name.endsWith('.sock')) readFileSync(join(dirname(path), name));
  },
  /** Keeps the event loop from turning. */
  block: ({ ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  stall: ({ ms, gap, times }) => {
    for (let n = 0; n < times; n++) setTimeout(() => acts.block({ ms }), 10 + n * (ms + gap));
  },
  steps: () => plan?.steps ?? 0,
  go: ({ at }) => plan?.arm(at),
  /** Appends until it is told to stop, and tells each acknowledgement. */
  pump: async (command) => {
    const { session, pause = 0 } = command;
    const { fence, next } = await acts.claim(command);
    tell({ pumping: session });
    for (let first = next; ; first++) {
      await acts.append({ ...command, fence, first, value: `${session}-${first}` });
      tell({ acked: first, session });
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
    }
  },
  /** Appends without waiting for each acknowledgement, and tells what became of each. */
  burst: async (command) => {
    const { session, count, width } = command;
    const { fence, next } = await acts.claim(command);
    const ends = [];
    for (let n = 0; n < count; n++) {
      ends.push(
        acts
          .append({ ...command, fence, first: next + n, value: `${session}-${next + n}` })
          .then(() => tell({ acked: next + n, session })),
      );
      if (ends.length >= width) await ends[ends.length - width];
    }
    const settled = await Promise.allSettled(ends);
    return settled
      .flatMap(({ reason }) => (reason === undefined ? [] : [`${reason.code}: ${reason.message}`]))
      .slice(0, 3);
  },
  /** Opens and closes it again and again. */
  cycle: async ({ path, times }) => {
    for (let n = 0; n < times; n++) {
      const store = await openSqlite(path);
      await store.journal.list();
      await store.close();
    }
    return readdirSync('/proc/self/fd').length;
  },
  /** Opens a store while only so many descriptors are left, and again with enough of them. */
  exhausted: async ({ path, left }) => {
    const taken = [];
    try {
      for (;;) taken.push(openSync('/dev/null'));
    } catch {
      for (let n = 0; n < left; n++) closeSync(taken.pop() ?? 0);
    }
    const first = await openSqlite(path).then(
      (store) => store.close().then(() => 'opened'),
      (thrown) => `${thrown.name} ${thrown.code}`,
    );
    for (const descriptor of taken) closeSync(descriptor);
    const store = await openSqlite(path);
    const { here } = store.owner;
    await store.close();
    return { first, here };
  },
  descriptors: () => readdirSync('/proc/self/fd').length,
  /** Reads a session slowly, a batch at a time. */
  slowly: async (command) => {
    const all = [];
    for await (const some of storeOf(command).journal.read(command.session, 0)) {
      all.push(...some.map(({ value }) => value));
      tell({ acked: all.length, session: command.session });
      await new Promise((resolve) => setTimeout(resolve, command.ms));
    }
    return { count: all.length, inOrder: all.every((value, n) => value === `${command.session}-${n}`) };
  },
  /** Listens to nothing any more: it ends when nothing keeps it. */
  rest: () => {
    lines.removeAllListeners('close');
    lines.close();
    process.stdin.unref?.();
    process.stdin.destroy();
  },
  /** Opens a store in a thread, which is then ended. */
  thread: async ({ path, end }) => {
    const worker = new Worker(new URL('thread.mjs', import.meta.url), { workerData: { path } });
    const message = await new Promise((resolve) => worker.once('message', resolve));
    if (end) await worker.terminate();
    return message;
  },
  /** Uses a tool of the toolbox in this process. */
  tool: async ({ root, name, input }) => {
    const { toolbox } = await import('rondo/toolbox');
    const { execute } = toolbox({ roots: [root] })[name].withApproval('always_allow');
    return execute(input, { toolCallId: 'call-1', messages: [], onToolOutputDelta: () => undefined });
  },
  spawn: async ({ ms }) => {
    const { spawn } = await import('node:child_process');
    return spawn(process.execPath, ['-e', `setTimeout(() => {}, ${ms})`], { stdio: 'ignore' }).pid;
  },
};

const lines = obey(acts);
