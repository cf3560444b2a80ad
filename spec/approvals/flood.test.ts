import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Store } from '../../src/journal/store.js';
import { hostOf, tool } from '../turns/stage.js';
import { verifies } from '../verifies.js';
import { ASK, Deeds, onlyPending, told } from './stage.js';

/** A store that counts the entries that were read from it. */
function countingStore(): { readonly store: Store; readonly taken: () => number } {
  const inner = memoryStore();
  let count = 0;
  const read: Store['journal']['read'] = async function* (session, from) {
    for await (const entries of inner.journal.read(session, from)) {
      count += entries.length;
      yield entries;
    }
  };
  const { claim, append, list, remove } = inner.journal;
  const journal = Object.assign(Object.create(inner.journal), { claim, append, list, remove, read });
  const taken = (): number => {
    const before = count;
    count = 0;
    return before;
  };
  return { store: { ...inner, journal }, taken };
}

/** How much is read for one refused answer after this many others. */
async function costAfter(refusals: number, id: (own: string) => string): Promise<number> {
  const { store, taken } = countingStore();
  const host = hostOf([tool('pay', 'builtin:act', ASK)], { store, tools: { act: new Deeds().act } });
  await host.run({ loop: 'pay', input: {}, sessionId: 's' });
  const { id: own } = await onlyPending(host);
  for (let nth = 0; nth <= refusals; nth++) {
    taken();
    expect(await told(host, { id: id(own), approved: true, by: 'agent:x' })).not.toBe('taken');
  }
  return taken();
}

verifies(
  'approval.forged',
  'a flood of bad answers makes each next one slower, until no good one gets through',
  async () => {
    for (const id of [(own: string) => own, () => 'nowhere.1:x']) {
      const [few, many] = [await costAfter(10, id), await costAfter(210, id)];
      // Two hundred more were journaled; to read them all again for each answer makes the whole quadratic.
      expect(many).toBeLessThan(few + 100);
    }
  },
);
