// A process of a case: runs the commands that it reads from stdin against a store. On an unhandled error it exits with
// code 99.

import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { entryOf, readCommands, writeReport } from './command-reader.mjs';
import { installFaultPlan, instrumentDriver } from './fault-injection.mjs';

/** Reports an unhandled error and exits. @param {unknown} thrown */
function exitOnCrash(thrown) {
  writeReport({
    crash: thrown instanceof Error ? `${thrown.name}: ${thrown.message} ${thrown.stack}` : String(thrown),
  });
  process.exit(99);
}
process.on('uncaughtException', exitOnCrash);
process.on('unhandledRejection', exitOnCrash);

/** The fault to inject. It must be installed before a module of the package is loaded. */
const plan = installFaultPlan();
const { openSqlite, openDriver } = await import('rondo/sqlite');

/** @type {Map<string, Awaited<ReturnType<typeof openSqlite>>>} */
const stores = new Map();
/** @type {Map<string, { release(): void }>} */
const leases = new Map();
const notifications = [];

/** @param {{ store?: string }} command */
const storeOf = ({ store = 'main' }) => stores.get(store);

/** @type {Record<string, (command: any) => unknown>} */
const commands = {
  open: async ({ path, store = 'main', options = {} }) => {
    const driver = plan === undefined ? {} : { driver: instrumentDriver(openDriver, plan) };
    const opened = await openSqlite(path, { notify: (text) => notifications.push(text), ...driver, ...options });
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
    const values = [];
    for await (const entries of storeOf(command).journal.read(command.session, 0))
      values.push(...entries.map(({ value }) => value));
    return values;
  },
  get: async (command) => (await storeOf(command).blobs.get(command.session, command.digest)) ?? null,
  load: async (command) => (await storeOf(command).snapshots.load(command.session)) ?? null,
  owner: (command) => storeOf(command).owner,
  notifications: () => notifications,
  close: (command) => storeOf(command).close(),
  acquire: async (command) => {
    const { session, turn = 't' } = command;
    const handleRequest = async (request, send) => {
      for (let n = 0; n < (command.pieces ?? 0); n++) send({ n });
      return { from: process.pid, request };
    };
    const lease = await storeOf(command).leases.acquire(session, { turn, handleRequest });
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
  /** Opens and closes all files of the store, which releases the POSIX locks of this process on them. */
  readStoreFiles: ({ path }) => {
    for (const name of readdirSync(dirname(path))) if (!name.endsWith('.sock')) readFileSync(join(dirname(path), name));
  },
  /** Blocks the event loop. */
  block: ({ ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
  /** Blocks the event loop several times, with a gap in between. */
  blockRepeatedly: ({ ms, gap, times }) => {
    for (let n = 0; n < times; n++) setTimeout(() => commands.block({ ms }), 10 + n * (ms + gap));
  },
  steps: () => plan?.steps ?? 0,
  /** Injects the planned fault at the given step, counted from now. */
  armFault: ({ at }) => plan?.arm(at),
  /** Appends until the process ends, and reports each acknowledgement. */
  pump: async (command) => {
    const { session, pause = 0 } = command;
    const { fence, next } = await commands.claim(command);
    writeReport({ pumping: session });
    for (let first = next; ; first++) {
      await commands.append({ ...command, fence, first, value: `${session}-${first}` });
      writeReport({ acked: first, session });
      if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause));
    }
  },
  /** Keeps up to `width` appends in flight, reports each acknowledgement, and returns the first errors. */
  burst: async (command) => {
    const { session, count, width } = command;
    const { fence, next } = await commands.claim(command);
    const appends = [];
    for (let n = 0; n < count; n++) {
      appends.push(
        commands
          .append({ ...command, fence, first: next + n, value: `${session}-${next + n}` })
          .then(() => writeReport({ acked: next + n, session })),
      );
      if (appends.length >= width) await appends[appends.length - width];
    }
    const settled = await Promise.allSettled(appends);
    return settled
      .flatMap(({ reason }) => (reason === undefined ? [] : [`${reason.code}: ${reason.message}`]))
      .slice(0, 3);
  },
  /** Opens and closes the store several times; returns the number of open descriptors. */
  reopen: async ({ path, times }) => {
    for (let n = 0; n < times; n++) {
      const store = await openSqlite(path);
      await store.journal.list();
      await store.close();
    }
    return readdirSync('/proc/self/fd').length;
  },
  /** Opens a store while only `left` descriptors are available, then again with enough of them. */
  openWithFewDescriptors: async ({ path, left }) => {
    const descriptors = [];
    try {
      for (;;) descriptors.push(openSync('/dev/null'));
    } catch {
      for (let n = 0; n < left; n++) closeSync(descriptors.pop() ?? 0);
    }
    const first = await openSqlite(path).then(
      (store) => store.close().then(() => 'opened'),
      (thrown) => `${thrown.name} ${thrown.code}`,
    );
    for (const descriptor of descriptors) closeSync(descriptor);
    const store = await openSqlite(path);
    const { here } = store.owner;
    await store.close();
    return { first, here };
  },
  descriptors: () => readdirSync('/proc/self/fd').length,
  /** Reads a session with a delay after each batch. */
  readSlowly: async (command) => {
    const values = [];
    for await (const entries of storeOf(command).journal.read(command.session, 0)) {
      values.push(...entries.map(({ value }) => value));
      writeReport({ acked: values.length, session: command.session });
      await new Promise((resolve) => setTimeout(resolve, command.ms));
    }
    return { count: values.length, inOrder: values.every((value, n) => value === `${command.session}-${n}`) };
  },
  /** Closes stdin, so that the process ends as soon as no other handle keeps it alive. */
  closeInput: () => {
    lines.removeAllListeners('close');
    lines.close();
    process.stdin.unref?.();
    process.stdin.destroy();
  },
  /** Opens a store in a worker thread; with `end`, terminates the thread. */
  thread: async ({ path, end }) => {
    const worker = new Worker(new URL('thread.mjs', import.meta.url), { workerData: { path } });
    const message = await new Promise((resolve) => worker.once('message', resolve));
    if (end) await worker.terminate();
    return message;
  },
  /** Runs a tool of the toolbox in this process. */
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

const lines = readCommands(commands);
