import { expect } from 'vitest';
import { z } from 'zod';
import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Host } from '../../src/host/host.js';
import { defineLoop } from '../../src/loops/define.js';
import { defineAgent } from '../../src/loops/define-agent.js';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import type { ToolCallContext } from '../../src/loops/tool-implementation.js';
import { loopFromTool } from '../../src/loops/tool-loop.js';
import type { Json } from '../../src/protocol/json.js';
import { loopsTool } from '../../src/protocol/tool.js';
import { ASK, onlyPending, told } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, modelOf, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';
import { asks, CHANGES, changed, PAY } from './changes.js';

const INPUT = { amount: 5, to: 'ada' };

/** What was done and by whom. */
class Ledger {
  readonly done: { readonly by: string; readonly input: Json; readonly config: unknown }[] = [];
  private readonly note = (by: string) => (input: Json, call: ToolCallContext) => {
    this.done.push({ by, input, config: call.config });
    return { paid: 5 };
  };
  readonly tools = { act: this.note('act'), evil: this.note('evil') };
}

verifies('approval.bound', 'what was approved is swapped before it runs, by another definition of its id', async () => {
  expect(CHANGES.length).toBeGreaterThanOrEqual(40);
  for (const change of CHANGES) {
    const where = change.join(' ');
    const store = memoryStore();
    const ledger = new Ledger();
    const wrap = composite('wrap', [{ loopId: 'pay', inputMapping: '$.input' }]);
    const before = hostOf([PAY, wrap], { store, tools: ledger.tools, seed: 1 });
    const after = hostOf([changed(change), wrap], { store, tools: ledger.tools, seed: 2 });
    const { turnId } = await before.run({ loop: 'wrap', input: INPUT });
    const { id, definitionDigest } = await onlyPending(after);
    expect(await told(after, { id, approved: true, by: 'ada' }), where).toBe('taken');
    expect(await after.resume(turnId), where).toMatchObject({ status: 'ok', output: { paid: 5 } });
    expect(ledger.done, where).toEqual([{ by: 'act', input: INPUT, config: PAY.tool?.config }]);
    if (!asks(changed(change))) continue;
    await after.run({ loop: 'wrap', input: { ...INPUT, memo: 'x' } });
    const [again] = await after.archive.approvals();
    // A change that the arguments do not fit is refused before anybody is asked.
    if (again !== undefined) expect(again.definitionDigest, where).not.toBe(definitionDigest);
    expect(ledger.done, where).toHaveLength(1);
  }
});

verifies('approval.standing', 'a grant holds for a definition that it was not given for', async () => {
  for (const change of CHANGES.filter((one) => asks(changed(one)))) {
    const where = change.join(' ');
    const store = memoryStore();
    const ledger = new Ledger();
    const before = hostOf([PAY], { store, tools: ledger.tools, seed: 1 });
    const after = hostOf([changed(change)], { store, tools: ledger.tools, seed: 2 });
    const { turnId } = await before.run({ loop: 'pay', input: INPUT, sessionId: 's' });
    const { id } = await onlyPending(before);
    await before.answer({ id, approved: true, by: 'ada', standing: { const: INPUT } });
    await before.resume(turnId);
    const same = await before.run({ loop: 'pay', input: INPUT, sessionId: 's' });
    expect([same.status, ledger.done.length], where).toEqual(['ok', 2]);
    const other = await after.run({ loop: 'pay', input: INPUT, sessionId: 's' });
    expect([other.status, ledger.done.length], where).not.toContain('ok');
    expect(ledger.done, where).toHaveLength(2);
  }
});

/** Asks with one state of the code, and answers and goes on with the other. */
async function swapped(before: (store: ReturnType<typeof memoryStore>) => Host, after: typeof before, loop: string) {
  const store = memoryStore();
  const { turnId, status } = await before(store).run({ loop, input: { prompt: 'pay' } });
  const host = after(store);
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: true, by: 'ada' });
  const end = await host.resume(turnId).then(
    ({ status, error }) => error?.code ?? status,
    (thrown: unknown) => (thrown as { readonly code?: string }).code ?? String(thrown),
  );
  return { begun: status, end, left: (await host.archive.approvals()).map((one) => one.id).includes(id) };
}

const REFUSED = ['TOOL_NOT_ADMITTED', 'REPLAY_MISMATCH', 'LOOP_NOT_FOUND', 'DEFINITION_INVALID'];

let ran = 0;
const first = () => ++ran;
const second = () => {
  ran += 1;
  return 'something else';
};

const CODE = {
  id: 'pay',
  name: 'Pay',
  description: 'Pays.',
  input: { type: 'object' },
  output: true,
  policy: { approval: 'ask' },
  safety: 'idempotent',
  metadata: { owner: 'books' },
} as const;

const hostWith = (loop: DefinedLoop) => (store: ReturnType<typeof memoryStore>) =>
  hostOf([loop], { store, seed: ran + 1 });

verifies('approval.bound', 'code that was changed after it was approved runs', async () => {
  const changes: readonly object[] = [
    { tool: second },
    { description: 'Reads.' },
    { name: 'Give' },
    { input: { type: 'object', properties: { to: { type: 'string' } } } },
    { output: { type: ['string', 'number'] } },
    { safety: 'pure' },
    { safety: 'once' },
    { policy: { approval: 'ask', timeoutMs: 5 } },
    { policy: { approval: 'always_allow' } },
    { policy: { approval: 'blocked' } },
    { policy: {} },
    { metadata: { owner: 'mallory' } },
    { version: '1.0.1' },
  ];
  const missed: string[] = [];
  for (const change of changes) {
    ran = 0;
    const make = (more: object): DefinedLoop => defineLoop({ ...CODE, tool: first, ...more } as never);
    const { begun, end } = await swapped(hostWith(make({})), hostWith(make(change)), 'pay');
    expect(begun).toBe('paused');
    if (ran > 0 || !REFUSED.includes(end)) missed.push(`${JSON.stringify(change)} ended with ${end}`);
  }
  expect(missed).toEqual([]);
});

