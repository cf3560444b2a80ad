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
import {
  ASK,
  answerOutcome,
  gate,
  ofType,
  onlyPending,
  RecordedActions,
  shownIds,
  ticks,
} from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const ARGUMENTS = { prompt: 'go', amount: 5, to: ['ada', { name: 'bob\u202e' }], none: null, text: 'x'.repeat(6000) };

/** A tool at this depth, with alternating composites and agents above it. */
function tower(depth: number): {
  readonly definitions: object[];
  readonly providers: ModelProvider[];
  readonly path: string[];
} {
  const definitions: object[] = [tool('pay', 'builtin:act', ASK)];
  const providers: ModelProvider[] = [];
  const path = ['pay'];
  for (let level = 1; level < depth; level++) {
    const [child = ''] = path;
    const id = `level-${level}`;
    if (level % 2 === 1) definitions.push(composite(id, [{ loopId: child, inputMapping: '$.input' }]));
    else {
      const backend = { id: `b${level}` };
      definitions.push(agentDef(id, { backend, tools: [child] }, { inputSchema: true }));
      providers.push(replyProvider([{ calls: [[child, ARGUMENTS]] }, { text: 'done' }], backend.id));
    }
    path.unshift(id);
  }
  return { definitions, providers, path };
}

function towerHost(depth: number, store: Store, actions: RecordedActions, seed: number): Host {
  const { definitions, providers } = tower(depth);
  return hostOf(definitions, { store, providers, tools: { act: actions.act }, seed });
}

verifies('approval.depth', 'an approval shows the tool that will run, at any depth', async () => {
  for (let depth = 1; depth <= 12; depth++) {
    const store = memoryStore();
    const actions = new RecordedActions();
    const { path } = tower(depth);
    const host = towerHost(depth, store, actions, 1);
    const { turnId, status } = await host.run({ loop: path[0] ?? '', input: ARGUMENTS, sessionId: 's' });
    expect([status, actions.count]).toEqual(['paused', 0]);
    const other = towerHost(depth, store, actions, 2);
    const approval = await onlyPending(other);
    expect(approval).toMatchObject({ path, tool: 'pay', arguments: ARGUMENTS, turnId, sessionId: 's' });
    expect(approval.argumentsDigest).toBe(digestOfText(canonicalJson(ARGUMENTS)));
    expect(approval.callId.startsWith(turnId)).toBe(true);
    const { id, callId, argumentsDigest } = approval;
    for (const by of path)
      expect(await answerOutcome(other, { id, approved: true, by })).toMatch(/agent may not answer/);
    const answer = { id, approved: true, by: 'ada', sessionId: 's', callId, tool: 'pay', argumentsDigest };
    expect(await answerOutcome(other, answer)).toBe('accepted');
    expect(await towerHost(depth, store, actions, 3).resume(turnId)).toMatchObject({ status: 'ok' });
    expect(actions.performed).toEqual([ARGUMENTS]);
    expect(await other.replay(turnId)).toMatchObject({ matches: true });
  }
});

verifies('approval.depth', 'an approval pending in a file can be answered by another process', async () => {
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
  const actions = new RecordedActions();
  const { path } = tower(6);
  const turnId = await inProcess(async (store) => {
    const request = { loop: path[0] ?? '', input: ARGUMENTS, approvers: ['ada'], principal: 'eve' };
    return (await towerHost(6, store, actions, 1).run(request)).turnId;
  });
  const id = await inProcess(async (store) => {
    const host = towerHost(6, store, actions, 2);
    const approval = await onlyPending(host);
    expect(approval).toMatchObject({ path, arguments: ARGUMENTS, approvers: ['ada'], principal: 'eve' });
    expect(await answerOutcome(host, { id: approval.id, approved: true, by: 'mallory' })).toMatch(/may not answer/);
    expect(await answerOutcome(host, { id: approval.id, approved: true, by: 'ada' })).toBe('accepted');
    return approval.id;
  });
  await inProcess(async (store) => {
    const host = towerHost(6, store, actions, 3);
    expect(await answerOutcome(host, { id, approved: false, by: 'ada' })).toBe('it was answered before');
    expect(actions.count).toBe(0);
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
  });
  expect(actions.performed).toEqual([ARGUMENTS]);
});

