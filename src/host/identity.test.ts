import { expect } from 'vitest';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
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

/** A host whose tool counts how often it ran. */
function counting(store: Store = memoryStore()) {
  let runs = 0;
  const host = hostOf([tool('count', 'builtin:count')], { store, tools: { count: () => ++runs } });
  const run = (more: Partial<TurnRequest>) => host.run({ loop: 'count', input: {}, key: 'order-7', ...more });
  return { host, run, runs: () => runs };
}

verifies('identity.injective', 'the id of one turn may begin with the id of another without being taken for it', () => {
  expect(['s.1', 's.1/0', 's.1/0/2~1'].map((key) => isKeyOfTurn(key, 's.1'))).toEqual([true, true, true]);
  expect(['s.1f0c', 's.1f0c/0', 's.10/0', 's', '#s.1'].map((key) => isKeyOfTurn(key, 's.1'))).toEqual(
    Array(5).fill(false),
  );
});

/** Records a turn as versions did that kept a key apart from its principal. */
async function recordedBefore(store: Store, principal: string | undefined, sessionId?: string): Promise<string> {
  const name = `k-${digestOfText('order-7').slice(0, 16)}`;
  const at = sessionId ?? name;
  const session = await Session.open(at, { store, clock: new ManualClock(1_000), ids: seededIds(9) });
  const turnId = `${at}.${name}`;
  if (principal !== undefined) await session.recordFact('rondo.turn.opened', turnId, { principal });
  await session.run(turnId, { name: 'count', version: '1.0.0', body: async () => 'as before' }, {});
  await session.close();
  return turnId;
}

verifies(
  'identity.principal',
  'the same key of another principal is another turn, with or without a session',
  async () => {
    for (const place of [{}, { sessionId: 'shop' }]) {
      const { run, runs } = counting();
      const results = await Promise.all([
        run({ ...place, principal: 'ada' }),
        run({ ...place, principal: 'eve' }),
        run(place),
        run({ ...place, principal: 'ada' }),
      ]);
      const [ada, eve, nobody, again] = results.map(({ turnId }) => turnId);
      expect(new Set([ada, eve, nobody]).size).toBe(3);
      expect(again).toBe(ada);
      expect(runs()).toBe(3);
      for (const { status } of results) expect(status).toBe('ok');
    }
  },
);

verifies(
  'identity.principal',
  'no key and no principal can be chosen to read like those of somebody else',
  async () => {
    const { run, runs } = counting();
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
    // Two lone surrogates have one digest.
    await expect(run({ key: '\ud800' })).rejects.toThrow('lone surrogates');
    await expect(run({ principal: 'a\udc00' })).rejects.toThrow('A principal is text');
  },
);

verifies('identity.principal', 'a principal that is no name, and approvers that are none, are refused', async () => {
  const { run, runs } = counting();
  const nobody = [null, '', ' ', 7, 'x'.repeat(201), ['ada']];
  const holes = new Array<string>(1);
  const requests = [
    ...nobody.map((principal) => ({ principal })),
    ...[...nobody.slice(0, 5), [], holes, ['ada', ''], ['ada', undefined]].map((approvers) => ({ approvers })),
  ] as unknown as readonly Partial<TurnRequest>[];
  for (const request of requests)
    await expect(run(request), JSON.stringify(request)).rejects.toThrow('A principal is text');
  expect(runs()).toBe(0);
});

verifies(
  'identity.principal',
  'a turn that was recorded under its key alone is still found by its principal',
  async () => {
    for (const sessionId of [undefined, 'shop']) {
      const place = sessionId === undefined ? {} : { sessionId };
      const store = memoryStore();
      const turnId = await recordedBefore(store, 'ada', sessionId);
      const { run, runs } = counting(store);
      expect(await run({ ...place, principal: 'ada' })).toMatchObject({ turnId, status: 'ok', output: 'as before' });
      expect(runs()).toBe(0);
      const eve = await run({ ...place, principal: 'eve' });
      expect(eve).toMatchObject({ status: 'ok', output: 1 });
      expect(eve.turnId).not.toBe(turnId);
      const nobody = await run(place);
      expect(nobody).toMatchObject({ status: 'error', error: { code: 'KEY_CONFLICT' } });
      expect(JSON.stringify(nobody)).not.toContain('as before');
    }
  },
);

verifies('identity.principal', 'a turn that was recorded without a principal keeps its identity', async () => {
  const store = memoryStore();
  const turnId = await recordedBefore(store, undefined);
  const { host, run } = counting(store);
  expect(await run({})).toMatchObject({ turnId, output: 'as before' });
  const ada = await run({ principal: 'ada' });
  expect(ada).toMatchObject({ status: 'ok', output: 1 });
  const turns = await host.archive.turns();
  expect(turns.find((turn) => turn.turnId === turnId)?.principal).toBeUndefined();
  expect(turns.find((turn) => turn.turnId === ada.turnId)?.principal).toBe('ada');
});

verifies('identity.principal', 'the same key of the same principal with another input is refused', async () => {
  const { run, runs } = counting();
  await run({ principal: 'ada' });
  expect((await run({ principal: 'ada', input: { a: 2 } })).error?.code).toBe('KEY_CONFLICT');
  expect((await run({ principal: 'eve', input: { a: 2 } })).status).toBe('ok');
  expect(runs()).toBe(2);
});
