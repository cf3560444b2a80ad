// Two hosts on one store, as in two processes: what one can do with a turn that the other runs.
// Each case runs the turn at the owner of the store and at its client.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { openSqlite, type SqliteStore } from '../../src/adapters/sqlite/index.js';
import { Fault } from '../../src/base/errors.js';
import type { Host } from '../../src/host/host.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { ASK, gate, onlyPending, RecordedActions } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { verifies } from '../verifies.js';

/** Two hosts on one store. */
interface Pair {
  /** The host that runs the turn. */
  readonly runner: Host;
  /** Another host on the same store. */
  readonly other: Host;
  readonly stores: readonly [runner: SqliteStore, other: SqliteStore];
  readonly file: string;
  /** The calls of the tool `act`. */
  readonly actions: RecordedActions;
  /** Makes the tool `hold` return. */
  release(): void;
  /** Resolves when the tool `hold` has started. */
  readonly started: Promise<void>;
}

const definitions = [
  tool('pure', 'builtin:hold', { tool: { implementation: 'builtin:hold', safety: 'pure' } }),
  tool('hold', 'builtin:hold'),
  tool('act', 'builtin:act'),
  tool('asks', 'builtin:act', ASK),
  composite('both', [
    { loopId: 'hold', inputMapping: { n: '$.input.n' } },
    { loopId: 'act', inputMapping: { n: '$.input.n' } },
  ]),
  composite('guarded', [
    { loopId: 'asks', inputMapping: { n: '$.input.n' } },
    { loopId: 'hold', inputMapping: { n: '$.input.n' } },
  ]),
];

/** Opens one store twice, with a host on each. */
async function createPair(runsAt: 'owner' | 'client'): Promise<Pair> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-pair-'));
  const file = join(directory, 'journal.db');
  const [owner, client] = [await openSqlite(file), await openSqlite(file)];
  onTestFinished(async () => {
    await Promise.all([client.close(), owner.close()]);
    rmSync(directory, { recursive: true, force: true });
  });
  const stores = runsAt === 'owner' ? ([owner, client] as const) : ([client, owner] as const);
  const [release, start] = [gate(), gate()];
  const actions = new RecordedActions();
  const hold: ToolFunction = async (input) => {
    start.open();
    await release.passed;
    return input;
  };
  const tools = { hold, act: actions.act };
  const [runner, other] = stores.map((store, seed) => hostOf(definitions, { store, tools, seed: seed + 1 }));
  if (runner === undefined || other === undefined) throw new Error('There are two stores.');
  return { runner, other, stores, file, actions, release: release.open, started: start.passed };
}