verifies('approval.depth', 'the list of approvers also applies where code calls the tool', async () => {
  const actions = new RecordedActions();
  const act = (input: unknown) => actions.act(input as never, undefined as never) as never;
  const inner = defineLoop({ id: 'pay', input: true, output: true, policy: { approval: 'ask' }, tool: act });
  const body = (input: unknown, scope: Scope) => scope.call(inner, input as never) as never;
  const outer = defineLoop({ id: 'root', input: true, output: true, run: body });
  const host = hostOf([outer]);
  const { turnId } = await host.run({ loop: 'root', input: {}, approvers: ['ada'], principal: 'eve' });
  const approval = await onlyPending(host);
  expect(approval).toMatchObject({ path: ['root', 'pay'], approvers: ['ada'], principal: 'eve' });
  expect(await answerOutcome(host, { id: approval.id, approved: true, by: 'mallory' })).toMatch(/may not answer/);
  await host.resume(turnId);
  expect(actions.count).toBe(0);
});

verifies('approval.depth', 'an approval where code calls the tool expires', async () => {
  const clock = new ManualClock(1_000_000);
  const inner = defineLoop({ id: 'pay', input: true, output: true, policy: { approval: 'ask' }, tool: () => 1 });
  const body = (input: unknown, scope: Scope) => scope.call(inner, input as never) as never;
  const host = hostOf([defineLoop({ id: 'root', input: true, output: true, run: body })], { clock });
  const { turnId } = await host.run({ loop: 'root', input: {} });
  await clock.advance(31 * 86_400_000);
  expect(await host.resume(turnId)).toMatchObject({ status: 'error', error: { code: 'APPROVAL_DENIED' } });
});

verifies('approval.depth', 'an approval is listed while another tool of the reply still runs', async () => {
  for (const first of ['pay', 'hold']) {
    const store = memoryStore();
    const blocker = gate();
    const actions = new RecordedActions();
    const toolCalls = [['pay', { amount: 5 }] as const, ['hold', {}] as const];
    const calls = first === 'pay' ? toolCalls : toolCalls.reverse();
    const definitions = [
      tool('pay', 'builtin:act', ASK),
      tool('hold', 'builtin:hold'),
      agentDef('boss', { tools: ['pay', 'hold'] }),
    ];
    const tools = { act: actions.act, hold: () => blocker.passed };
    const host = hostOf(definitions, { store, tools, providers: [replyProvider([{ calls }, { text: 'done' }])] });
    const envelopes: EventEnvelope[] = [];
    const options = { onEnvelope: (envelope: EventEnvelope) => void envelopes.push(envelope) };
    const running = host.run({ loop: 'boss', input: { prompt: 'go' }, sessionId: 's' }, options);
    await ticks();
    expect(shownIds(envelopes)).toHaveLength(1);
    const listedIds = (await host.archive.approvals('s')).map(({ id }) => id);
    blocker.open();
    await running;
    expect(listedIds).toEqual(shownIds(envelopes));
  }
});

verifies(
  'approval.bound',
  'an approval of a branch that lost its race is refused, and its tool does not run',
  async () => {
    const clock = new ManualClock(1_000_000);
    const actions = new RecordedActions();
    const act = (input: unknown) => actions.act(input as never, undefined as never) as never;
    const inner = defineLoop({ id: 'pay', input: true, output: true, policy: { approval: 'ask' }, tool: act });
    const body = async (input: unknown, scope: Scope) => {
      const paying = (one: Scope): Promise<unknown> => one.call(inner, input as never);
      await scope.race([paying, (other) => other.sleep(1000)]);
      return scope.wait('later') as never;
    };
    const host = hostOf([defineLoop({ id: 'root', input: true, output: true, run: body })], { clock });
    const running = host.run({ loop: 'root', input: {}, sessionId: 's' });
    await ticks();
    await clock.advance(1000);
    const { turnId, status } = await running;
    expect([status, await host.archive.approvals()]).toEqual(['paused', []]);
    const [request] = ofType(await host.archive.entries('s'), 'rondo.approval.requested');
    const id = ownText(request?.value, 'id');
    expect(await answerOutcome(host, { id, approved: true, by: 'ada' })).toBe('its turn no longer waits for it');
    await host.resume(turnId);
    expect(actions.count).toBe(0);
  },
);
