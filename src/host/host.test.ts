import { expect } from 'vitest';
import { composite, hostOf, prompt, tool } from '../../spec/support/host-fixture.js';
import { errorOf, outputOf, pendingOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { LoopError } from '../base/errors.js';
import { defineLoop } from '../loops/define.js';
import type { Scope } from '../protocol/body.js';
import type { TraceEvent } from '../protocol/trace.js';
import { crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';

const step = (loopId: string, inputMapping: unknown = '$.input'): object => ({ loopId, inputMapping });

verifies(
  'turn.key',
  'requests with the same key attach to one turn, and other loops and inputs are refused',
  async () => {
    let runs = 0;
    const count = (): number => ++runs;
    const host = hostOf([tool('count', 'builtin:count'), tool('other', 'builtin:count')], { tools: { count } });
    const ask = (loop: string, input: unknown) => host.run({ loop, input, key: 'order-7' });
    const [first, second] = await Promise.all([ask('count', { a: 1 }), ask('count', { a: 1 })]);
    expect(second.turnId).toBe(first.turnId);
    expect([outputOf(first), outputOf(second), runs]).toEqual([1, 1, 1]);
    expect(errorOf(await ask('count', { a: 2 }))?.code).toBe('KEY_CONFLICT');
    expect(errorOf(await ask('other', { a: 1 }))?.code).toBe('KEY_CONFLICT');
    expect(runs).toBe(1);
  },
);

verifies('turn.resume', 'a turn whose process died continues without repeating completed steps', async () => {
  const work = [
    tool('first', 'builtin:count'),
    tool('second', 'builtin:die'),
    composite('work', [step('first'), step('second')]),
  ];
  const store = memoryStore();
  let runs = 0;
  const crashing = crashingStore(store);
  const tools = (die: () => unknown) => ({ count: () => ++runs, die });
  const first = hostOf(work, { store: crashing, tools: tools(() => new Promise(() => {})) });
  void first.run({ loop: 'work', input: {}, sessionId: 's' });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const second = hostOf(work, { store, tools: tools(() => 'done'), seed: 2 });
  const [turn] = await second.archive.turns();
  expect(turn).toMatchObject({ sessionId: 's', loopId: 'work', status: 'interrupted' });
  const result = await second.resume(turn?.turnId ?? '');
  expect(result).toMatchObject({ status: 'ok', output: 'done' });
  expect(runs).toBe(1);
  expect(result.trace.filter(({ type }) => type === 'child.completed')).toHaveLength(2);
  expect(await second.archive.trace(result.turnId)).toEqual(result.trace);
});

verifies('definition.pin', 'a turn continues with the definitions that it started with', async () => {
  const store = memoryStore();
  const hang = (): Promise<never> => new Promise(() => {});
  const old = hostOf([tool('t', 'builtin:hang'), prompt('p', 'old {{x}}'), composite('c', [step('t'), step('p')])], {
    store,
    tools: { hang },
  });
  void old.run({ loop: 'c', input: { x: 1 }, key: 'k' });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const upgraded = hostOf([prompt('p', 'a longer new text {{x}}', { version: '2.0.0' })], {
    store,
    tools: { hang: () => ({}) },
  });
  const [turn] = await upgraded.archive.turns();
  const result = await upgraded.resume(turn?.turnId ?? '');
  expect(result.status).toBe('ok');
  const request = result.trace.find(({ type }) => type === 'call.backend.requested');
  expect(request?.payload).toMatchObject({ promptLength: 'old 1'.length });
});

const ANYTHING = true as const;

verifies('definition.pin', 'a change of code that breaks an open turn is reported before it is resumed', async () => {
  const store = memoryStore();
  const make = (body: (input: unknown, scope: Scope) => Promise<unknown>) =>
    defineLoop({ id: 'code', input: ANYTHING, output: ANYTHING, run: body });
  const before = make(async (_, scope) => {
    await scope.record('acme.first', () => 1);
    return scope.wait('go');
  });
  const first = hostOf([before], { store });
  const paused = await first.run({ loop: 'code', input: {} });
  expect(paused).toMatchObject({ status: 'paused', pending: [{ kind: 'signal', name: 'go' }] });
  const harmless = make(async (_, scope) => {
    await scope.record('acme.first', () => 2);
    return (await scope.wait('go')) ?? 'nothing';
  });
  const harmful = make(async (_, scope) => scope.wait('go'));
  const changes = async (loop?: ReturnType<typeof make>) =>
    (await hostOf(loop === undefined ? [] : [loop], { store }).inFlightTurns())[0]?.changed;
  expect(await changes(before)).toEqual([]);
  expect(await changes(harmless)).toEqual([]);
  expect(await changes(harmful)).toMatchObject([{ now: 'changed', parts: ['source'], breaks: true }]);
  expect(await changes()).toMatchObject([{ now: 'missing', breaks: true }]);
});

verifies('turn.replay', 'a replay performs no effect and detects changed code', async () => {
  const store = memoryStore();
  let runs = 0;
  let add = 1;
  const sum = defineLoop({
    id: 'sum',
    input: ANYTHING,
    output: ANYTHING,
    run: async (input, scope) => ((await scope.call(effect, input)) as number) + add,
  });
  const effect = defineLoop({ id: 'effect', input: ANYTHING, output: ANYTHING, safety: 'pure', tool: () => ++runs });
  const host = hostOf([sum, effect], { store });
  const summed = await host.run({ loop: 'sum', input: {} });
  const { turnId } = summed;
  expect([outputOf(summed), runs]).toEqual([2, 1]);
  expect(await host.replay(turnId)).toEqual({ matches: true, calls: 2 });
  add = 2;
  const changed = await host.replay(turnId);
  expect(changed).toMatchObject({ matches: false });
  expect(changed.difference).toContain('ended with 2, and now ends with 3');
  expect(runs).toBe(1);
});

verifies('turn.status', 'the status of a turn is ok, error or paused, and a cancel ends a paused turn', async () => {
  const host = hostOf([tool('ok'), tool('bad', 'builtin:fail'), waits]);
  const ok = await host.run({ loop: 'ok', input: 1 });
  const bad = await host.run({ loop: 'bad', input: {} });
  const paused = await host.run({ loop: 'waits', input: {} });
  const status = async (id: string) => (await host.archive.status(id))[0]?.status;
  expect([await status(ok.turnId), await status(bad.turnId), await status(paused.turnId)]).toEqual([
    'ok',
    'error',
    'paused',
  ]);
  expect(await host.cancel(paused.turnId, 'changed our mind')).toBe(true);
  expect(await host.archive.result(paused.turnId)).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } });
  expect(await host.cancel(paused.turnId, 'again')).toBe(false);
  await expect(host.archive.status('s-missing.1')).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
});

