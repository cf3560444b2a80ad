import { expect } from 'vitest';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { Fault } from '../base/errors.js';
import type { Store } from '../journal/store.js';

verifies('turn.status', 'a damaged session is reported and does not hide the others', async () => {
  const intactStore = memoryStore();
  const read: Store['journal']['read'] = (session, from) => {
    if (session === 'bad') throw new Fault('STORE_DAMAGED', 'Session "bad" is refused.');
    return intactStore.journal.read(session, from);
  };
  const { claim, append, list, remove } = intactStore.journal;
  const journal = {
    claim: claim.bind(intactStore.journal),
    append: append.bind(intactStore.journal),
    list: list.bind(intactStore.journal),
    remove: remove.bind(intactStore.journal),
    read,
  };
  const recorder = hostOf([tool('t')], { store: intactStore });
  for (const sessionId of ['bad', 'good']) await recorder.run({ loop: 't', input: 1, sessionId });
  const { archive } = hostOf([tool('t')], { store: { ...intactStore, journal } });
  expect(await archive.turns()).toMatchObject([
    { sessionId: 'bad', status: 'error', error: { code: 'STORE_DAMAGED' } },
    { sessionId: 'good', status: 'ok' },
  ]);
  await expect(archive.turns('bad')).rejects.toMatchObject({ code: 'STORE_DAMAGED' });
});
