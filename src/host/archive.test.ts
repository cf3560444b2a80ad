import { expect } from 'vitest';
import { gate } from '../../spec/support/approval-fixture.js';
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

verifies('turn.listed', 'a turn in a long pure effect is listed before anything of it is stored', async () => {
  const [started, release] = [gate(), gate()];
  const hold = async (input: unknown) => {
    started.open();
    await release.passed;
    return input as null;
  };
  const pure = tool('pure', 'builtin:hold', { tool: { implementation: 'builtin:hold', safety: 'pure' } });
  const store = memoryStore();
  const host = hostOf([pure], { store, tools: { hold } });
  const running = host.run({ loop: 'pure', input: 1, sessionId: 's', key: 'k' });
  await started.passed;
  const stored: unknown[] = [];
  for await (const batch of store.journal.read('s', 0)) stored.push(...batch);
  expect(stored.filter((entry) => (entry as { type: string }).type === 'call.started')).toEqual([]);
  const [turn, ...others] = await host.archive.turns();
  expect(others).toEqual([]);
  expect(turn).toMatchObject({ sessionId: 's', loopId: 'pure', status: 'running' });
  expect(await host.archive.status(turn?.turnId ?? '')).toEqual([turn]);
  release.open();
  await running;
  expect(await host.archive.turns()).toMatchObject([{ turnId: turn?.turnId, status: 'ok' }]);
});

verifies('turn.listed', 'a turn that a process runs without answering is listed by its lease', async () => {
  const store = memoryStore();
  const lease = { session: 's', turn: 's.1', pid: 4711 };
  const leases = { ...store.leases, list: async () => [lease] };
  const { archive } = hostOf([tool('t')], { store: { ...store, leases } });
  const listed = { turnId: 's.1', sessionId: 's', loopId: '', status: 'running', pid: 4711 };
  expect(await archive.turns()).toMatchObject([listed]);
  expect(await archive.status('s.1')).toMatchObject([listed]);
  expect(await archive.status('s')).toMatchObject([listed]);
  await expect(archive.status('s.2')).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
});
