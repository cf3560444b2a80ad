// A process that opens stores and calls tools of the toolbox. Each command and each response is one line of JSON.

import { openSqlite } from 'rondo/sqlite';
import { toolbox } from 'rondo/toolbox';
import { entryOf, readCommands } from '../command-reader.mjs';

const stores = [];

readCommands({
  ping: () => process.pid,
  /** Opens a store and appends values to one session of it. */
  open: async ({ path, session = 'a', values = [] }) => {
    const store = await openSqlite(path);
    stores.push(store);
    const { fence, nextSeq: next } = await store.journal.claim(session);
    for (const [n, value] of values.entries()) {
      await store.journal.append({ session, fence, firstSeq: next + n, entries: [entryOf(next + n, value)] });
    }
    return store.owner;
  },
  /** Returns all values of a session and the reported damage of the store. */
  values: async ({ session = 'a', store = 0 }) => {
    const values = [];
    for await (const entries of stores[store].journal.read(session, 0))
      values.push(...entries.map(({ value }) => value));
    return { values, damage: stores[store].report.damage };
  },
  /** Appends one value to a session. */
  append: async ({ session = 'a', store = 0, value }) => {
    const { fence, nextSeq: next } = await stores[store].journal.claim(session);
    await stores[store].journal.append({ session, fence, firstSeq: next, entries: [entryOf(next, value)] });
  },
  /** Calls a tool without an approval. The result also has its duration and its streamed output. */
  tool: async ({ name, input, options, abortMs }) => {
    const { execute } = toolbox(options)[name].withApproval('always_allow');
    const deltas = [];
    const abortSignal = abortMs === undefined ? undefined : AbortSignal.timeout(abortMs);
    const started = performance.now();
    const result = await execute(input, {
      ...{ toolCallId: 'call-1', messages: [], onToolOutputDelta: (delta) => deltas.push(delta) },
      ...(abortSignal === undefined ? {} : { abortSignal }),
    });
    return { ...result, ms: Math.round(performance.now() - started), streamed: deltas.join('').slice(0, 100_000) };
  },
  /** Returns the approval request of a tool call. */
  question: ({ name, input, options }) => toolbox(options)[name].requestApproval(input, {}),
});
