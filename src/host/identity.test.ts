import { expect } from 'vitest';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { errorOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import { compositeId } from '../base/composite-id.js';
import { digestOfText } from '../journal/record.js';
import type { Store } from '../journal/store.js';
import { Session } from '../kernel/session.js';
import { ManualClock } from '../testing/manual-clock.js';
import { isKeyOfTurn } from '../views/turns.js';
import type { TurnRequest } from './host.js';

/** Returns a host whose tool counts its runs. */
function countingHost(store: Store = memoryStore()) {
  let runs = 0;
  const host = hostOf([tool('count', 'builtin:count')], { store, tools: { count: () => ++runs } });
  const run = (more: Partial<TurnRequest>) => host.run({ loop: 'count', input: {}, key: 'order-7', ...more });
  return { host, run, runs: () => runs };
}

verifies('identity.injective', 'a turn id that is the prefix of another does not match its keys', () => {
  expect(['s.1', 's.1/0', 's.1/0/2~1'].map((key) => isKeyOfTurn(key, 's.1'))).toEqual([true, true, true]);
  expect(['s.1f0c', 's.1f0c/0', 's.10/0', 's', '#s.1'].map((key) => isKeyOfTurn(key, 's.1'))).toEqual(
    Array(5).fill(false),
  );
});

/** Records a turn like earlier versions, which did not include the principal in its id. */
async function recordLegacyTurn(store: Store, principal: string | undefined, sessionId?: string): Promise<string> {
  const name = `k-${digestOfText('order-7').slice(0, 16)}`;
  const legacySessionId = sessionId ?? name;
  const session = await Session.open(legacySessionId, { store, clock: new ManualClock(1_000), ids: seededIds(9) });
  const turnId = `${legacySessionId}.${name}`;
  if (principal !== undefined) await session.recordFact('rondo.turn.opened', turnId, { principal });
  await session.run(turnId, { name: 'count', version: '1.0.0', body: async () => 'recorded output' }, {});
  await session.close();
  return turnId;
}

verifies(
  'identity.principal',
  'the same key of another principal is another turn, with or without a session',
  async () => {
    for (const scope of [{}, { sessionId: 'shop' }]) {
      const { run, runs } = countingHost();
      const results = await Promise.all([
        run({ ...scope, principal: 'ada' }),
        run({ ...scope, principal: 'eve' }),
        run(scope),
        run({ ...scope, principal: 'ada' }),
      ]);
      const [ada, eve, anonymous, repeated] = results.map(({ turnId }) => turnId);
      expect(new Set([ada, eve, anonymous]).size).toBe(3);
      expect(repeated).toBe(ada);
      expect(runs()).toBe(3);
      for (const { status } of results) expect(status).toBe('ok');
    }
  },
);

verifies('identity.principal', 'no choice of key and principal collides with another key and principal', async () => {
  const { run, runs } = countingHost();
  const requests: readonly Partial<TurnRequest>[] = [
    { principal: 'ada', key: 'order-7' },
    { key: compositeId('ada', 'order-7') },
    { key: JSON.stringify(['ada', 'order-7']) },
    { principal: 'ada:order-7', key: 'x' },
    { principal: 'ada', key: 'order-7:x' },
    { principal: 'Ada', key: 'order-7' },
    { principal: 'ada ', key: 'order-7' },
  ];
  const turns = new Set<string>();
  for (const request of requests) turns.add((await run(request)).turnId);
  expect(turns.size).toBe(requests.length);
  expect(runs()).toBe(requests.length);
  // All lone surrogates have the same UTF-8 encoding, and so the same digest.
  await expect(run({ key: '\ud800' })).rejects.toThrow('lone surrogates');
  await expect(run({ principal: 'a\udc00' })).rejects.toThrow('A principal is text');
});

verifies('identity.principal', 'invalid principals and approvers are refused', async () => {
  const { run, runs } = countingHost();
  const invalid = [null, '', ' ', 7, 'x'.repeat(201), ['ada']];
  const holes = new Array<string>(1);
  const requests = [
    ...invalid.map((principal) => ({ principal })),
    ...[...invalid.slice(0, 5), [], holes, ['ada', ''], ['ada', undefined]].map((approvers) => ({ approvers })),
  ] as unknown as readonly Partial<TurnRequest>[];
  for (const request of requests)
    await expect(run(request), JSON.stringify(request)).rejects.toThrow('A principal is text');
  expect(runs()).toBe(0);
});

verifies(
  'identity.principal',
  'a turn that was recorded under its key alone is found only by its principal',
  async () => {
    for (const sessionId of [undefined, 'shop']) {
      const scope = sessionId === undefined ? {} : { sessionId };
      const store = memoryStore();
      const turnId = await recordLegacyTurn(store, 'ada', sessionId);
      const { run, runs } = countingHost(store);
      expect(await run({ ...scope, principal: 'ada' })).toMatchObject({
        turnId,
        status: 'ok',
        output: 'recorded output',
      });
      expect(runs()).toBe(0);
      const eve = await run({ ...scope, principal: 'eve' });
      expect(eve).toMatchObject({ status: 'ok', output: 1 });
      expect(eve.turnId).not.toBe(turnId);
      const anonymous = await run(scope);
      expect(anonymous).toMatchObject({ status: 'error', error: { code: 'KEY_CONFLICT' } });
      expect(JSON.stringify(anonymous), 'the output of another principal is revealed').not.toContain('recorded output');
    }
  },
);

verifies('identity.principal', 'a turn that was recorded without a principal keeps its identity', async () => {
  const store = memoryStore();
  const turnId = await recordLegacyTurn(store, undefined);
  const { host, run } = countingHost(store);
  expect(await run({})).toMatchObject({ turnId, output: 'recorded output' });
  const ada = await run({ principal: 'ada' });
  expect(ada).toMatchObject({ status: 'ok', output: 1 });
  const turns = await host.archive.turns();
  expect(turns.find((turn) => turn.turnId === turnId)?.principal).toBeUndefined();
  expect(turns.find((turn) => turn.turnId === ada.turnId)?.principal).toBe('ada');
});

verifies('identity.principal', 'the same key of the same principal with another input is refused', async () => {
  const { run, runs } = countingHost();
  await run({ principal: 'ada' });
  expect(errorOf(await run({ principal: 'ada', input: { a: 2 } }))?.code).toBe('KEY_CONFLICT');
  expect((await run({ principal: 'eve', input: { a: 2 } })).status).toBe('ok');
  expect(runs()).toBe(2);
});
