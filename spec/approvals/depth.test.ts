import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { openSqlite } from '../../src/adapters/sqlite/index.js';
import { ownText } from '../../src/base/own-property.js';
import type { Host } from '../../src/host/host.js';
import { digestOfText } from '../../src/journal/record.js';
import type { Store } from '../../src/journal/store.js';
import { canonicalJson } from '../../src/json/canonical.js';
import { defineLoop } from '../../src/loops/define.js';
import type { ModelProvider } from '../../src/loops/model.js';
import type { Scope } from '../../src/protocol/body.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { ASK, Deeds, gate, ofType, onlyPending, shownIds, ticks, told } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const ARGUMENTS = { prompt: 'go', amount: 5, to: ['ada', { name: 'bob\u202e' }], none: null, text: 'x'.repeat(6000) };

/** A tool that lies this deep: composites and agents in turn above it, every other of them. */
function tower(depth: number): {
  readonly definitions: object[];
  readonly backends: ModelProvider[];
  readonly path: string[];
} {
  const definitions: object[] = [tool('pay', 'builtin:act', ASK)];
  const backends: ModelProvider[] = [];
  const path = ['pay'];
  for (let level = 1; level < depth; level++) {
    const [child = ''] = path;
    const id = `level-${level}`;
    if (level % 2 === 1) definitions.push(composite(id, [{ loopId: child, inputMapping: '$.input' }]));
    else {
      const backend = { id: `b${level}` };
      definitions.push(agentDef(id, { backend, tools: [child] }, { inputSchema: true }));
      backends.push(telling([{ calls: [[child, ARGUMENTS]] }, { text: 'done' }], backend.id));
    }
    path.unshift(id);
  }
  return { definitions, backends, path };
}

function towerHost(depth: number, store: Store, deeds: Deeds, seed: number): Host {
  const { definitions, backends } = tower(depth);
  return hostOf(definitions, { store, backends, tools: { act: deeds.act }, seed });
}

verifies(
  'approval.depth',
  'a person is asked about something else than the tool that will run, further down',
  async () => {
    for (let depth = 1; depth <= 12; depth++) {
      const store = memoryStore();
      const deeds = new Deeds();
      const { path } = tower(depth);
      const host = towerHost(depth, store, deeds, 1);
      const { turnId, status } = await host.run({ loop: path[0] ?? '', input: ARGUMENTS, sessionId: 's' });
      expect([status, deeds.count]).toEqual(['paused', 0]);
      const other = towerHost(depth, store, deeds, 2);
      const approval = await onlyPending(other);
      expect(approval).toMatchObject({ path, tool: 'pay', arguments: ARGUMENTS, turnId, sessionId: 's' });
      expect(approval.argumentsDigest).toBe(digestOfText(canonicalJson(ARGUMENTS)));
      expect(approval.callId.startsWith(turnId)).toBe(true);
      const { id, callId, argumentsDigest } = approval;
      for (const by of path) expect(await told(other, { id, approved: true, by })).toMatch(/agent may not answer/);
      const answer = { id, approved: true, by: 'ada', sessionId: 's', callId, tool: 'pay', argumentsDigest };
      expect(await told(other, answer)).toBe('taken');
      expect(await towerHost(depth, store, deeds, 3).resume(turnId)).toMatchObject({ status: 'ok' });
      expect(deeds.done).toEqual([ARGUMENTS]);
      expect(await other.replay(turnId)).toMatchObject({ matches: true });
    }
  },
);

verifies('approval.depth', 'an approval that waits in a file cannot be answered by the next process', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-depth-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const clock = new ManualClock(1_000_000);
  const inProcess = async <T>(work: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openSqlite(join(directory, 'store.db'), { now: () => clock.now() });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  const deeds = new Deeds();
  const { path } = tower(6);
  const turnId = await inProcess(async (store) => {
    const request = { loop: path[0] ?? '', input: ARGUMENTS, approvers: ['ada'], principal: 'eve' };
    return (await towerHost(6, store, deeds, 1).run(request)).turnId;
  });
  const id = await inProcess(async (store) => {
    const host = towerHost(6, store, deeds, 2);
    const approval = await onlyPending(host);
    expect(approval).toMatchObject({ path, arguments: ARGUMENTS, approvers: ['ada'], principal: 'eve' });
    expect(await told(host, { id: approval.id, approved: true, by: 'mallory' })).toMatch(/may not answer/);
    expect(await told(host, { id: approval.id, approved: true, by: 'ada' })).toBe('taken');
    return approval.id;
  });
  await inProcess(async (store) => {
    const host = towerHost(6, store, deeds, 3);
    expect(await told(host, { id, approved: false, by: 'ada' })).toBe('it was answered before');
    expect(deeds.count).toBe(0);
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
  });
  expect(deeds.done).toEqual([ARGUMENTS]);
});

