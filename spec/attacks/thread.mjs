// A worker thread that owns a store until it is terminated.

import { parentPort, workerData } from 'node:worker_threads';
import { openSqlite } from 'rondo/sqlite';

const store = await openSqlite(workerData.path);
const { fence } = await store.journal.claim('thread');
const entry = { seq: 0, at: 0, key: 't/0', type: 'step.taken', value: 'thread-0' };
await store.journal.append({ session: 'thread', fence, firstSeq: 0, entries: [entry] });
parentPort?.postMessage({ owner: store.owner });
setInterval(() => {}, 1000);
