import { expect, vi } from 'vitest';
import { tool } from '../../../spec/support/host-fixture.js';
import { counter, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { Fault } from '../../base/errors.js';
import type { Journal } from '../../journal/store.js';
import type { TurnResult } from '../../protocol/trace.js';
import type { WorkProblem } from '../worker.js';
import { defineHostedLoop } from './define-hosted-loop.js';
import { hostedStreamOf } from './hosted-stream.js';

/** Returns a journal that is read in another way. */
const withRead = (journal: Journal, read: Journal['read']): Journal => ({
  ...{ list: () => journal.list(), claim: (session) => journal.claim(session) },
  ...{ append: (batch) => journal.append(batch), remove: (session) => journal.remove(session), read },
});

verifies('hosted.stops', 'a loop without a schedule runs turn after turn until its maximum of turns', async () => {
  const { host, work, inputs, start } = hostedFixture();
  await start(counter({ next: { from: '$.last.output.n', turn: '$.turn' } }));
  const results = await work();
  expect(results.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  expect(inputs).toEqual([{ from: 0 }, { from: 1, turn: 2 }, { from: 2, turn: 3 }]);
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'stopped', reason: 'max_turns', turns: 3 });
  const turns = await host.hosted.turns('counter');
  expect(turns.map(({ key, status }) => [key, status])).toEqual([
    ['counter#1', 'ok'],
    ['counter#2', 'ok'],
    ['counter#3', 'ok'],
  ]);
  expect(await host.receipts?.verify(undefined)).toMatchObject({ valid: true });
});

verifies('hosted.schedule', 'a turn starts when it is due, and not before', async () => {
  const { work, clock, start } = hostedFixture();
  await start(counter({ schedule: { cron: '0 9 * * *', zone: 'UTC' }, stop: { maxTurns: 2 } }));
  expect(await work()).toHaveLength(0);
  await clock.advance(9 * 3_600_000 - 1);
  expect(await work()).toHaveLength(0);
  await clock.advance(1);
  expect(await work()).toHaveLength(1);
  expect(clock.now()).toBe(START + 9 * 3_600_000);
});

verifies(
  'hosted.durable',
  'a process without the code that derives the inputs of a loop leaves its turns alone',
  async () => {
    const { store, clock, host } = hostedFixture();
    const loop = defineHostedLoop({ ...counter(), next: ({ turn }) => ({ from: turn }) });
    await host.hosted.start(loop, { by: 'ada' });
    const other = hostedFixture({ store, clock, seed: 2 });
    const problems: WorkProblem[] = [];
    await other.host.work({ once: true, onProblem: (problem) => problems.push(problem) });
    expect(problems).toMatchObject([{ turnId: 'counter', code: 'LOOP_NOT_FOUND' }]);
    expect(await host.hosted.status('counter')).toMatchObject({ status: 'waiting', turns: 0 });
    other.host.hosted.register(loop);
    await other.work();
    expect(other.inputs).toEqual([{ from: 0 }, { from: 2 }, { from: 3 }]);
  },
);

verifies('hosted.control', 'the reason of a pause is shown, and a worker reports the stop of a loop once', async () => {
  const { host, start } = hostedFixture();
  await start(counter({ stop: { maxTurns: 1 } }));
  const paused = await host.hosted.pause('counter', { by: 'ada', reason: 'holiday' });
  expect(paused).toMatchObject({ status: 'paused', message: 'Paused by ada: holiday' });
  await host.hosted.resume('counter', { by: 'bob' });
  const seen: unknown[] = [];
  const options = {
    onResult: ({ status }: TurnResult) => seen.push(status),
    onStop: (stop: object) => seen.push(stop),
  };
  for (const _ of [1, 2]) await host.work({ once: true, ...options });
  expect(seen).toEqual(['ok', { loop: 'counter', reason: 'max_turns', message: 'It has had 1 of 1 turns.' }]);
});

verifies('hosted.durable', 'the lease of a hosted loop is not listed as a turn', async () => {
  const store = memoryStore();
  const leases = { ...store.leases, list: async () => [{ session: 'rondo:hosted:counter', turn: 'counter', pid: 7 }] };
  const { host, start } = hostedFixture({ store: { ...store, leases } });
  await start(counter());
  expect(await host.archive.turns()).toEqual([]);
});