for (const at of ['owner', 'client'] as const) {
  verifies('store.turns', `at the ${at}: another process can cancel a running turn`, async () => {
    const { runner, other, started, actions } = await createPair(at);
    const running = runner.run({ loop: 'both', input: { n: 1 }, sessionId: 's', key: 'k' });
    await started;
    const [turn] = await other.archive.turns('s');
    expect(turn).toMatchObject({ status: 'running', pid: process.pid });
    expect(await other.cancel(turn?.turnId ?? '', 'enough')).toBe(true);
    expect(await running).toMatchObject({ error: { code: 'CANCELLED' } });
    expect(await other.cancel(turn?.turnId ?? '', 'again')).toBe(false);
    expect(actions.count).toBe(0);
  });

  verifies('turn.listed', `at the ${at}: another process lists a turn before anything of it is stored`, async () => {
    const { runner, other, started, release } = await createPair(at);
    const running = runner.run({ loop: 'pure', input: { n: 1 }, sessionId: 's' });
    await started;
    const [turn, ...more] = await other.archive.turns();
    expect(more).toEqual([]);
    expect(turn).toMatchObject({ sessionId: 's', loopId: 'pure', status: 'running', pid: process.pid });
    expect(await other.archive.status(turn?.turnId ?? '')).toEqual([turn]);
    release();
    await running;
    expect(await other.archive.turns()).toMatchObject([{ turnId: turn?.turnId, status: 'ok' }]);
  });

  verifies('store.turns', `at the ${at}: a turn that two processes start with the same key runs once`, async () => {
    const { runner, other, started, release, actions } = await createPair(at);
    const request = { loop: 'both', input: { n: 2 }, key: 'same' };
    const [runnerEvents, otherEvents]: TraceEvent[][] = [[], []];
    const first = runner.run(request, { onEvent: (event) => runnerEvents?.push(event) });
    await started;
    let attachedTurn = '';
    const second = other.run(request, {
      onEvent: (event) => otherEvents?.push(event),
      onTurn: (id) => (attachedTurn = id),
    });
    await expect.poll(() => otherEvents?.length).toBe(runnerEvents?.length);
    release();
    const [one, two] = await Promise.all([first, second]);
    expect(one).toMatchObject({ status: 'ok', output: { n: 2 } });
    expect(two).toMatchObject({ status: 'ok', output: { n: 2 }, turnId: one.turnId });
    expect(attachedTurn).toBe(one.turnId);
    expect(otherEvents).toEqual(runnerEvents);
    expect(actions.performed).toEqual([{ n: 2 }]);
  });

  verifies('turn.follow', `at the ${at}: stream handlers are called for a turn of another process`, async () => {
    const { runner, other, started, release } = await createPair(at);
    const request = { loop: 'both', input: { n: 2 }, key: 'same' };
    const first = runner.run(request);
    await started;
    const [results, events]: unknown[][] = [[], []];
    const second = other.run(request, {
      stream: { onToolResult: ({ result }) => void results?.push(result) },
      onEvent: (event) => void events?.push(event),
    });
    await expect.poll(() => events?.length).not.toBe(0);
    release();
    await Promise.all([first, second]);
    expect(results).toEqual([{ n: 2 }]);
  });

  verifies(
    'store.turns',
    `at the ${at}: turns of one session run one after another, whichever process starts them`,
    async () => {
      const { runner, other, started, release, actions } = await createPair(at);
      const first = runner.run({ loop: 'both', input: { n: 1 }, sessionId: 's' });
      await started;
      const second = other.run({ loop: 'act', input: { n: 2 }, sessionId: 's' });
      const unrelated = await other.run({ loop: 'act', input: { n: 3 }, sessionId: 'free' });
      expect(unrelated.status).toBe('ok');
      release();
      await Promise.all([first, second]);
      expect(actions.performed).toEqual([{ n: 3 }, { n: 1 }, { n: 2 }]);
    },
  );

  verifies(
    'store.turns',
    `at the ${at}: another process can answer a pending approval and resume its turn`,
    async () => {
      const { runner, other, release, actions } = await createPair(at);
      release();
      const paused = await runner.run({ loop: 'guarded', input: { n: 4 }, sessionId: 's' });
      expect(paused.status).toBe('paused');
      const { id } = await onlyPending(other, 's');
      expect(await other.answer({ id, approved: true, by: 'ada' })).toMatchObject({ id });
      await expect(runner.answer({ id, approved: true, by: 'ada' })).rejects.toMatchObject({ code: 'ANSWER_REFUSED' });
      expect(await other.resume(paused.turnId)).toMatchObject({ status: 'ok', output: { n: 4 } });
      expect(await runner.resume(paused.turnId)).toMatchObject({ status: 'ok', output: { n: 4 } });
      expect(actions.performed).toEqual([{ n: 4 }]);
    },
  );

  verifies(
    'store.turns',
    `at the ${at}: an answer to a turn is handled by the process that runs the turn`,
    async () => {
      const { runner, other, started, release } = await createPair(at);
      const running = runner.run({ loop: 'both', input: { n: 5 }, sessionId: 's' });
      await started;
      const [turn] = await other.archive.turns('s');
      const answer = { id: `${turn?.turnId}:nothing`, approved: true, by: 'ada' };
      await expect(other.answer(answer)).rejects.toMatchObject({
        code: 'ANSWER_REFUSED',
        data: { reason: 'there is no such approval' },
      });
      await expect(other.answer({ ...answer, by: '' })).rejects.toThrow(TypeError);
      await other.sendMessage({ sessionId: 's', text: 'faster' });
      release();
      expect((await running).status).toBe('ok');
      const entries = await other.archive.entries('s');
      expect(entries.map(({ type }) => type)).toEqual(
        expect.arrayContaining(['rondo.approval.refused', 'signal.received']),
      );
    },
  );

  verifies(
    'store.turns',
    `at the ${at}: another process sees the entries of a running turn that are not stored yet`,
    async () => {
      const { runner, other, started, release } = await createPair(at);
      const running = runner.run({ loop: 'both', input: { n: 6 }, sessionId: 's' });
      await started;
      const [turn] = await other.archive.status('s');
      const events = await other.archive.trace(turn?.turnId ?? '');
      expect(events.map(({ type }) => type)).toContain('call.tool.invoked');
      release();
      const { trace } = await running;
      expect(trace.slice(0, events.length)).toEqual(events);
    },
  );

  verifies(
    'store.leases',
    `at the ${at}: a session is leased by one process at a time, until it releases the lease`,
    async () => {
      const { stores } = await createPair(at);
      const [runnerStore, otherStore] = stores;
      const holder = (turn: string) => ({
        turn,
        handleRequest: async (request: unknown) => ({ got: request }) as never,
      });
      const lease = await runnerStore.leases.acquire('s', holder('s.1'));
      expect(await otherStore.leases.acquire('s', holder('s.2'))).toBeUndefined();
      expect(await otherStore.leases.list()).toEqual([{ session: 's', turn: 's.1', pid: process.pid }]);
      expect(await otherStore.leases.request('s', 'hello')).toEqual({ status: 'answered', value: { got: 'hello' } });
      expect(await runnerStore.leases.request('s', 'hello')).toEqual({ status: 'not-held' });
      expect(await otherStore.leases.request('free', 'hello')).toEqual({ status: 'not-held' });
      lease?.release();
      await expect.poll(() => otherStore.leases.list()).toEqual([]);
      const next = await otherStore.leases.acquire('s', holder('s.2'));
      expect(next).toBeDefined();
      lease?.release();
      expect(await runnerStore.leases.acquire('s', holder('s.3'))).toBeUndefined();
      next?.release();
    },
  );
}

