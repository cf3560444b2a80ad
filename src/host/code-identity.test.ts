import { expect } from 'vitest';
import { z } from 'zod';
import { onlyPending } from '../../spec/support/approval-fixture.js';
import { hostOf, tool as toolDef } from '../../spec/support/host-fixture.js';
import { modelOf, type Scripted } from '../../spec/support/scripted-agents.js';
import { errorOf, outputOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { defineLoop } from '../loops/define.js';
import { defineAgent } from '../loops/define-agent.js';
import type { Scope } from '../protocol/body.js';
import { tool } from '../protocol/tool.js';
import type { Host } from './host.js';

const ANYTHING = { input: true, output: true } as const;
const INPUT = { prompt: 'My lamp broke.' };

/** Calls the tool until the prompt has its result, whichever instance of the model is asked. */
const reply: Scripted = ({ prompt }) =>
  JSON.stringify(prompt).includes('tool-result') ? { text: 'Refunded.' } : { calls: [['refund', { amount: 5 }]] };

/** An agent whose inline tool asks. */
function supportAgent(more: object = {}, toolOptions: object = {}) {
  const refund = tool({
    name: 'refund',
    inputSchema: z.object({ amount: z.number() }),
    approval: 'ask',
    execute: ({ amount }) => ({ refunded: amount }),
    ...toolOptions,
  });
  return defineAgent({
    id: 'support',
    model: modelOf([reply, reply]),
    instructions: 'Help customers.',
    tools: { refund },
    ...more,
  });
}

/** Approves what is pending, and resumes. */
async function approveAndResume(host: Host, turnId: string) {
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: true, by: 'ada' });
  return host.resume(turnId);
}

verifies('identity.change', 'changed instructions of the same length stop a turn too', async () => {
  const store = memoryStore();
  const { turnId } = await hostOf([supportAgent()], { store }).run({ loop: 'support', input: INPUT });
  const changed = hostOf([supportAgent({ instructions: 'Cheat customers' })], { store, seed: 2 });
  const [inFlight] = await changed.inFlightTurns();
  expect(inFlight?.changed).toMatchObject([{ parts: ['instructions'], breaks: true }]);
  expect(errorOf(await approveAndResume(changed, turnId))?.message).toMatch(/^support 1\.0\.0: instructions changed/);
});

verifies('identity.change', 'a turn that no longer matches can be cancelled, and has ended then', async () => {
  const store = memoryStore();
  const { turnId } = await hostOf([supportAgent()], { store }).run({ loop: 'support', input: INPUT });
  const changed = hostOf([supportAgent({ instructions: 'Cheat customers' })], { store, seed: 2 });
  expect(errorOf(await approveAndResume(changed, turnId))?.code).toBe('REPLAY_MISMATCH');
  expect(await changed.cancel(turnId, 'no longer needed')).toBe(true);
  expect(await changed.inFlightTurns()).toEqual([]);
  expect(await changed.resume(turnId)).toMatchObject({ status: 'cancelled', reason: 'no longer needed' });
});

verifies('identity.change', 'a turn that no longer matches names the changed options and what to do', async () => {
  const store = memoryStore();
  const { turnId } = await hostOf([supportAgent()], { store }).run({ loop: 'support', input: INPUT });
  const changed = hostOf([supportAgent({ instructions: 'Help customers, and be brief.' })], { store, seed: 2 });
  const stopped = await approveAndResume(changed, turnId);
  expect(errorOf(stopped)?.code).toBe('REPLAY_MISMATCH');
  expect(errorOf(stopped)?.message).toMatch(
    /^support 1\.0\.0: instructions changed\. Step \S+: [^{}]+\. Raise the version of the changed loop and register the old version too, run the earlier code, or cancel the turn\.$/,
  );
  expect(errorOf(stopped)?.details).toMatchObject({ changed: [{ loop: 'support@1.0.0', parts: ['instructions'] }] });
  const [inFlight] = await changed.inFlightTurns();
  expect(inFlight?.changed).toMatchObject([
    { loop: 'support@1.0.0', now: 'changed', parts: ['instructions'], breaks: true },
  ]);
  // Both versions: the turn continues with its own.
  const newer = supportAgent({ version: '2.0.0', instructions: 'Help customers, and be brief.' });
  const both = hostOf([supportAgent(), newer], { store, seed: 3 });
  expect(await both.inFlightTurns()).toMatchObject([{ changed: [] }]);
  expect(await both.resume(turnId)).toMatchObject({
    status: 'ok',
    output: { text: 'Refunded.' },
    loopVersion: '1.0.0',
  });
});

