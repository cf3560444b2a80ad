import { expect } from 'vitest';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { Fault } from '../base/errors.js';
import type { Store } from '../journal/store.js';

verifies('turn.status', 'one damaged session hides all others, or is left out without a word', async () => {
  const whole = memoryStore();
  const read: Store['journal']['read'] = (session, from) => {
    if (session === 'bad') throw new Fault('STORE_DAMAGED', 'Session "bad" is refused.');
    return whole.journal.read(session, from);
  };
  const { claim, append, list, remove } = whole.journal;
  const journal = {
    claim: claim.bind(whole.journal),
    append: append.bind(whole.journal),
    list: list.bind(whole.journal),
    remove: remove.bind(whole.journal),
    read,
  };
  const before = hostOf([tool('t')], { store: whole });
  for (const sessionId of ['bad', 'good']) await before.run({ loop: 't', input: 1, sessionId });
  const { archive } = hostOf([tool('t')], { store: { ...whole, journal } });
  expect(await archive.turns()).toMatchObject([
    { sessionId: 'bad', status: 'error', error: { code: 'STORE_DAMAGED' } },
    { sessionId: 'good', status: 'ok' },
  ]);
  await expect(archive.turns('bad')).rejects.toMatchObject({ code: 'STORE_DAMAGED' });
});