verifies('store.leases', 'a client keeps its leases when the owner closes', async () => {
  const { stores, runner, file, started, release, actions } = await createPair('client');
  const [, owner] = stores;
  const running = runner.run({ loop: 'both', input: { n: 7 }, key: 'k' });
  await started;
  await owner.close();
  const third = await openSqlite(file);
  onTestFinished(() => third.close());
  const thirdHost = hostOf(definitions, { store: third, tools: { hold: async () => null, act: actions.act }, seed: 9 });
  const [turn] = await thirdHost.archive.turns();
  expect(turn).toMatchObject({ status: 'running', pid: process.pid });
  const attached = thirdHost.run({ loop: 'both', input: { n: 7 }, key: 'k' });
  release();
  expect(await attached).toMatchObject({ status: 'ok', output: { n: 7 } });
  expect(await running).toMatchObject({ status: 'ok' });
  expect(actions.count).toBe(1);
});

verifies('store.turns', 'a fault in a turn names the turn and the command that resumes it', async () => {
  const { file, runner, started, release } = await createPair('owner');
  const running = runner.run({ loop: 'both', input: { n: 8 }, sessionId: 's' });
  await started;
  rmSync(file, { force: true });
  release();
  const fault = await running.catch((thrown: unknown) => thrown);
  expect(fault).toMatchObject({ code: 'STORE_MISSING', data: { sessionId: 's' } });
  const { message, data } = fault as { message: string; data: { turnId: string } };
  expect(message).toContain(`rondo resume ${data.turnId}`);
});

verifies(
  'store.turns',
  'a fault while a turn is started or resumed names the turn and the command that resumes it',
  async () => {
    const store = memoryStore();
    const fault = new Fault('STORE_OWNED', 'The owner does not answer.');
    const leases = { ...store.leases, acquire: () => Promise.reject(fault) };
    const host = hostOf([tool('act', 'builtin:echo')], { store: { ...store, leases } });
    const faults = await Promise.all(
      [host.run({ loop: 'act', input: 1, key: 'k' }), host.resume('s.1')].map((result) =>
        result.catch((thrown) => thrown),
      ),
    );
    for (const { code, message, data } of faults) {
      expect(code).toBe('STORE_OWNED');
      expect(message).toContain(`rondo resume ${data.turnId}`);
    }
  },
);
