import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { z } from 'zod';
import { replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { createRondo, defineAgent, defineLoop, LoopError, TurnPaused, tool } from '../../index.js';

const greet = defineLoop({
  id: 'greet',
  input: z.object({ name: z.string() }),
  output: z.object({ text: z.string() }),
  run: async ({ name }) => ({ text: `Hello ${name}` }),
});

const newStore = (): string => `sqlite:${join(mkdtempSync(join(tmpdir(), 'rondo-')), 'journal.db')}`;

verifies('rondo.run', 'a loop runs without any configuration, and its result narrows by status', async () => {
  await using rondo = await createRondo({ store: newStore() });
  const result = await rondo.run(greet, { name: 'Ada' });
  expect(result.status === 'ok' && result.output.text).toBe('Hello Ada');
  expect(await rondo.output(greet, { name: 'Bob' })).toEqual({ text: 'Hello Bob' });
  expect(await rondo.turns()).toHaveLength(2);
});

verifies('rondo.run', 'output throws the error of a failed turn with its code', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  const thrown = await rondo.output(greet, { name: 1 } as never).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(LoopError);
  expect(thrown).toMatchObject({ code: 'INPUT_VALIDATION_FAILED' });
});

verifies('rondo.run', 'a turn is cancelled when the signal of its caller is aborted', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  const controller = new AbortController();
  const nap = defineLoop({ id: 'nap', input: true, output: true, run: (_, scope) => scope.sleep(9000) });
  const running = rondo.run(nap, null, { signal: controller.signal });
  setTimeout(() => controller.abort(new Error('enough')), 20);
  expect(await running).toMatchObject({ status: 'cancelled', reason: 'enough' });
});

verifies('turn.retry', 'rondo.retry: a failed turn continues where it failed, typed by its loop', async () => {
  await using rondo = await createRondo({ store: newStore() });
  let isDown = true;
  const load = defineLoop({
    id: 'load',
    input: z.string(),
    output: z.number(),
    safety: 'idempotent',
    tool: (name) => {
      if (isDown) throw new Error(`${name} is down.`);
      return name.length;
    },
  });
  const sum = defineLoop({
    id: 'sum',
    input: z.array(z.string()),
    output: z.number(),
    run: async (names, scope) => {
      let total = 0;
      for (const name of names) total += await scope.call(load, name);
      return total;
    },
  });
  const thrown = await rondo.output(sum, ['a', 'bb']).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ code: 'TOOL_FAILED', cause: { message: 'a is down.' } });
  const [turn] = await rondo.turns();
  isDown = false;
  const result = await rondo.retry(turn?.turnId ?? '', sum);
  expect(result.status === 'ok' && result.output.toFixed(1)).toBe('3.0');
});

verifies('rondo.options', 'errorStacks redacts the stacks of journaled errors', async () => {
  const fail = defineLoop({
    id: 'fail',
    input: true,
    output: true,
    run: () => {
      throw new Error('broken');
    },
  });
  const stackOf = async (errorStacks?: (stack: string) => string | undefined): Promise<string | undefined> => {
    await using rondo = await createRondo({ store: 'memory:', ...(errorStacks && { errorStacks }) });
    const result = await rondo.run(fail, null);
    return result.status === 'error' ? result.error.stack : undefined;
  };
  expect(await stackOf()).toContain('rondo.test.ts');
  expect(await stackOf((stack) => stack.split('\n')[0])).not.toContain('rondo.test.ts');
  expect(await stackOf(() => undefined)).toBeUndefined();
});

verifies('rondo.options', 'unknown options and stores are refused with the known ones', async () => {
  await expect(createRondo({ stor: 'memory:' } as never)).rejects.toThrow(/stor/);
  await expect(createRondo({ store: 'mysql:' })).rejects.toThrow(/sqlite:PATH or memory:/);
  await using rondo = await createRondo({ store: 'memory:' });
  await expect(rondo.run(greet, { name: 'Ada' }, { sesion: 'x' } as never)).rejects.toThrow(/sesion/);
});

verifies('rondo.direct', 'a loop that is called like a function runs in memory', async () => {
  expect(await greet({ name: 'Ada' })).toEqual({ text: 'Hello Ada' });
  expect(greet.name).toBe('greet');
});