const waits = defineLoop({ id: 'waits', input: ANYTHING, output: ANYTHING, run: (_, scope) => scope.wait('go') });

verifies('turn.trace', 'the streamed events equal the trace of the result and of the store', async () => {
  const host = hostOf([tool('t'), prompt('p', 'x'), composite('c', [step('t'), step('p', {})])]);
  const streamed: TraceEvent[] = [];
  const result = await host.run({ loop: 'c', input: {} }, { onEvent: (event) => streamed.push(event) });
  expect(result.trace.length).toBeGreaterThan(15);
  expect(streamed).toEqual(result.trace);
  expect(await host.archive.trace(result.turnId)).toEqual(result.trace);
  expect(JSON.parse(JSON.stringify(result)).trace).toEqual(result.trace);
});

verifies('turn.trace', 'a branch that lost a race is closed in the trace', async () => {
  const racing = defineLoop({
    id: 'racing',
    input: ANYTHING,
    output: ANYTHING,
    run: (_, scope) => scope.race([(a) => a.call(waits, {}), (b) => b.record('acme.won', () => 'won')]),
  });
  const result = await hostOf([racing]).run({ loop: 'racing', input: {} });
  expect(result).toMatchObject({ status: 'ok', output: 'won' });
  const count = (type: string): number => result.trace.filter((event) => event.type === type).length;
  expect([count('child.started'), count('child.completed')]).toEqual([1, 1]);
  expect(count('call.errored')).toBe(1);
});

