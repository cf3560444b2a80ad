// `rondo.hosted`: a hosted loop in code, from its start to its stop, and as the target of a signal handler.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { z } from 'zod';
import { type Reply, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { signDelivery } from '../../host/hosted/verify-signal.js';
import { createRondo, defineAgent, defineHostedLoop, defineLoop } from '../../index.js';
import type { ModelCallOptions } from '../../protocol/model.js';
import { signalHandler } from '../signals/index.js';

const newStore = (): string => `sqlite:${join(mkdtempSync(join(tmpdir(), 'rondo-')), 'journal.db')}`;

const double = defineLoop({
  id: 'double',
  input: z.object({ n: z.number() }),
  output: z.object({ n: z.number() }),
  run: async ({ n }) => ({ n: n * 2 }),
});

const grant = { allowedTools: ['double'], limits: {} };
const by = { by: 'ada' };

const doubling = defineHostedLoop({
  ...{ id: 'doubling', loop: double, input: { n: 1 }, grant },
  next: ({ last }) => last?.output as { readonly n: number },
  stop: { maxTurns: 3 },
});

const secret = `whsec_${Buffer.alloc(32, 5).toString('base64')}`;
const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
const onDemand = defineHostedLoop({
  ...{ id: 'on-demand', loop: double, next: '$.signal.payload', grant, stop: { maxTurns: 5 } },
  signals: {
    number: { schema, verify: { method: 'hmac-sha256', secret: 'env:NUMBER_SECRET' } },
    internal: { schema },
  },
});

verifies('hosted.control', 'rondo.hosted: a loop in code starts, runs, pauses, resumes and stops', async () => {
  const store = newStore();
  {
    await using rondo = await createRondo({ store });
    expect(await rondo.hosted.start(doubling, by)).toMatchObject({ loop: 'doubling', status: 'waiting', turns: 0 });
    expect(await rondo.hosted.pause('doubling', { ...by, reason: 'holiday' })).toMatchObject({ status: 'paused' });
    await rondo.work({ once: true });
    expect((await rondo.hosted.status('doubling')).turns).toBe(0);
    await rondo.hosted.resume('doubling', by);
  }
  await using rondo = await createRondo({ store });
  rondo.hosted.register(doubling);
  await rondo.work({ once: true });
  const [status] = await rondo.hosted.list();
  expect(status).toMatchObject({ loop: 'doubling', status: 'stopped', reason: 'max_turns', turns: 3 });
  const turns = await rondo.hosted.turns('doubling');
  expect(turns.map(({ key }) => key)).toEqual(['doubling#1', 'doubling#2', 'doubling#3']);
  expect(await rondo.resume(turns[2]?.turnId ?? '')).toMatchObject({ output: { n: 8 } });
  await rondo.hosted.start(onDemand, by);
  expect(await rondo.hosted.stop('on-demand', by)).toMatchObject({ status: 'stopped', reason: 'stopped_by' });
  await expect(rondo.hosted.start(onDemand, {} as never)).rejects.toThrow('`by`');
});

verifies('hosted.signals', 'rondo.hosted: a signal handler delivers to it only what is signed for it', async () => {
  await using rondo = await createRondo({ store: newStore() });
  await rondo.hosted.start(onDemand, by);
  const handle = signalHandler(rondo.hosted, { secret: () => secret });
  const post = async (name: string, id: string): Promise<number> => {
    const body = '{"n": 4}';
    const headers = signDelivery(secret, { id, body, timestamp: Math.floor(Date.now() / 1000) });
    const init = { method: 'POST', body, headers: { ...headers, 'content-type': 'application/json' } };
    return (await handle(new Request(`http://localhost/signals/on-demand/${name}`, init))).status;
  };
  expect([await post('number', 'd1'), await post('number', 'd1'), await post('internal', 'd2')]).toEqual([
    202, 200, 401,
  ]);
  const unsigned = rondo.hosted.deliver({ loop: 'on-demand', name: 'internal', payload: { n: 1 }, id: 'd3' });
  await expect(unsigned).rejects.toMatchObject({ code: 'SIGNAL_REFUSED' });
  expect(await rondo.hosted.signal('on-demand', 'internal', { n: 5 })).toBe('accepted');
  const outputs: unknown[] = [];
  await rondo.work({ once: true, onResult: (result) => outputs.push(result.status === 'ok' && result.output) });
  expect(outputs).toEqual([{ n: 8 }, { n: 10 }]);
});

verifies('hosted.control', 'rondo.hosted: a store without receipts starts no hosted loop, and says so', async () => {
  await using rondo = await createRondo({ store: 'memory:' });
  await expect(rondo.hosted.start(doubling, by)).rejects.toMatchObject({
    code: 'RECEIPT_NOT_FOUND',
    message: expect.stringContaining('Use a durable store'),
  });
});

verifies('hosted.context', 'rondo.run: without history, an agent sees nothing of the turns before', async () => {
  const seen: number[] = [];
  const reply = ({ prompt }: ModelCallOptions): Reply => {
    seen.push(prompt.length);
    return { text: 'Yes.' };
  };
  const model = replyProvider([reply, reply, reply]);
  await using rondo = await createRondo({ store: 'memory:', models: { lab: model } });
  const agent = defineAgent({ id: 'assistant', model: 'lab:one', tools: {} });
  await rondo.run(agent, 'One?', { session: 's' });
  await rondo.run(agent, 'Two?', { session: 's' });
  await rondo.run(agent, 'Three?', { session: 's', history: 'none' });
  expect(seen).toEqual([1, 3, 1]);
});
