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
import { ASK, answerOutcome, onlyPending } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, modelOf, replyProvider } from '../support/scripted-agents.js';
import { errorOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';
import { asks, CHANGES, changed, PAY } from './changes.js';

const INPUT = { amount: 5, to: 'ada' };

/** Records which implementation ran, with its arguments and configuration. */
class CallLog {
  readonly calls: { readonly by: string; readonly input: Json; readonly config: unknown }[] = [];
  private readonly record = (by: string) => (input: Json, call: ToolCallContext) => {
    this.calls.push({ by, input, config: call.config });
    return { paid: 5 };
  };
  readonly tools = { act: this.record('act'), evil: this.record('evil') };
}

verifies(
  'approval.bound',
  'an approved call runs the definition that was shown, even if its id is redefined',
  async () => {
    expect(CHANGES.length).toBeGreaterThanOrEqual(40);
    for (const change of CHANGES) {
      const where = change.join(' ');
      const store = memoryStore();
      const log = new CallLog();
      const wrap = composite('wrap', [{ loopId: 'pay', inputMapping: '$.input' }]);
      const before = hostOf([PAY, wrap], { store, tools: log.tools, seed: 1 });
      const after = hostOf([changed(change), wrap], { store, tools: log.tools, seed: 2 });
      const { turnId } = await before.run({ loop: 'wrap', input: INPUT });
      const { id, definitionDigest } = await onlyPending(after);
      expect(await answerOutcome(after, { id, approved: true, by: 'ada' }), where).toBe('accepted');
      expect(await after.resume(turnId), where).toMatchObject({ status: 'ok', output: { paid: 5 } });
      expect(log.calls, where).toEqual([{ by: 'act', input: INPUT, config: PAY.tool?.config }]);
      if (!asks(changed(change))) continue;
      await after.run({ loop: 'wrap', input: { ...INPUT, memo: 'x' } });
      const [again] = await after.archive.approvals();
      // A definition that rejects the arguments fails before an approval is requested.
      if (again !== undefined) expect(again.definitionDigest, where).not.toBe(definitionDigest);
      expect(log.calls, where).toHaveLength(1);
    }
  },
);

verifies('approval.standing', 'a grant applies only to the definition that it was given for', async () => {
  for (const change of CHANGES.filter((one) => asks(changed(one)))) {
    const where = change.join(' ');
    const store = memoryStore();
    const log = new CallLog();
    const before = hostOf([PAY], { store, tools: log.tools, seed: 1 });
    const after = hostOf([changed(change)], { store, tools: log.tools, seed: 2 });
    const { turnId } = await before.run({ loop: 'pay', input: INPUT, sessionId: 's' });
    const { id } = await onlyPending(before);
    await before.answer({ id, approved: true, by: 'ada', standing: { const: INPUT } });
    await before.resume(turnId);
    const same = await before.run({ loop: 'pay', input: INPUT, sessionId: 's' });
    expect([same.status, log.calls.length], where).toEqual(['ok', 2]);
    const other = await after.run({ loop: 'pay', input: INPUT, sessionId: 's' });
    expect([other.status, log.calls.length], where).not.toContain('ok');
    expect(log.calls, where).toHaveLength(2);
  }
});

/** Requests an approval from one host, then answers and resumes on another one with changed code. */
async function changeWhilePending(
  before: (store: ReturnType<typeof memoryStore>) => Host,
  after: typeof before,
  loop: string,
) {
  const store = memoryStore();
  const { turnId, status } = await before(store).run({ loop, input: { prompt: 'pay' } });
  const host = after(store);
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: true, by: 'ada' });
  const end = await endOf(host, turnId);
  const pending = (await host.archive.approvals()).map((one) => one.id);
  return { host, turnId, firstStatus: status, end, isPending: pending.includes(id), again: pending[0] };
}