verifies('approval.bound', 'a protocol tool that was changed after it was approved runs', async () => {
  const base = { name: 'pay', inputSchema: z.object({}).loose(), description: 'Pays.', safety: 'idempotent' } as const;
  const changes: readonly object[] = [
    { execute: second },
    { description: 'Reads.' },
    { readOnly: true },
    { safety: 'pure' },
    { inputSchema: z.object({ to: z.string().optional() }).loose() },
    { requestApproval: () => 'Read a file?' },
    { requestApproval: () => null },
  ];
  const missed: string[] = [];
  for (const change of changes) {
    ran = 0;
    const asked = { ...base, execute: first, requestApproval: () => 'Pay?' };
    const make = (more: object) => loopFromTool(loopsTool({ ...asked, ...more }).withApproval('ask'));
    const { begun, end } = await swapped(hostWith(make({})), hostWith(make(change)), 'pay');
    expect(begun).toBe('paused');
    if (ran > 0 || !REFUSED.includes(end)) missed.push(`${Object.entries(change).join(' ')} ended with ${end}`);
  }
  expect(missed).toEqual([]);
});

verifies('approval.bound', 'two protocol tools of one name and other deeds are taken for the same', () => {
  const make = (execute: () => unknown) => loopsTool({ name: 'pay', inputSchema: z.object({}), execute });
  const host = hostOf([loopFromTool(make(first))]);
  expect(() => host.registry.add(loopFromTool(make(second)))).toThrow(/registered with other content/);
});

/** An agent in JSON whose tool is a body of code. */
function bodyHost(body: () => unknown, more: object = {}) {
  const code = defineLoop({ id: 'job', input: true, output: true, body: body as never, ...more });
  const boss = agentDef('boss', { tools: ['job'], approvals: { job: 'ask' } });
  const backends = [telling([{ calls: [['job', {}]] }, { text: 'done' }])];
  return (store: ReturnType<typeof memoryStore>) => hostOf([code, boss], { store, backends, seed: ran + 1 });
}

verifies('approval.bound', 'a body of code that was changed after it was approved runs', async () => {
  for (const after of [bodyHost(second), bodyHost(first, { description: 'Reads.' }), bodyHost(first, { output: {} })]) {
    ran = 0;
    const { begun } = await swapped(bodyHost(first), after, 'boss');
    expect([begun, ran]).toEqual(['paused', 0]);
  }
});

verifies('approval.bound', 'an agent in code drops its guard while a call waits at it, and the call runs', async () => {
  const make = (more: object) => (store: ReturnType<typeof memoryStore>) => {
    const model = modelOf([{ calls: [['pay', {}]] }, { text: 'done' }]);
    const agent = defineAgent({ id: 'boss', model, tools: ['pay'], ...more });
    return hostOf([agent, tool('pay', 'builtin:act')], { store, tools: { act: first }, seed: ran + 1 });
  };
  for (const more of [
    {},
    { approvals: {} },
    { approvals: { pay: 'always_allow' } },
    { approvals: { pay: 'blocked' } },
  ]) {
    ran = 0;
    const { begun, end } = await swapped(make({ approvals: { pay: 'ask' } }), make(more), 'boss');
    expect([begun, ran], end).toEqual(['paused', 0]);
  }
});

verifies(
  'approval.bound',
  'an approval of code that is gone is nowhere to be seen, or runs something else',
  async () => {
    ran = 0;
    const make = (id: string) => defineLoop({ ...CODE, id, tool: first } as never);
    const { end, left } = await swapped(hostWith(make('pay')), hostWith(make('pay2')), 'pay');
    // It was answered, so it waits no more; the turn stands where it stood.
    expect([end, left, ran]).toEqual(['LOOP_NOT_FOUND', false, 0]);
  },
);

verifies(
  'approval.bound',
  'an approval of a call is good for another call of the tool, or for the same again',
  async () => {
    const done: unknown[] = [];
    const rounds = [5, 6, 5, 5].map((amount) => ({ calls: [['pay', { amount }] as const] }));
    const backends = [telling([...rounds, { text: 'done' }, ...rounds.slice(0, 1), { text: 'done' }])];
    const boss = agentDef('boss', { tools: ['pay'] });
    const act = (input: Json) => done.push(input);
    const host = hostOf([tool('pay', 'builtin:act', ASK), boss], { tools: { act }, backends });
    const ids = new Set<string>();
    let result = await host.run({ loop: 'boss', input: { prompt: 'pay' }, sessionId: 's' });
    for (const [nth, amount] of [5, 6, 5, 5].entries()) {
      expect(result.status).toBe('paused');
      expect(done).toHaveLength(nth);
      const { id, arguments: given } = await onlyPending(host);
      expect([given, ids.has(id)]).toEqual([{ amount }, false]);
      ids.add(id);
      await host.answer({ id, approved: true, by: 'ada' });
      result = await host.resume(result.turnId);
    }
    expect([result.status, done.length]).toEqual(['ok', 4]);
    expect(await host.run({ loop: 'boss', input: { prompt: 'again' }, sessionId: 's' })).toMatchObject({
      status: 'paused',
    });
    expect(done).toHaveLength(4);
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
  },
);
