import { test } from 'vitest';
import { agentDef, told } from '../turns/agents.js';
import { composite, hostOf, prompt, tool } from '../turns/stage.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { defineLoop } from '../../src/loops/define.js';
import { defineAgent } from '../../src/loops/define-agent.js';
import { loopsTool } from '../../src/protocol/tool.js';
import { z } from 'zod';
import { modelOf } from '../turns/agents.js';
const log = (...a: unknown[]) => process.stdout.write(a.map((x) => typeof x === 'string' ? x : JSON.stringify(x)).join(' ') + '\n');
const tr = async (f: () => Promise<unknown>) => { try { return await f(); } catch (e) { return `THROWN ${(e as {name:string}).name} ${(e as {code?:string}).code} ${(e as Error).message}`; } };
const ask = { policy: { approval: 'ask' as const } };

test('deep args', async () => {
  for (const n of [200, 300, 3000, 10000, 100000]) {
    const deep = '['.repeat(n) + ']'.repeat(n);
    const h = hostOf([tool('t', 'builtin:go'), agentDef('a', { tools: ['t'] })], { tools: { go: () => 1 }, backends: [told([{ calls: [['t', deep]] }, { text: 'x' }])] });
    const r = await tr(async () => { const r = await h.run({ loop: 'a', input: { prompt: 'x' } }); return [r.status, r.error, await h.replay(r.turnId)]; });
    log('deep', n, r);
    const h2 = hostOf([tool('t', 'builtin:go'), agentDef('a', { tools: ['t'] })], { tools: { go: () => 1 }, backends: [told([{ calls: [['nope', deep]] }, { text: 'x' }])] });
    log('deep unknown', n, await tr(async () => { const r = await h2.run({ loop: 'a', input: { prompt: 'x' } }); return [r.status, r.error, (await h2.archive.events(r.sessionId)).length]; }));
  }
});
test('standing while running and at the end', async () => {
  for (const safety of ['pure', 'idempotent', 'once'] as const) {
    let slow = () => {};
    const defs = [{ ...tool('t', 'builtin:go'), tool: { implementation: 'builtin:go', safety } }, tool('slow', 'builtin:slow'), agentDef('a', { tools: ['t', 'slow'], approvals: { t: 'ask' } })];
    const h = hostOf(defs, { tools: { go: () => 1, slow: () => new Promise<void>((r) => { slow = r; }) }, backends: [told([{ calls: [['t', { a: 1 }], ['slow', {}]] }, { text: 'd' }, { calls: [['t', { a: 1 }]] }, { text: 'd' }])] });
    const run = h.run({ loop: 'a', input: { prompt: 'p' }, sessionId: 'S' });
    await new Promise((r) => setTimeout(r, 30));
    const running = (h as unknown as { running: Map<string, { governed: { approvals: { pending(): { id: string }[] } } }> }).running;
    const [a] = [...running.values()][0]!.governed.approvals.pending();
    slow();
    await new Promise((r) => setTimeout(r, 0));
    log(safety, 'answer', await tr(async () => !!(await h.answer({ id: a!.id, approved: true, by: 'x', standing: { const: { a: 1 } } }))));
    const r = await run;
    log(r.status);
    log((await h.run({ loop: 'a', input: { prompt: 'again' }, sessionId: 'S' })).status);
  }
});
test('refusals session', async () => {
  const h = hostOf([tool('t', 'builtin:go', ask)], { tools: { go: () => 1 } });
  const r = await tr(async () => (await h.run({ loop: 't', input: {}, sessionId: 'rondo:refusals' })).status);
  log('refusals session as own', r as string);
});
test('names', async () => {
  for (const name of ['a' + '😀'.repeat(200), '__proto__', 'constructor', 'x'.repeat(1_000_000), '\ud800', '', '*', 't\u0000', 't ', 'T']) {
    let ran = 0;
    const h = hostOf([tool('t', 'builtin:go'), agentDef('a', { tools: ['t'] })], { tools: { go: () => ++ran }, backends: [told([{ calls: [[name, {}]] }, { text: 'x' }])] });
    log('name', JSON.stringify(name.slice(0, 10)), await tr(async () => { const r = await h.run({ loop: 'a', input: { prompt: 'x' } }); return [r.status, r.error?.message?.slice(0, 80), (await h.replay(r.turnId)).matches, ran]; }));
  }
});
test('never answers', async () => {
  const clock = new ManualClock(1000);
  const never = { id: 'told', defaultModel: 'm', open: async () => ({ specificationVersion: 'v3', provider: 'p', modelId: 'm', supportedUrls: {}, doGenerate: () => Promise.reject(new Error('x')), doStream: async () => ({ stream: new ReadableStream({}) }) }) } as never;
  const h = hostOf([agentDef('a', { stop: { deadlineMs: 500 } })], { clock, backends: [never] });
  const run = h.run({ loop: 'a', input: { prompt: 'x' } });
  await new Promise((r) => setTimeout(r, 20));
  await clock.advance(600);
  const r = await run;
  log('never', r.status, r.error ?? r.reason ?? '', await h.replay(r.turnId));
});
test('tool never returns', async () => {
  const clock = new ManualClock(1000);
  const h = hostOf([tool('t', 'builtin:go'), agentDef('a', { tools: ['t'], toolTimeoutMs: 100 })], { clock, tools: { go: () => new Promise(() => {}) }, backends: [told([{ calls: [['t', {}]] }, { text: 'x' }])] });
  const run = h.run({ loop: 'a', input: { prompt: 'x' } });
  await new Promise((r) => setTimeout(r, 20));
  await clock.advance(600);
  const r = await run;
  log('never tool', r.status, await h.replay(r.turnId));
});
test('describe never returns / code body never returns', async () => {
  const clock = new ManualClock(1000);
  const t = loopsTool({ name: 'lt', inputSchema: z.object({}), requestApproval: () => new Promise<string>(() => {}), execute: () => 'k' }).withApproval('ask');
  const agent = defineAgent({ id: 'ag', model: modelOf([{ calls: [['lt', {}]] }, { text: 'done' }]), tools: [t], toolTimeoutMs: 100 });
  const h = hostOf([], { clock });
  const run = h.run({ loop: agent, input: { prompt: 'hi' } });
  await new Promise((r) => setTimeout(r, 20));
  await clock.advance(600);
  log('describe hangs:', await Promise.race([run.then((r) => r.status), new Promise((r) => setTimeout(() => r('HANG'), 200))]) as string);
  const body = defineLoop({ id: 'b', input: true, output: true, body: () => new Promise(() => {}) as never });
  const agent2 = defineAgent({ id: 'ag2', model: modelOf([{ calls: [['b', {}]] }, { text: 'done' }]), tools: [body as never], toolTimeoutMs: 100, stop: { deadlineMs: 200 } });
  const h2 = hostOf([], { clock });
  const run2 = h2.run({ loop: agent2, input: { prompt: 'hi' } });
  await new Promise((r) => setTimeout(r, 20));
  await clock.advance(600);
  log('body hangs:', await Promise.race([run2.then((r) => r.status), new Promise((r) => setTimeout(() => r('HANG'), 200))]) as string);
});
