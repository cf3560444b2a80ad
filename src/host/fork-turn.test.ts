import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { composite, hostOf, prompt, textProvider, tool } from '../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../spec/support/scripted-agents.js';
import { outputOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { openSqlite } from '../adapters/sqlite/index.js';
import { expandLeaves } from '../journal/leaf-entries.js';
import type { Store } from '../journal/store.js';
import { defineLoop } from '../loops/define.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { ManualClock } from '../testing/manual-clock.js';
import { forkPointsOf } from '../views/fork-points.js';
import { SESSION_FORKED } from '../views/turns.js';
import type { Host } from './host.js';

const ASK = { policy: { approval: 'ask' } } as const;

/** A tool that records its inputs. */
function recorder(): { readonly performed: Json[]; readonly act: (input: Json) => Json } {
  const performed: Json[] = [];
  const act = (input: Json): Json => {
    performed.push(input);
    return input;
  };
  return { performed, act };
}

async function seqOf(host: Host, sessionId: string, matches: (entry: Entry) => boolean): Promise<number> {
  const entry = (await host.archive.entries(sessionId)).find(matches);
  if (entry === undefined) throw new Error('There is no such entry.');
  return entry.seq;
}

const approveAll = async (host: Host, sessionId: string, approved = true): Promise<void> => {
  for (const { id } of await host.archive.approvals(sessionId)) await host.answer({ id, approved, by: 'ada' });
};

verifies('fork.copy', 'a fork has its own incarnation, its origin as second entry, and is due', async () => {
  const { performed, act } = recorder();
  const store = memoryStore();
  const host = hostOf([tool('act', 'builtin:act', ASK)], { tools: { act }, store });
  const { sessionId, turnId } = await host.run({ loop: 'act', input: { n: 1 }, sessionId: 'ada' });
  const at = (await host.archive.entries(sessionId)).length - 1;
  const fork = await host.fork(turnId, { at });
  expect(fork).toEqual({
    sessionId: expect.stringMatching(/^s-/),
    turnId: `${fork.sessionId}${turnId.slice(sessionId.length)}`,
    origin: { sessionId, turnId, at },
  });
  const [original, copy] = [await host.archive.entries(sessionId), await host.archive.entries(fork.sessionId)];
  expect(copy.slice(0, 2)).toMatchObject([
    { type: 'session.opened', seq: 0 },
    { type: SESSION_FORKED, seq: 1, value: { session: sessionId, turn: turnId, at } },
  ]);
  expect(copy[0]?.incarnationId).not.toBe(original[0]?.incarnationId);
  expect(copy.map(({ seq }) => seq)).toEqual(copy.map((_, index) => index));
  expect(copy.slice(2).map(({ type }) => type)).toEqual(original.slice(1).map(({ type }) => type));
  expect(JSON.stringify(copy.slice(2)), 'the copy names the original').not.toContain(`"${turnId}`);
  expect(await store.dueTurns.list(1_000_000, 10)).toMatchObject([{ turn: fork.turnId, dueAt: 0 }]);
  expect(performed).toEqual([]);
});

verifies('fork.copy', 'an approval is answered on its own in a fork', async () => {
  const { performed, act } = recorder();
  const host = hostOf([tool('act', 'builtin:act', ASK)], { tools: { act } });
  const { sessionId, turnId } = await host.run({ loop: 'act', input: { n: 1 } });
  const asked = await seqOf(host, sessionId, ({ type }) => type === 'wait.opened');
  const fork = await host.fork(turnId, { at: asked });
  expect((await host.archive.approvals(fork.sessionId)).map((approval) => approval.turnId)).toEqual([fork.turnId]);
  await approveAll(host, fork.sessionId, false);
  expect(await host.resume(fork.turnId)).toMatchObject({ status: 'error', error: { code: 'APPROVAL_DENIED' } });
  expect(await host.archive.approvals(sessionId), 'the answer reached the original').toHaveLength(1);
  await approveAll(host, sessionId);
  expect((await host.resume(turnId)).status).toBe('ok');
  expect(performed).toHaveLength(1);
});

verifies('fork.copy', 'a signal that was sent to the turn before the entry is received by the fork', async () => {
  const wait = defineLoop({
    id: 'wait',
    input: true,
    output: true,
    run: async (_, scope) => [await scope.wait('first'), await scope.wait('second')],
  });
  const host = hostOf([wait]);
  const { sessionId, turnId } = await host.run({ loop: 'wait', input: {} });
  await host.signal({ turnId, name: 'first', payload: 1, id: 'a' });
  const at = await seqOf(host, sessionId, ({ type }) => type === 'signal.received');
  const fork = await host.fork(turnId, { at });
  expect((await host.resume(fork.turnId)).status).toBe('paused');
  expect(await host.signal({ turnId: fork.turnId, name: 'first', payload: 1, id: 'a' })).toBe(false);
  await host.signal({ turnId: fork.turnId, name: 'second', payload: 2 });
  expect(outputOf(await host.resume(fork.turnId))).toEqual([1, 2]);
  expect((await host.archive.status(turnId))[0]?.status).toBe('paused');
});

verifies('fork.copy', 'a body that passes on its own key continues in a fork', async () => {
  const { act } = recorder();
  const keys = defineLoop({
    id: 'keys',
    input: true,
    output: true,
    run: async (_, scope) => {
      const first = await scope.effect('first', () => scope.key, { safety: 'idempotent', input: scope.key });
      await scope.wait('go');
      return first === scope.key;
    },
  });
  const host = hostOf([keys, tool('act', 'builtin:act')], { tools: { act } });
  const { sessionId, turnId } = await host.run({ loop: 'keys', input: {} });
  const fork = await host.fork(turnId, { at: await seqOf(host, sessionId, ({ type }) => type === 'wait.opened') });
  await host.signal({ turnId: fork.turnId, name: 'go' });
  expect(outputOf(await host.resume(fork.turnId))).toBe(true);
});

verifies('fork.copy', 'an agent continues with the conversation of the earlier turns of its session', async () => {
  const model = replyProvider([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  const host = hostOf([agentDef('helper')], { providers: [model] });
  const run = (text: string) => host.run({ loop: 'helper', input: { prompt: text }, sessionId: 'ada' });
  await run('First?');
  const { turnId } = await run('Second?');
  const at = await seqOf(host, 'ada', ({ key, type }) => key === turnId && type === 'call.started');
  const fork = await host.fork(turnId, { at });
  expect((await host.resume(fork.turnId)).status).toBe('ok');
  const sent = JSON.stringify(model.requests.at(-1)?.prompt);
  for (const text of ['First?', 'one', 'Second?']) expect(sent).toContain(text);
  expect(sent).not.toContain('two');
});

verifies(
  'fork.copy',
  'another turn of the session that is open at the entry does not continue in the fork',
  async () => {
    const { performed, act } = recorder();
    const host = hostOf([tool('act', 'builtin:act', ASK)], { tools: { act } });
    const run = (n: number) => host.run({ loop: 'act', input: { n }, sessionId: 'ada' });
    const [first, second] = [await run(1), await run(2)];
    const at = (await host.archive.entries('ada')).length - 1;
    const fork = await host.fork(second.turnId, { at });
    for (const sessionId of ['ada', fork.sessionId]) await approveAll(host, sessionId);
    const statuses = await host.archive.turns(fork.sessionId);
    expect(statuses.map(({ status }) => status)).toEqual(['cancelled', expect.not.stringMatching('cancelled')]);
    await host.work({ once: true });
    expect(performed.filter((input) => JSON.stringify(input) === '{"n":1}')).toHaveLength(1);
    expect(performed.filter((input) => JSON.stringify(input) === '{"n":2}')).toHaveLength(2);
    expect((await host.archive.status(first.turnId))[0]?.status).toBe('ok');
  },
);

verifies(
  'fork.effects',
  'an entry that leaves an effect without its end is refused, with the nearest that works',
  async () => {
    const { performed, act } = recorder();
    const steps = [1, 2].map(() => ({ loopId: 'act', inputMapping: '$.input' }));
    const host = hostOf([tool('act', 'builtin:act'), composite('both', steps)], { tools: { act } });
    const { sessionId, turnId } = await host.run({ loop: 'both', input: { n: 1 } });
    const entries = await host.archive.entries(sessionId);
    const points = forkPointsOf(turnId, entries);
    expect(points).toEqual([1, 3, 5]);
    for (const [at, nearest, reason] of [
      [0, 1, 'open from entry 1 to 5'],
      [2, 1, 'its end is not recorded'],
      [4, 3, 'its end is not recorded'],
      [6, 5, 'open from entry 1 to 5'],
      [99, 5, 'open from entry 1 to 5'],
    ] as const) {
      const message = expect.stringContaining(reason);
      await expect(host.fork(turnId, { at })).rejects.toMatchObject({
        code: 'FORK_REFUSED',
        message,
        data: { nearest },
      });
    }
    const before = performed.length;
    for (const at of points) await host.resume((await host.fork(turnId, { at })).turnId);
    expect(performed.length - before).toBe(2 + 1 + 0);
  },
);

verifies(
  'fork.effects',
  'a failed turn can be forked before its failure, and after it only once it is retried',
  async () => {
    let fails = true;
    const host = hostOf([tool('act', 'builtin:act'), composite('one', [{ loopId: 'act', inputMapping: '$.input' }])], {
      tools: {
        act: (input) => {
          if (fails) throw new Error('down');
          return input;
        },
      },
    });
    const { sessionId, turnId } = await host.run({ loop: 'one', input: { n: 1 } });
    const failedAt = (await host.archive.entries(sessionId)).length - 1;
    await expect(host.fork(turnId, { at: failedAt })).rejects.toMatchObject({ code: 'FORK_REFUSED' });
    fails = false;
    const fork = await host.fork(turnId, { at: 1 });
    expect((await host.resume(fork.turnId)).status).toBe('ok');
    expect((await host.retry(turnId)).status).toBe('ok');
    const again = await host.fork(turnId, { at: failedAt + 1 });
    expect((await host.resume(again.turnId)).status).toBe('ok');
  },
);

verifies('fork.copy', 'large values and the pinned definitions are part of the copy', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-fork-'));
  const store = await openSqlite(join(directory, 'rondo.db'));
  try {
    const text = 'long '.repeat(5000);
    const provider = textProvider([text, 'short', 'short again']);
    const steps = [1, 2].map(() => ({ loopId: 'ask', inputMapping: '$.input' }));
    const ask = prompt('ask', 'Hello', { backend: { id: 'replies' } });
    const clock = new ManualClock(1_000_000);
    const host = hostOf([ask, composite('both', steps)], { store, providers: [provider], clock });
    const { sessionId, turnId } = await host.run({ loop: 'both', input: {} });
    const at = await seqOf(host, sessionId, ({ key, type }) => key === `${turnId}/0` && type === 'call.completed');
    const fork = await host.fork(turnId, { at });
    // The definitions have changed: the fork continues with those that the turn started with.
    const changed = hostOf([composite('both', steps.slice(1))], { store, providers: [provider], clock, seed: 9 });
    await store.journal.remove(sessionId);
    expect(outputOf(await changed.resume(fork.turnId))).toEqual({ text: 'short again' });
    const calls = await changed.archive.calls(fork.turnId);
    expect(JSON.stringify(calls)).toContain(text.trim());
    expect(await changed.replay(fork.turnId)).toMatchObject({ matches: true });
  } finally {
    await store.close();
    rmSync(directory, { recursive: true });
  }
});

verifies('fork.copy', 'a fork can be forked', async () => {
  const { performed, act } = recorder();
  const host = hostOf([tool('act', 'builtin:act', ASK)], { tools: { act } });
  const { sessionId, turnId } = await host.run({ loop: 'act', input: {} });
  const at = (await host.archive.entries(sessionId)).length - 1;
  const fork = await host.fork(turnId, { at });
  const second = await host.fork(fork.turnId, { at: at + 1 });
  const origins = (await host.archive.entries(second.sessionId)).filter(({ type }) => type === SESSION_FORKED);
  expect(origins).toMatchObject([{ value: { session: fork.sessionId, turn: fork.turnId, at: at + 1 } }]);
  await approveAll(host, second.sessionId);
  expect((await host.resume(second.turnId)).status).toBe('ok');
  expect(performed).toHaveLength(1);
});

verifies(
  'fork.reads',
  'a fork, a replay and a comparison perform nothing and need no model, tool or loop',
  async () => {
    const { performed, act } = recorder();
    const model = replyProvider([{ calls: [['act', { n: 1 }]] }, { text: 'done' }]);
    const store = memoryStore();
    const host = hostOf([agentDef('helper', { tools: ['act'] }), tool('act', 'builtin:act')], {
      store,
      tools: { act },
      providers: [model],
    });
    const { sessionId, turnId } = await host.run({ loop: 'helper', input: { prompt: 'x' } });
    const counts = [performed.length, model.requests.length];
    const points = forkPointsOf(turnId, await host.archive.entries(sessionId));
    const bare = hostOf([], { store, seed: 5 });
    for (const at of points) await bare.fork(turnId, { at });
    await host.replay(turnId);
    await host.archive.trace(turnId);
    expect([performed.length, model.requests.length], 'something was performed').toEqual(counts);
    expect(points.length).toBeGreaterThan(3);
  },
);

verifies(
  'fork.copy',
  'an unknown turn and an invalid entry are refused, and nothing is left in the store',
  async () => {
    const store = memoryStore();
    const host = hostOf([tool('echo')], { store });
    const { turnId } = await host.run({ loop: 'echo', input: {} });
    await expect(host.fork('none.1', { at: 1 })).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
    await expect(host.fork('none', { at: 1 })).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
    for (const at of [-1, 1.5, Number.NaN, '1'])
      await expect(host.fork(turnId, { at } as never)).rejects.toThrow(TypeError);
    await expect(host.fork(turnId, { at: 1, by: 'ada' } as never)).rejects.toThrow(TypeError);
    await expect(host.fork(turnId, { at: 1 })).rejects.toMatchObject({ code: 'FORK_REFUSED' });
    expect(await store.journal.list()).toHaveLength(1);
    const { journal } = store;
    const full: Store = {
      ...store,
      journal: {
        claim: (session) => journal.claim(session),
        append: () => Promise.reject(new Error('full')),
        read: (session, from) => journal.read(session, from),
        list: () => journal.list(),
        remove: (session) => journal.remove(session),
      },
    };
    const slow = defineLoop({ id: 'wait', input: true, output: true, run: (_, scope) => scope.wait('go') });
    const waiting = await hostOf([slow], { store, seed: 3 }).run({ loop: 'wait', input: {} });
    await expect(hostOf([], { store: full, seed: 4 }).fork(waiting.turnId, { at: 1 })).rejects.toThrow('full');
    expect(await store.journal.list()).toHaveLength(2);
  },
);

verifies('fork.effects', 'an agent with tools and approvals ends the same from every entry', async () => {
  const { performed, act } = recorder();
  const replies = [{ calls: [['act', { n: 1 }]] }, { calls: [['act', { n: 2 }]] }, { text: 'done' }] as const;
  const model = replyProvider(replies);
  const definitions = [agentDef('helper', { tools: ['act'], approvals: { act: 'ask' } }), tool('act', 'builtin:act')];
  const host = hostOf(definitions, { tools: { act }, providers: [model] });
  const finish = async (sessionId: string, turnId: string): Promise<unknown> => {
    for (let round = 0; round < 5; round++) {
      const result = await host.resume(turnId);
      if (result.status !== 'paused') return outputOf(result);
      await approveAll(host, sessionId);
    }
    return undefined;
  };
  const { sessionId, turnId } = await host.run({ loop: 'helper', input: { prompt: 'x' } });
  expect(await finish(sessionId, turnId)).toEqual({ text: 'done' });
  const entries = await host.archive.entries(sessionId);
  const countEnds = (kind: string, last: number): number => {
    const expanded = expandLeaves(entries);
    const keys = new Set(
      expanded.filter((e) => e.type === 'effect.requested' && e.kind === kind).map(({ key }) => key),
    );
    return expanded.filter(({ type, key, seq }) => type === 'effect.returned' && keys.has(key) && seq <= last).length;
  };
  for (const at of forkPointsOf(turnId, entries)) {
    const before = [model.requests.length, performed.length] as const;
    const fork = await host.fork(turnId, { at });
    expect(await finish(fork.sessionId, fork.turnId), `entry ${at}`).toEqual({ text: 'done' });
    const counts = [model.requests.length - before[0], performed.length - before[1]];
    expect(counts, `entry ${at}: other effects`).toEqual([3 - countEnds('model', at), 2 - countEnds('tool', at)]);
  }
});
