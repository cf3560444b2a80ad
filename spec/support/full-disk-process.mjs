/**
 * A process that uses a store on a small disk until it is full: `node full-disk-process.mjs <built store> <file> <verb>`.
 * "fill": appends, fills the disk with another file, appends until it is refused, and closes the store. "kill": appends,
 * and kills itself. "open": opens the store and closes it. Prints the code of each Fault.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

const [builtStore = '', file = '', verb = ''] = process.argv.slice(2);
/** @type {typeof import('../../src/adapters/sqlite/index.js')} */
const { openSqlite } = await import(builtStore);

/** Performs `work` and prints the code of its Fault, if it throws one. @param {() => Promise<unknown>} work */
async function report(work) {
  try {
    await work();
  } catch (error) {
    console.log(/** @type {{ code?: string }} */ (error).code);
  }
}

/** Writes a file until the disk is full. */
function fillDisk() {
  const descriptor = openSync(join(dirname(file), 'filler'), 'w');
  for (const size of [65536, 1024]) {
    try {
      for (;;) writeSync(descriptor, Buffer.alloc(size));
    } catch {
      // The disk has no space for this size.
    }
  }
  closeSync(descriptor);
}

await report(async () => {
  const store = await openSqlite(file);
  if (verb !== 'open') {
    const { fence, nextSeq } = await store.journal.claim('a');
    /** @param {number} seq */
    const append = (seq) =>
      store.journal.append({
        ...{ session: 'a', fence, firstSeq: seq },
        entries: [{ seq, at: seq, key: `t/${seq}`, type: 'step.taken', value: 'x'.repeat(500) }],
      });
    for (let seq = nextSeq; seq < nextSeq + 30; seq++) await append(seq);
    if (verb === 'kill') process.kill(process.pid, 'SIGKILL');
    fillDisk();
    await report(async () => {
      for (let seq = nextSeq + 30; ; seq++) await append(seq);
    });
  }
  await store.close();
});
