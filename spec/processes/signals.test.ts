// Two hosts on one store, as in two processes: a signal reaches a turn wherever it runs.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { openSqlite } from '../../src/adapters/sqlite/index.js';
import type { Host } from '../../src/host/host.js';
import { defineLoop } from '../../src/loops/define.js';
import type { Scope } from '../../src/protocol/body.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { hostOf } from '../support/host-fixture.js';
import { verifies } from '../verifies.js';

const loopOf = (id: string, run: (input: unknown, scope: Scope) => Promise<unknown>) =>
  defineLoop({ id, input: true, output: true, run });
/** Keeps its process busy with a timer while it waits. */
const running = loopOf('running', async (_input, scope) =>
  scope.race([
    async (branch) => [await branch.wait('a'), await branch.wait('b')],
    (branch) => branch.sleep('9 seconds').then(() => 'too late'),
  ]),
);
const paused = loopOf('paused', (_input, scope) => scope.wait('a'));

/** Opens one store twice, with a host on each. The first is the one that runs turns. */
async function openPair(runsAt: 'owner' | 'client'): Promise<readonly [runner: Host, other: Host]> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-signals-'));
  const file = join(directory, 'journal.db');
  const [owner, client] = [await openSqlite(file), await openSqlite(file)];
  onTestFinished(async () => {
    await Promise.all([client.close(), owner.close()]);
    rmSync(directory, { recursive: true, force: true });
  });
  const clock = new ManualClock(1_000_000);
  const [runnerStore, otherStore] = runsAt === 'owner' ? [owner, client] : [client, owner];
  return [
    hostOf([running, paused], { store: runnerStore, clock, seed: 1 }),
    hostOf([paused], { store: otherStore, clock, seed: 2 }),
  ];
}

for (const at of ['owner', 'client'] as const) {
  verifies('host.signal', `at the ${at}: a running turn receives the signals of another process once`, async () => {
    const [runner, other] = await openPair(at);
    const result = runner.run({ loop: 'running', input: {}, sessionId: 's', key: 'k' });
    await expect.poll(async () => (await other.archive.turns('s'))[0]?.status).toBe('running');
    const turnId = (await other.archive.turns('s'))[0]?.turnId ?? '';
    expect(await other.signal({ turnId, name: 'b', payload: 2, id: '1' })).toBe(true);
    expect(await other.signal({ turnId, name: 'b', payload: 2, id: '1' })).toBe(false);
    expect(await runner.signal({ turnId, name: 'b', payload: 2, id: '1' })).toBe(false);
    await expect(other.signal({ turnId: 's.other', name: 'a' })).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
    expect(await other.signal({ sessionId: 's', name: 'a', payload: 1 })).toBe(true);
    expect(await result).toMatchObject({ status: 'ok', output: [1, 2] });
    await expect(other.signal({ turnId, name: 'a' })).rejects.toMatchObject({ code: 'TURN_ENDED' });
  });

  verifies(
    'host.signal',
    `at the ${at}: a paused turn receives a signal and is resumed by another process`,
    async () => {
      const [runner, other] = await openPair(at);
      const { turnId } = await runner.run({ loop: 'paused', input: {} });
      const requests = Array.from({ length: 5 }, (_, n) => ({
        turnId,
        name: 'a',
        payload: 'once',
        id: n < 3 ? '1' : '2',
      }));
      const isNew = await Promise.all(requests.map((request, n) => (n % 2 === 0 ? runner : other).signal(request)));
      expect(isNew.filter(Boolean)).toHaveLength(2);
      expect(await other.resume(turnId)).toMatchObject({ status: 'ok', output: 'once' });
    },
  );
}
