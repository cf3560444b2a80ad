// A process that opens stores and uses the toolbox as it is told, one JSON line a command.

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
  /** All values of a session, and what damage the store knows of. */
  values: async ({ session = 'a', store = 0 }) => {
    const all = [];
    for await (const some of stores[store].journal.read(session, 0)) all.push(...some.map(({ value }) => value));
    return { values: all, damage: stores[store].report.damage };
  },
  append: async ({ session = 'a', store = 0, value }) => {
    const { fence, nextSeq: next } = await stores[store].journal.claim(session);
    await stores[store].journal.append({ session, fence, firstSeq: next, entries: [entryOf(next, value)] });
  },
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
  question: ({ name, input, options }) => toolbox(options)[name].requestApproval(input, {}),
});