verifies('lsem.5.failure', 'a request of an unknown loop returns an error result', async () => {
  const result = await hostOf([]).run({ loop: 'missing', input: {} });
  expect(result).toMatchObject({ status: 'error', error: { code: 'LOOP_NOT_FOUND' }, trace: [] });
});

verifies('lsem.4.unique', 'a definition cannot be replaced under its id and version', async () => {
  const host = hostOf([tool('t')]);
  const { digest } = host.registry.add(tool('t'));
  expect(host.registry.find('t')?.digest).toBe(digest);
  expect(() => host.registry.add(tool('t', 'builtin:fail'))).toThrow(/raise the version/);
  expect(host.registry.find('t')?.definition.tool?.implementation).toBe('builtin:echo');
});

verifies('definition.keys', 'unknown options and invalid session ids of a turn are refused', async () => {
  const host = hostOf([tool('t')]);
  await expect(host.run({ loop: 't', input: 1, sesion: 'x' } as never)).rejects.toThrow(/has no "sesion"/);
  await expect(host.run({ loop: 't', input: 1, sessionId: '../x' })).rejects.toThrow(/session id/);
});

verifies('turn.status', 'a supplied result of a tool in doubt becomes the output of the tool', async () => {
  const store = memoryStore();
  const definitions = [tool('pay', 'builtin:pay', { tool: { implementation: 'builtin:pay', safety: 'once' } })];
  const first = hostOf(definitions, { store, tools: { pay: () => new Promise(() => {}) } });
  void first.run({ loop: 'pay', input: { n: 1 }, sessionId: 's' });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const second = hostOf(definitions, { store, tools: { pay: () => 'paid again' }, seed: 2 });
  const [turn] = await second.archive.turns();
  const paused = await second.resume(turn?.turnId ?? '');
  expect(paused).toMatchObject({ status: 'paused', pending: [{ kind: 'doubt', name: 'pay', input: { n: 1 } }] });
  await second.resolveEffect(pendingOf(paused)?.[0]?.key ?? '', 'supply', 'ada', { receipt: 7 });
  expect(await second.resume(paused.turnId)).toMatchObject({ status: 'ok', output: { receipt: 7 } });
});

verifies('turn.resume', 'resuming or resolving a running turn neither interrupts nor repeats it', async () => {
  let runs = 0;
  const pay = async (): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return ++runs;
  };
  const host = hostOf([tool('pay', 'builtin:pay')], { tools: { pay } });
  let turnId = '';
  const first = host.run({ loop: 'pay', input: {} }, { onEvent: ({ callId }) => (turnId = callId) });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const others = [host.resume(turnId), host.resume(turnId)];
  await expect(host.resolveEffect(`${turnId}/0`, 'retry', 'ada')).rejects.toMatchObject({ code: 'ANSWER_REFUSED' });
  for (const result of [await first, ...(await Promise.all(others))]) expect(outputOf(result)).toBe(1);
  expect(runs).toBe(1);
});

verifies('turn.trace', 'an error of a listener does not affect the turn', async () => {
  const onEvent = (): never => {
    throw new Error('the listener failed');
  };
  const result = await hostOf([tool('t')]).run({ loop: 't', input: 5 }, { onEvent });
  expect(result).toMatchObject({ status: 'ok', output: 5 });
  expect(result.trace.length).toBe(6);
});

verifies('turn.trace', 'a listener can cancel the turn at its first event', async () => {
  const host = hostOf([tool('t')]);
  let cancelled: Promise<boolean> | undefined;
  const onEvent = ({ callId }: TraceEvent): void => {
    cancelled ??= host.cancel(callId, 'at once');
  };
  expect(await host.run({ loop: 't', input: 5 }, { onEvent })).toMatchObject({ error: { code: 'CANCELLED' } });
  expect(await cancelled).toBe(true);
});

