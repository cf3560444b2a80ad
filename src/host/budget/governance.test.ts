import { expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { Store } from '../../journal/store.js';
import { defineLoop } from '../../loops/define.js';
import { defineSignal } from '../../loops/define-signal.js';
import type { Entry } from '../../protocol/entry.js';

const go = defineSignal('go', true);

/** Removes the last entries of a session, as one could who can change the store. */
async function cutOff({ journal }: Store, session: string, count: number): Promise<void> {
  const entries: Entry[] = [];
  for await (const read of journal.read(session, 0)) entries.push(...read);
  await journal.remove(session);
  const { fence } = await journal.claim(session);
  await journal.append({ session, fence, firstSeq: 0, entries: entries.slice(0, -count) });
}

verifies(
  'grant.ledger-kept',
  'the ledger of a grant without an id cannot be cut off while its turn is paused',
  async () => {
    let performed = 0;
    const loop = defineLoop({
      id: 'spend',
      input: true,
      output: true,
      run: async (_, scope) => {
        for (let n = 0; n < 3; n++) {
          await scope.effect('act', () => ++performed, { safety: 'once' });
          await scope.wait(go);
        }
        return performed;
      },
    });
    const store = memoryStore();
    const open = (seed: number) => hostOf([loop], { store, receiptKeys: testKeys(), seed });
    const grant = { allowedTools: ['act'], limits: { effects: 2 } };
    const paused = await open(1).run({ loop: 'spend', input: {}, sessionId: 's', grant });
    expect(paused.status).toBe('paused');
    const ledger = (await store.journal.list()).find(({ session }) => session.startsWith('rondo:grant:turn@'));
    await cutOff(store, ledger?.session ?? '', 1);
    const host = open(2);
    await host.signal({ turnId: paused.turnId, name: 'go', id: 'd1', payload: {} }).catch(() => undefined);
    await expect(host.resume(paused.turnId)).rejects.toMatchObject({ code: 'STORE_DAMAGED' });
    expect(performed, 'the budget was spent again').toBe(1);
  },
);

verifies(
  'grant.document',
  'a turn continues under its grant where a loop that a rule names is not registered any more',
  async () => {
    const loop = defineLoop({ id: 'ask', input: true, output: true, run: async (_, scope) => scope.wait(go) });
    const store = memoryStore();
    const open = (seed: number, loops: readonly unknown[]) => hostOf(loops, { store, receiptKeys: testKeys(), seed });
    const grant = { allowedTools: ['notes.*'], limits: { effects: { 'notes.add': 1 } } };
    const refused = await open(1, [loop]).run({ loop: 'ask', input: {}, grant });
    const unknown = { details: { path: '/limits/effects/notes.add' } };
    expect(refused, 'a new turn needs the loop').toMatchObject({ status: 'error', error: unknown });
    const paused = await open(2, [loop, tool('notes.add')]).run({ loop: 'ask', input: {}, grant });
    expect(paused.status).toBe('paused');
    const host = open(3, [loop]);
    await host.signal({ turnId: paused.turnId, name: 'go', id: 'd1', payload: 5 });
    expect(await host.resume(paused.turnId)).toMatchObject({ status: 'ok', output: 5 });
  },
);