verifies('rondo.direct', 'a loop that is called like a function inside of a loop throws', async () => {
  const early = defineLoop({ id: 'early', input: true, output: true, run: () => greet({ name: 'Ada' }) });
  const late = defineLoop({
    id: 'late',
    input: true,
    output: true,
    run: async (_, scope) => {
      await scope.now();
      const [inBranch] = await scope.all([(branch) => branch.random().then(() => greet({ name: 'Ada' }))]);
      return inBranch;
    },
  });
  await using rondo = await createRondo({ store: 'memory:' });
  for (const loop of [early, late]) {
    const result = await rondo.run(loop, null);
    expect(result.status === 'error' && result.error.message, loop.name).toMatch(/scope\.call/);
  }
});

const refund = tool({
  name: 'refund',
  inputSchema: z.object({ order: z.string() }),
  requestApproval: ({ order }) => `Refund ${order}?`,
  execute: ({ order }) => ({ refunded: order }),
});
const replies = () => replyProvider([{ calls: [['refund', { order: 'o-7' }]] }, { text: 'Done.' }]);
const support = defineAgent({ id: 'support', model: 'test', tools: [refund] });

verifies('rondo.turn', 'a turn pauses for an approval, and its handle approves it and returns the result', async () => {
  await using rondo = await createRondo({ store: newStore(), models: { test: replies() } });
  const turn = await rondo.start(support, 'My lamp broke.', { key: 'case-7', session: 'ada' });
  const types: string[] = [];
  for await (const event of turn.events()) types.push(event.type);
  expect(types).toEqual(expect.arrayContaining(['user-message', 'tool-call']));
  expect(await turn.result()).toMatchObject({ status: 'paused', pending: [{ kind: 'approval' }] });
  await expect(turn.output()).rejects.toBeInstanceOf(TurnPaused);
  for (const approval of await turn.approvals()) await approval.approve({ by: 'ada' });
  expect(await turn.output()).toEqual({ text: 'Done.' });
  const again = rondo.turn(turn.id, support);
  expect((await again.output()).text).toBe('Done.');
});

verifies(
  'rondo.turn',
  'approvals waits until the turn requests one, also while a branch of it still runs',
  async () => {
    const slow = defineLoop({ id: 'slow', input: true, output: true, run: (_, scope) => scope.sleep(9000) });
    const both = defineLoop({
      id: 'both',
      input: true,
      output: true,
      run: (_, scope) =>
        scope.race([
          (branch) => branch.call(slow, null),
          (branch) => branch.call(support, { prompt: 'My lamp broke.' }),
        ]),
    });
    await using rondo = await createRondo({ store: newStore(), models: { test: replies() } });
    const turn = await rondo.start(support, 'My lamp broke.');
    for (const approval of await turn.approvals()) await approval.approve({ by: 'ada' });
    expect(await turn.output()).toEqual({ text: 'Done.' });
    expect(await turn.approvals()).toEqual([]);
    await using other = await createRondo({ store: newStore(), models: { test: replies() } });
    const running = await other.start(both, null);
    const [approval] = await running.approvals();
    expect(approval).toMatchObject({ tool: 'support.refund', arguments: { order: 'o-7' } });
    await approval?.approve({ by: 'ada' });
    expect(await running.output()).toEqual({ text: 'Done.' });
    await expect(rondo.turn('ses_none.t1').approvals()).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
  },
);

verifies('rondo.turn', 'a second runtime on the same store resumes a paused turn with its own code', async () => {
  const store = newStore();
  const first = await createRondo({ store, models: { test: replies() } });
  const { id } = await first.start(support, 'My lamp broke.');
  expect(await first.turn(id).result()).toMatchObject({ status: 'paused' });
  await first.close();
  await using second = await createRondo({ store, loops: [support], models: { test: replies() } });
  const [approval] = await second.approvals();
  await second.deny(approval?.id ?? '', { by: 'ada', reason: 'too late' });
  expect(await second.turn(id, support).result()).toMatchObject({ status: 'ok', output: { text: 'Done.' } });
});

verifies('rondo.turn', 'events yields what another runtime writes, until the turn ends there', async () => {
  const store = newStore();
  const wait = defineLoop({ id: 'wait', input: true, output: true, run: (_, scope) => scope.sleep(400) });
  await using worker = await createRondo({ store });
  const { id } = await worker.start(wait, null);
  await using watcher = await createRondo({ store });
  const types: string[] = [];
  for await (const { type } of watcher.turn(id).events()) types.push(type);
  expect(types).toEqual(['loop-triggered', 'tool-result']);
  const unknown = watcher.turn('ses_none.t1').events();
  await expect(unknown.next()).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
});