verifies('turn.replay', 'the replay of a cancelled turn matches unchanged code and detects changed code', async () => {
  const store = memoryStore();
  const body = async (_: unknown, scope: Scope): Promise<unknown> => {
    await scope.call(same, 1);
    return scope.wait('go');
  };
  const same = defineLoop({ id: 'same', input: ANYTHING, output: ANYTHING, run: (input) => input });
  const host = hostOf([defineLoop({ id: 'w', input: ANYTHING, output: ANYTHING, run: body })], { store });
  const { turnId } = await host.run({ loop: 'w', input: {} });
  expect(await host.cancel(turnId, 'enough')).toBe(true);
  expect(await host.replay(turnId)).toMatchObject({ matches: true, calls: 1 });
  const changed = defineLoop({ id: 'w', input: ANYTHING, output: ANYTHING, run: (_, scope) => scope.wait('go') });
  expect(await hostOf([changed], { store }).replay(turnId, 'now')).toMatchObject({ matches: false });
});

verifies('policy.cache', 'versions of a tool have separate cache entries', async () => {
  const policy = { cache: {} };
  const versions = ['1.0.0', '2.0.0'].map((version) =>
    defineLoop({
      id: 'price',
      version,
      input: ANYTHING,
      output: ANYTHING,
      safety: 'pure',
      policy,
      tool: () => version,
    }),
  );
  const host = hostOf(versions);
  const ask = async (version: string): Promise<unknown> =>
    outputOf(await host.run({ loop: 'price', version, input: { n: 1 } }));
  expect([await ask('1.0.0'), await ask('2.0.0'), await ask('1.0.0')]).toEqual(['1.0.0', '2.0.0', '1.0.0']);
});

verifies(
  'kernel.scope',
  'concurrent steps of one scope that are not awaited fail the turn, not the process',
  async () => {
    const inner = defineLoop({
      id: 'inner',
      input: ANYTHING,
      output: ANYTHING,
      run: (_, scope) => scope.sleep(1).then(() => 1),
    });
    const concurrent = defineLoop({
      id: 'concurrent',
      input: ANYTHING,
      output: ANYTHING,
      run: async (_, scope) => {
        const first = scope.call(inner, 1);
        void scope.call(inner, 2);
        void scope.record('acme.third', () => 3);
        return await first;
      },
    });
    const result = await hostOf([]).run({ loop: concurrent, input: {} });
    expect(result).toMatchObject({ status: 'error', error: { code: 'SCOPE_BUSY' } });
  },
);

verifies('lsem.6.event', 'the times of a trace never decrease, even if the clock is set back', async () => {
  let now = 10_000;
  const clock = new ManualClock(0);
  Object.assign(clock, { now: () => now });
  const back = defineLoop({
    id: 'back',
    input: ANYTHING,
    output: ANYTHING,
    run: async (_, scope) => {
      await scope.log('info', 'before');
      now = 4_000;
      await scope.log('info', 'after');
      return 1;
    },
  });
  const { trace, durationMs } = await hostOf([], { clock }).run({ loop: back, input: {} });
  const times = trace.map(({ ts }) => ts);
  expect(times).toEqual([...times].sort());
  expect(durationMs).toBeGreaterThanOrEqual(0);
});

verifies('turn.key', 'a repeated key with an input that is not JSON returns an error result', async () => {
  const host = hostOf([tool('t')]);
  await host.run({ loop: 't', input: 1, key: 'k' });
  const result = await host.run({ loop: 't', input: { f: () => 1 } as unknown, key: 'k' });
  expect(result).toMatchObject({ status: 'error', error: { code: 'VALUE_INVALID' } });
});

verifies('fuzz.definitions', 'a definition whose properties throw is refused with a LoopError', () => {
  const trap = (): never => {
    throw new Error('access refused');
  };
  const hostile = new Proxy({}, { get: trap, ownKeys: trap, getPrototypeOf: trap, getOwnPropertyDescriptor: trap });
  expect(() => hostOf([]).registry.add(hostile)).toThrow(LoopError);
});