/** Resumes a turn. Returns its status, or the code of its error. */
const endOf = (host: Host, turnId: string): Promise<string> =>
  host.resume(turnId).then(
    (result) => errorOf(result)?.code ?? result.status,
    (thrown: unknown) => (thrown as { readonly code?: string }).code ?? String(thrown),
  );

/** How a turn ends, or waits, whose call changed after its approval was requested. */
const NOT_RUN = ['paused', 'TOOL_NOT_ADMITTED', 'REPLAY_MISMATCH', 'LOOP_NOT_FOUND', 'DEFINITION_INVALID'];

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

/** Changes a pending call in each way, and expects that it runs only after another approval, if at all. */
async function expectAskedAgain(make: (change: object) => DefinedLoop, changes: readonly object[]): Promise<void> {
  const undetected: string[] = [];
  for (const change of changes) {
    ran = 0;
    const where = Object.entries(change).join(' ');
    const result = await changeWhilePending(hostWith(make({})), hostWith(make(change)), 'pay');
    expect(result.firstStatus, where).toBe('paused');
    if (ran > 0 || !NOT_RUN.includes(result.end)) undetected.push(`${where} ended with ${result.end}`);
    if (result.end !== 'paused') continue;
    expect([result.isPending, result.again], where).toEqual([false, expect.any(String)]);
    await result.host.answer({ id: result.again ?? '', approved: true, by: 'ada' });
    expect([await endOf(result.host, result.turnId), ran], where).toEqual(['ok', 1]);
    expect(await result.host.replay(result.turnId), where).toMatchObject({ matches: true });
  }
  expect(undetected, 'changed code ran under an old approval').toEqual([]);
}

verifies('approval.again', 'a call whose definition in code changed runs only after another approval', async () => {
  const make = (more: object): DefinedLoop => defineLoop({ ...CODE, tool: first, ...more } as never);
  await expectAskedAgain(make, [
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
  ]);
});

const PROTOCOL_TOOL = {
  name: 'pay',
  inputSchema: z.object({}).loose(),
  description: 'Pays.',
  safety: 'idempotent',
  execute: first,
  requestApproval: () => 'Pay?',
} as const;
const payTool = (more: object) => loopFromTool(loopsTool({ ...PROTOCOL_TOOL, ...more }).withApproval('ask'));

verifies('approval.again', 'a protocol tool whose definition changed runs only after another approval', async () => {
  await expectAskedAgain(payTool, [
    { description: 'Reads.' },
    { readOnly: true },
    { safety: 'pure' },
    { inputSchema: z.object({ to: z.string().optional() }).loose() },
  ]);
});

verifies(
  'identity.code',
  'other source text of a function keeps an approval, and what is registered runs',
  async () => {
    const make = (more: object): DefinedLoop => defineLoop({ ...CODE, tool: first, ...more } as never);
    const pairs = [
      [make({}), make({ tool: second })],
      [payTool({}), payTool({ execute: second })],
      [payTool({}), payTool({ requestApproval: async () => 'Pay now?' })],
    ] as const;
    for (const [before, after] of pairs) {
      ran = 0;
      const { firstStatus, end } = await changeWhilePending(hostWith(before), hostWith(after), 'pay');
      expect([firstStatus, end, ran]).toEqual(['paused', 'ok', 1]);
    }
  },
);

/** A host with an agent in JSON whose tool is a loop with a code body. */
function bodyHost(body: () => unknown, more: object = {}) {
  const code = defineLoop({ id: 'job', input: true, output: true, run: body as never, ...more });
  const boss = agentDef('boss', { tools: ['job'], approvals: { job: 'ask' } });
  const providers = [replyProvider([{ calls: [['job', {}]] }, { text: 'done' }])];
  return (store: ReturnType<typeof memoryStore>) => hostOf([code, boss], { store, providers, seed: ran + 1 });
}