verifies(
  'hosted.durable',
  'a turn whose process has ended waits for a worker, and is not shown as running',
  async () => {
    const { host, start, step, restart } = hostedFixture({
      tools: { count: async () => new Promise(() => undefined) },
    });
    await start(counter());
    void step();
    await vi.waitFor(async () => expect((await host.hosted.status('counter')).turnId).toBeDefined());
    expect(await host.hosted.status('counter')).toMatchObject({ status: 'running', reason: 'turn' });
    const after = await restart().host.hosted.status('counter');
    expect(after).toMatchObject({ status: 'waiting', reason: 'turn', message: expect.stringContaining('No process') });
  },
);

verifies('hosted.signals', 'the status names the older of a signal and a due time, which comes first', async () => {
  const { host, start, work, clock } = hostedFixture();
  await start(counter({ schedule: { everyMs: 1_000 }, signals: { go: { schema: {} } }, stop: { maxTurns: 2 } }));
  await work();
  await clock.advance(500);
  await host.hosted.signal({ loop: 'counter', name: 'go', payload: null, id: 'before' });
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'waiting', reason: 'signal' });
  await work();
  const [, second] = await host.hosted.turns('counter');
  expect(second).toMatchObject({ cause: 'signal' });
});

verifies('hosted.signals', 'a signal that comes after a due time waits for the turn of the due time', async () => {
  const { host, start, work, clock } = hostedFixture();
  await start(counter({ schedule: { everyMs: 1_000 }, signals: { go: { schema: {} } }, stop: { maxTurns: 2 } }));
  await work();
  await clock.advance(1_500);
  await host.hosted.signal({ loop: 'counter', name: 'go', payload: null, id: 'after' });
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'waiting', reason: 'schedule' });
  await work();
  expect((await host.hosted.turns('counter'))[1]).toMatchObject({ cause: 'schedule' });
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'stopped', signals: 1 });
});

verifies(
  'hosted.document',
  'an input that the loop does not accept is refused at the start, not by the first turn',
  async () => {
    const properties = { n: { type: 'number' } };
    const strict = { ...tool('strict'), inputSchema: { type: 'object', properties, additionalProperties: false } };
    const { start } = hostedFixture({ definitions: [strict] });
    const document = counter({ loop: 'strict', next: '$.input' });
    const refusal = { code: 'DEFINITION_INVALID', data: { path: '/input/m' } };
    await expect(start({ ...document, input: { m: 1 } })).rejects.toMatchObject(refusal);
    const { input: _, next: __, ...empty } = document;
    await expect(start(empty as typeof document)).rejects.toMatchObject({ code: 'DEFINITION_INVALID' });
    const onDemand = { ...empty, next: '$.signal.payload', signals: { go: { schema: {} } } };
    await start({ ...onDemand, grant: { allowedTools: ['strict'], limits: {} } } as typeof document);
  },
);

verifies(
  'hosted.control',
  'a loop that cannot be read is listed as damaged, and does not hide the others',
  async () => {
    const { host, store, clock, start } = hostedFixture();
    for (const id of ['a', 'counter', 'z']) await start(counter({ id }));
    const { journal } = store;
    const damaged = new Fault('STORE_DAMAGED', 'A record was changed.');
    for (const [broken, code] of [
      ['counter', damaged],
      ['a', new Fault('STORE_DAMAGED', 'Another one.')],
    ] as const) {
      const read: typeof journal.read = (session, from) => {
        if (session === hostedStreamOf(broken)) throw code;
        return journal.read(session, from);
      };
      const other = hostedFixture({ store: { ...store, journal: withRead(journal, read) }, clock, seed: 2 });
      const listed = await other.host.hosted.list();
      expect(listed.map(({ loop, reason }) => [loop, reason === 'damaged'])).toEqual(
        ['a', 'counter', 'z'].map((loop) => [loop, loop === broken]),
      );
      expect(listed.find(({ loop }) => loop === broken)).toEqual({
        ...{ loop: broken, status: 'waiting', reason: 'damaged', message: `STORE_DAMAGED: ${code.message}` },
        ...{ turns: 0, projection: { head: '', fresh: false }, signals: 0 },
      });
      await expect(other.host.hosted.status(broken)).rejects.toBe(code);
    }
    expect((await host.hosted.list()).map(({ reason }) => reason)).not.toContain('damaged');
    const failing = withRead(journal, () => {
      throw new Error('disk');
    });
    const unreadable = hostedFixture({ store: { ...store, journal: failing }, clock, seed: 3 });
    await expect(unreadable.host.hosted.list(), 'any other error is thrown').rejects.toThrow('disk');
  },
);