verifies('identity.change', 'each changed option has the name that it has in code', async () => {
  const changes: readonly [object, object, readonly string[]][] = [
    [{ input: { type: 'object', properties: { prompt: { type: 'string' }, n: true } } }, {}, ['input']],
    [{ output: { type: 'object', properties: { text: { type: 'string' } } } }, {}, ['output']],
    [{ tools: {} }, {}, ['tools']],
    [{ description: 'Helps.', maxRounds: 3 }, {}, ['description', 'maxRounds']],
    [{ model: { id: 'other' } }, {}, ['model']],
    [{ policy: { timeoutMs: 5 } }, {}, ['policy']],
  ];
  for (const [agentOptions, toolOptions, parts] of changes) {
    const store = memoryStore();
    await hostOf([supportAgent()], { store }).run({ loop: 'support', input: INPUT });
    const host = hostOf([supportAgent(agentOptions, toolOptions)], { store, seed: 2 });
    const changed = (await host.inFlightTurns())[0]?.changed.find(({ loop }) => loop === 'support@1.0.0');
    expect([...(changed?.parts ?? [])].sort()).toEqual([...parts].sort());
  }
  const store = memoryStore();
  await hostOf([supportAgent()], { store }).run({ loop: 'support', input: INPUT });
  const host = hostOf([supportAgent({}, { description: 'Pays back.', safety: 'idempotent' })], { store, seed: 2 });
  expect((await host.inFlightTurns())[0]?.changed).toMatchObject([
    { loop: 'support.refund@1.0.0', parts: ['description', 'safety'] },
  ]);
});

verifies('identity.change', 'a turn whose steps still match continues with the registered definition', async () => {
  const store = memoryStore();
  const make = (text: string) =>
    defineLoop({
      id: 'job',
      ...ANYTHING,
      description: text,
      run: async (_, scope: Scope) => [await scope.record('acme.first', () => 1), await scope.wait('go'), text],
    });
  const { turnId } = await hostOf([make('old')], { store }).run({ loop: 'job', input: {}, sessionId: 's' });
  const host = hostOf([make('new')], { store, seed: 2 });
  expect((await host.inFlightTurns())[0]?.changed).toEqual([
    { loop: 'job@1.0.0', now: 'changed', parts: ['description'], breaks: false },
  ]);
  expect((await host.resume(turnId)).status).toBe('paused');
});

verifies(
  'identity.build',
  'another build continues a turn, is reported, and asks for its approvals again',
  async () => {
    const store = memoryStore();
    const first = hostOf([supportAgent()], { store, build: 'b1' });
    const { turnId } = await first.run({ loop: 'support', input: INPUT, sessionId: 's' });
    expect(await onlyPending(first)).toMatchObject({ build: 'b1', tool: 'support.refund' });
    const second = hostOf([supportAgent()], { store, seed: 2, build: 'b2' });
    expect(await second.inFlightTurns()).toMatchObject([{ changed: [], build: { recorded: 'b1', now: 'b2' } }]);
    expect((await approveAndResume(second, turnId)).status).toBe('paused');
    expect(await onlyPending(second)).toMatchObject({ build: 'b2' });
    // A host without a build compares only definitions.
    const third = hostOf([supportAgent()], { store, seed: 3 });
    expect((await third.inFlightTurns())[0]?.build).toBeUndefined();
    expect(outputOf(await approveAndResume(third, turnId))).toEqual({ text: 'Refunded.' });
    for (const build of ['', ' ', 5, 'x'.repeat(201)])
      expect(() => hostOf([], { build: build as never })).toThrow(TypeError);
  },
);