verifies('approval.again', 'a changed tool of an agent is asked for again, never refused under status ok', async () => {
  for (const after of [bodyHost(first, { description: 'Reads.' }), bodyHost(first, { output: {} })]) {
    ran = 0;
    const { host, turnId, end, again } = await changeWhilePending(bodyHost(first), after, 'boss');
    expect([end, ran]).toEqual(['paused', 0]);
    await host.answer({ id: again ?? '', approved: true, by: 'ada' });
    expect([await endOf(host, turnId), ran]).toEqual(['ok', 1]);
  }
});

verifies('approval.again', 'an approval that alternates between two definitions is asked for each time', async () => {
  ran = 0;
  const store = memoryStore();
  const hosts = ['One.', 'Two.'].map((description) =>
    hostOf([defineLoop({ ...CODE, description, tool: first } as never)], { store, seed: 3 }),
  );
  const [one, two] = hosts as [Host, Host];
  const { turnId } = await one.run({ loop: 'pay', input: {} });
  const ids = new Set<string>();
  for (const host of [two, one, two]) {
    const { id } = await onlyPending(host);
    ids.add(id);
    await host.answer({ id, approved: true, by: 'ada' });
    // Each host continues what the other one wrote, and asks for its own definition.
    const fresh = hostOf([defineLoop({ ...CODE, description: host === one ? 'One.' : 'Two.', tool: first } as never)], {
      store,
      seed: 4 + ids.size,
    });
    expect([await endOf(fresh, turnId), ran]).toEqual(['paused', 0]);
  }
  const { id } = await onlyPending(two);
  await two.answer({ id, approved: true, by: 'ada' });
  const last = hostOf([defineLoop({ ...CODE, description: 'Two.', tool: first } as never)], { store, seed: 9 });
  expect([await endOf(last, turnId), ran, ids.has(id)]).toEqual(['ok', 1, false]);
  expect(await last.replay(turnId)).toMatchObject({ matches: true });
});

verifies(
  'approval.bound',
  'an agent in code that drops its approval rule does not release a pending call',
  async () => {
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
      const { firstStatus, end } = await changeWhilePending(make({ approvals: { pay: 'ask' } }), make(more), 'boss');
      expect([firstStatus, ran], end).toEqual(['paused', 0]);
    }
  },
);

verifies('approval.bound', 'an approval of removed code is answered, and runs nothing else', async () => {
  ran = 0;
  const make = (id: string) => defineLoop({ ...CODE, id, tool: first } as never);
  const { end, isPending } = await changeWhilePending(hostWith(make('pay')), hostWith(make('pay2')), 'pay');
  // The answer is recorded, so that the approval is no longer pending; the turn does not advance.
  expect([end, isPending, ran]).toEqual(['LOOP_NOT_FOUND', false, 0]);
});

verifies('approval.bound', 'an approval applies to one call, not to another or repeated call of the tool', async () => {
  const performed: unknown[] = [];
  const rounds = [5, 6, 5, 5].map((amount) => ({ calls: [['pay', { amount }] as const] }));
  const providers = [replyProvider([...rounds, { text: 'done' }, ...rounds.slice(0, 1), { text: 'done' }])];
  const boss = agentDef('boss', { tools: ['pay'] });
  const act = (input: Json) => performed.push(input);
  const host = hostOf([tool('pay', 'builtin:act', ASK), boss], { tools: { act }, providers });
  const ids = new Set<string>();
  let result = await host.run({ loop: 'boss', input: { prompt: 'pay' }, sessionId: 's' });
  for (const [nth, amount] of [5, 6, 5, 5].entries()) {
    expect(result.status).toBe('paused');
    expect(performed).toHaveLength(nth);
    const { id, arguments: input } = await onlyPending(host);
    expect([input, ids.has(id)]).toEqual([{ amount }, false]);
    ids.add(id);
    await host.answer({ id, approved: true, by: 'ada' });
    result = await host.resume(result.turnId);
  }
  expect([result.status, performed.length]).toEqual(['ok', 4]);
  expect(await host.run({ loop: 'boss', input: { prompt: 'again' }, sessionId: 's' })).toMatchObject({
    status: 'paused',
  });
  expect(performed).toHaveLength(4);
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});