verifies(
  'rondo.turn',
  'a turn whose loop is not registered here waits for another process, with a warning',
  async () => {
    const store = newStore();
    const first = await createRondo({ store, models: { test: replies() } });
    const { id } = await first.start(support, 'My lamp broke.');
    await first.turn(id).approvals();
    await first.close();
    const warned = new Promise<Error>((resolve) => {
      process.on('warning', (warning) => /support/.test(warning.message) && resolve(warning));
    });
    await using second = await createRondo({ store });
    for (const approval of await second.turn(id).approvals()) await approval.approve({ by: 'ada' });
    const result = second.turn(id).result();
    expect((await warned).message).toMatch(/support.*createRondo\(\{ loops \}\)/s);
    await using worker = await createRondo({ store, loops: [support], models: { test: replies() } });
    await worker.resume(id);
    expect(await result).toMatchObject({ status: 'ok', output: { text: 'Done.' } });
  },
);

verifies('rondo.close', 'closing interrupts running turns, and resumeAll continues them', async () => {
  const store = newStore();
  const nap = defineLoop({
    id: 'nap',
    input: z.object({ ms: z.number() }),
    output: z.literal('rested'),
    run: async ({ ms }, scope) => {
      await scope.sleep(ms);
      return 'rested' as const;
    },
  });
  const first = await createRondo({ store });
  const turn = await first.start(nap, { ms: 300 });
  await first.close();
  await expect(first.run(nap, { ms: 1 })).rejects.toMatchObject({ code: expect.stringMatching(/CLOSED/) });
  await using second = await createRondo({ store, loops: [nap] });
  expect(await second.resumeAll()).toMatchObject([{ status: 'ok', turnId: turn.id, output: 'rested' }]);
});

verifies('rondo.run', 'runTurn runs a request as run does, and refuses what it does not know', async () => {
  const rondo = await createRondo({ store: 'memory:' });
  try {
    const request = { loop: greet, input: { name: 'Ada' }, key: 'k', session: 's' };
    const first = await rondo.runTurn(request);
    const same = await rondo.run(greet, { name: 'Ada' }, { key: 'k', session: 's' });
    expect(same.turnId).toBe(first.turnId);
    expect((await rondo.turns()).length).toBe(1);
    const later = await rondo.runTurn({
      ...(JSON.parse(JSON.stringify({ input: { name: 'Bob' } })) as object),
      loop: 'greet',
    });
    expect(later).toMatchObject({ status: 'ok' });
    await expect(rondo.runTurn({ ...request, sesion: 's' } as never)).rejects.toThrow(/sesion/);
    await expect(rondo.run(greet, { name: 'Ada' }, { loop: 'other' } as never)).rejects.toThrow(/loop/);
  } finally {
    await rondo.close();
  }
});

verifies(
  'rondo.run',
  'a key, session or principal that cannot be used is a typed error that says what is wrong',
  async () => {
    await using rondo = await createRondo({ store: 'memory:' });
    const refusals: readonly (readonly [options: object, option: string, message: string])[] = [
      [
        { key: '' },
        'key',
        'The key is empty. A key is text of 1 to 1,000 characters; without one, every request starts a',
      ],
      [{ key: 5 }, 'key', 'The key is no text but a number.'],
      [{ key: null }, 'key', 'The key is no text but null.'],
      [{ key: 'k'.repeat(1001) }, 'key', 'The key has 1001 characters.'],
      [{ key: '\ud800' }, 'key', 'The key has lone surrogates.'],
      [{ session: '' }, 'session', 'A session id is 1 to 100 letters'],
      [{ as: ' ' }, 'principal', 'A principal is text of 1 to 200 characters'],
    ];
    for (const [options, option, message] of refusals) {
      const error = await rondo.run(greet, { name: 'Ada' }, options).catch((thrown: unknown) => thrown);
      expect(error, JSON.stringify(options)).toBeInstanceOf(LoopError);
      expect(error).toMatchObject({
        code: 'REQUEST_INVALID',
        data: { option },
        message: expect.stringContaining(message),
      });
    }
    expect(await rondo.turns(), 'a refused request started a turn').toEqual([]);
  },
);