verifies('approval.depth', 'who may answer is forgotten where code calls the tool', async () => {
  const deeds = new Deeds();
  const act = (input: unknown) => deeds.act(input as never, undefined as never) as never;
  const inner = defineLoop({ id: 'pay', input: true, output: true, policy: { approval: 'ask' }, tool: act });
  const body = (input: unknown, scope: Scope) => scope.call(inner, input as never) as never;
  const outer = defineLoop({ id: 'root', input: true, output: true, body });
  const host = hostOf([outer]);
  const { turnId } = await host.run({ loop: 'root', input: {}, approvers: ['ada'], principal: 'eve' });
  const approval = await onlyPending(host);
  expect(approval).toMatchObject({ path: ['root', 'pay'], approvers: ['ada'], principal: 'eve' });
  expect(await told(host, { id: approval.id, approved: true, by: 'mallory' })).toMatch(/may not answer/);
  await host.resume(turnId);
  expect(deeds.count).toBe(0);
});

verifies('approval.depth', 'an approval where code calls the tool waits for ever', async () => {
  const clock = new ManualClock(1_000_000);
  const inner = defineLoop({ id: 'pay', input: true, output: true, policy: { approval: 'ask' }, tool: () => 1 });
  const body = (input: unknown, scope: Scope) => scope.call(inner, input as never) as never;
  const host = hostOf([defineLoop({ id: 'root', input: true, output: true, body })], { clock });
  const { turnId } = await host.run({ loop: 'root', input: {} });
  await clock.advance(31 * 86_400_000);
  expect(await host.resume(turnId)).toMatchObject({ status: 'error', error: { code: 'APPROVAL_DENIED' } });
});

verifies('approval.depth', 'an approval is not to be found while another tool of the reply still works', async () => {
  for (const first of ['pay', 'hold']) {
    const store = memoryStore();
    const held = gate();
    const deeds = new Deeds();
    const wanted = [['pay', { amount: 5 }] as const, ['hold', {}] as const];
    const calls = first === 'pay' ? wanted : wanted.reverse();
    const definitions = [
      tool('pay', 'builtin:act', ASK),
      tool('hold', 'builtin:hold'),
      agentDef('boss', { tools: ['pay', 'hold'] }),
    ];
    const tools = { act: deeds.act, hold: () => held.passed };
    const host = hostOf(definitions, { store, tools, backends: [telling([{ calls }, { text: 'done' }])] });
    const envelopes: EventEnvelope[] = [];
    const options = { onEnvelope: (envelope: EventEnvelope) => void envelopes.push(envelope) };
    const running = host.run({ loop: 'boss', input: { prompt: 'go' }, sessionId: 's' }, options);
    await ticks();
    expect(shownIds(envelopes)).toHaveLength(1);
    const found = (await host.archive.approvals('s')).map(({ id }) => id);
    held.open();
    await running;
    expect(found).toEqual(shownIds(envelopes));
  }
});

verifies('approval.bound', 'an approval of a branch that lost its race is answered, and its tool runs', async () => {
  const clock = new ManualClock(1_000_000);
  const deeds = new Deeds();
  const act = (input: unknown) => deeds.act(input as never, undefined as never) as never;
  const inner = defineLoop({ id: 'pay', input: true, output: true, policy: { approval: 'ask' }, tool: act });
  const body = async (input: unknown, scope: Scope) => {
    const paying = (one: Scope): Promise<unknown> => one.call(inner, input as never);
    await scope.race([paying, (other) => other.sleep(1000)]);
    return scope.wait('later') as never;
  };
  const host = hostOf([defineLoop({ id: 'root', input: true, output: true, body })], { clock });
  const running = host.run({ loop: 'root', input: {}, sessionId: 's' });
  await ticks();
  await clock.advance(1000);
  const { turnId, status } = await running;
  expect([status, await host.archive.approvals()]).toEqual(['paused', []]);
  const [asked] = ofType(await host.archive.entries('s'), 'rondo.approval.requested');
  const id = ownText(asked?.value, 'id');
  expect(await told(host, { id, approved: true, by: 'ada' })).toBe('its turn no longer waits for it');
  await host.resume(turnId);
  expect(deeds.count).toBe(0);
});