verifies('identity.build', 'a standing grant of another build is not used', async () => {
  const store = memoryStore();
  const pay = defineLoop({ id: 'pay', ...ANYTHING, policy: { approval: 'ask' }, tool: () => 'paid' });
  const request = { loop: 'pay', input: { amount: 5 }, sessionId: 's' } as const;
  const first = hostOf([pay], { store, build: 'b1' });
  const { turnId } = await first.run(request);
  const { id } = await onlyPending(first);
  await first.answer({ id, approved: true, by: 'ada', standing: { const: { amount: 5 } } });
  await first.resume(turnId);
  const statusWith = async (build: string | undefined, seed: number) =>
    (await hostOf([pay], { store, seed, ...(build !== undefined && { build }) }).run(request)).status;
  expect([await statusWith('b1', 2), await statusWith('b2', 3), await statusWith(undefined, 4)]).toEqual([
    'ok',
    'paused',
    'ok',
  ]);
});

verifies('identity.reload', 'a redefined loop is used by new turns, and a paused turn keeps its own', async () => {
  const make = (answer: string) =>
    defineLoop({ id: 'job', ...ANYTHING, run: async (_, scope: Scope) => [await scope.wait('go'), answer] });
  const host = hostOf([make('old')]);
  const paused = await host.run({ loop: 'job', input: {}, sessionId: 'a' });
  host.registry.add(make('new'));
  const { turnId } = await host.run({ loop: 'job', input: {}, sessionId: 'b' });
  const description = 'Redefined with another definition.';
  host.registry.add(defineLoop({ id: 'job', ...ANYTHING, description, run: () => 'newest' }));
  expect(outputOf(await host.run({ loop: 'job', input: {} }))).toBe('newest');
  const answers: unknown[] = [];
  for (const [sessionId, turn] of [
    ['a', paused.turnId],
    ['b', turnId],
  ] as const) {
    await signalGo(host, sessionId);
    answers.push(outputOf(await host.resume(turn)));
  }
  expect(answers).toEqual([
    [null, 'old'],
    [null, 'new'],
  ]);
});

/** Delivers the signal that the loops of these tests wait for. */
async function signalGo(host: Host, sessionId: string): Promise<void> {
  const internals = host as unknown as {
    readonly turns: {
      openSession(id: string): Promise<{ signal(signal: object): Promise<unknown>; close(): Promise<void> }>;
    };
  };
  const session = await internals.turns.openSession(sessionId);
  await session.signal({ id: 'go', name: 'go', value: null });
  await session.close();
}

verifies('identity.reload', 'an agent keeps the tool object that it was defined with', async () => {
  const search = (found: string) => defineLoop({ id: 'search', ...ANYTHING, tool: () => found });
  const agentWith = (id: string, found: string) =>
    defineAgent({ id, model: modelOf([{ calls: [['search', {}]] }, { text: id }]), tools: [search(found)] });
  const host = hostOf([agentWith('one', 'first'), agentWith('two', 'second')]);
  for (const [loop, found] of [
    ['one', 'first'],
    ['two', 'second'],
  ] as const) {
    const { sessionId } = await host.run({ loop, input: INPUT });
    const results = (await host.archive.events(sessionId)).filter(({ type }) => type === 'tool-result');
    expect(results).toMatchObject([{ content: { toolName: 'search', result: found } }]);
  }
});

verifies('identity.reload', 'a document is not redefined under its version, nor code of another file', () => {
  const { registry } = hostOf([toolDef('t')]);
  const code = (id: string) => defineLoop({ id, ...ANYTHING, tool: () => 1 });
  expect(() => registry.add(toolDef('t', 'builtin:fail'))).toThrow(/raise the version/);
  expect(() => registry.add(code('t'))).toThrow(/registered with other content/);
  const from = (file: string) => ({ directory: '/loops', file: `/loops/${file}`, trusted: true });
  const earlier = registry.add(code('c'), from('a.mjs'));
  expect(registry.add(code('c'), from('a.mjs'))).not.toBe(earlier);
  const other = defineLoop({ id: 'c', ...ANYTHING, tool: () => 'other' });
  expect(() => registry.add(other, from('b.mjs'))).toThrow(/a\.mjs and \/loops\/b\.mjs/);
});
