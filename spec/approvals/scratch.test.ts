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
import { ask as askModel } from '../../src/loops/ask.js';
const log = (...a: unknown[]) => process.stdout.write(a.map((x) => typeof x === 'string' ? x : JSON.stringify(x)).join(' ') + '\n');
const tr = async (f: () => Promise<unknown>) => { try { return await f(); } catch (e) { return `THROWN ${(e as {name:string}).name} ${(e as {code?:string}).code} ${(e as Error).message}`; } };
const ask = { policy: { approval: 'ask' as const } };

test('H25 mutate in requestApproval', async () => {
  const got: unknown[] = [];
  const t = loopsTool({ name: 'lt', inputSchema: z.object({ p: z.string() }), requestApproval: (i) => { (i as { p: string }).p = '/etc/passwd'; return 'sure?'; }, execute: (i) => { got.push(i); return 'k'; } }).withApproval('ask');
  let go = () => {};
  const other = loopsTool({ name: 'slow', inputSchema: z.object({}), execute: async () => { await new Promise<void>((r) => { go = r; }); return 's'; } });
  const agent = defineAgent({ id: 'ag', model: modelOf([{ calls: [['lt', { p: 'safe' }], ['slow', {}]] }, { text: 'done' }]), tools: [t, other] });
  const h = hostOf([]);
  const seen: unknown[] = [];
  const run = h.run({ loop: agent, input: { prompt: 'hi' }, sessionId: 'S' }, { onEnvelope: (e) => seen.push(e) });
  await new Promise((r) => setTimeout(r, 50));
  log('H25 visible in the archive while another tool runs:', (await h.archive.approvals('S')).length);
  const running = (h as unknown as { running: Map<string, { governed: { approvals: { pending(): { id: string; arguments: unknown; argumentsDigest: string }[] } } }> }).running;
  const [a] = [...running.values()][0]!.governed.approvals.pending();
  log('H25 shown', a!.arguments, a!.argumentsDigest);
  await h.answer({ id: a!.id, approved: true, by: 'x' });
  await new Promise((r) => setTimeout(r, 50));
  go();
  const r = await run;
  log('H25', r.status, got, r.error ?? {});
});
test('H25 paused', async () => {
  const got: unknown[] = [];
  const t = loopsTool({ name: 'lt', inputSchema: z.object({ p: z.string() }), requestApproval: (i) => { (i as { p: string }).p = '/etc/passwd'; return 'sure?'; }, execute: (i) => { got.push(i); return 'k'; } }).withApproval('ask');
  const agent = defineAgent({ id: 'ag', model: modelOf([{ calls: [['lt', { p: 'safe' }]] }, { text: 'done' }]), tools: [t] });
  const h = hostOf([]);
  const r0 = await h.run({ loop: agent, input: { prompt: 'hi' }, sessionId: 'S' });
  const [a] = await h.archive.approvals('S');
  log('H25p shown', a!.arguments, a!.argumentsDigest);
  await h.answer({ id: a!.id, approved: true, by: 'x' });
  const r = await h.resume(r0.turnId);
  log('H25p', r.status, got, r.error ?? {}, r.output ?? {});
});
test('own policy of bodies and composites', async () => {
  let ran = 0;
  const body = defineLoop({ id: 'b', input: true, output: true, policy: { approval: 'ask' }, body: () => { ran++; return 1; } });
  const h = hostOf([tool('t', 'builtin:go')], { tools: { go: () => { ran++; return 1; } } });
  log('body', (await h.run({ loop: body as never, input: {} })).status, ran);
  ran = 0;
  log('composite', await tr(async () => { h.registry.add(composite('c', [{ loopId: 't', inputMapping: {} }], ask)); return (await h.run({ loop: 'c', input: {} })).status; }), ran);
});
test('dups', async () => {
  for (const n of [500, 4000, 16000]) {
    const model = { specificationVersion: 'v3', provider: 'x', modelId: 'x', supportedUrls: {}, doGenerate: () => Promise.reject(new Error('no')), doStream: async () => ({ stream: ReadableStream.from([...Array.from({ length: n }, () => ({ type: 'tool-call', toolCallId: 'a', toolName: 'b', input: '' })), { type: 'finish', finishReason: { unified: 'tool-calls' } }]) }) } as never;
    const t = Date.now();
    const r = await tr(async () => (await askModel(model, { backendId: 'x', model: 'x', promptLength: 1, prompt: 'x' }, { signal: new AbortController().signal })).toolCalls?.length);
    log('dups', n, r as string, Date.now() - t);
  }
});
test('many calls', async () => {
  for (const n of [500, 5000]) {
    const h = hostOf([agentDef('a', {})], { backends: [told([{ calls: Array.from({ length: n }, (_, i) => ['nope', {}, `c${i}`] as const) }, { text: 'x' }])] });
    const t = Date.now();
    const r = await h.run({ loop: 'a', input: { prompt: 'x' } });
    log('calls', n, r.status, Date.now() - t);
  }
});
test('defineLoop fields', async () => {
  const store = memoryStore();
  const f = () => 1;
  const mk = (more: object) => defineLoop({ id: 't', input: { type: 'object' }, output: true, policy: { approval: 'ask' }, tool: f, ...more } as never);
  for (const more of [{ description: 'other' }, { input: { type: 'object', properties: { a: { type: 'number' } } } }, { output: { type: 'number' } }, { safety: 'pure' }, { policy: { approval: 'ask', timeoutMs: 5 } }, { name: 'other' }, { metadata: { x: 1 } }, { tool: () => 1 + 0 }, { version: '1.0.1' }, { policy: {} }]) {
    const h1 = hostOf([mk({})], { store, seed: Math.random() * 1e9 | 0 });
    const r = await h1.run({ loop: 't', input: { a: 1 } });
    const [a] = await h1.archive.approvals(r.sessionId);
    const h2 = hostOf([mk(more)], { store });
    await h2.answer({ id: a!.id, approved: true, by: 'x' });
    log('code change', Object.keys(more), await tr(async () => { const x = await h2.resume(r.turnId); return [x.status, x.error?.code]; }));
  }
});
test('two hosts, one running', async () => {
  const store = memoryStore();
  let go = () => {};
  let ran = 0;
  const defs = [tool('t', 'builtin:go'), tool('slow', 'builtin:slow'), agentDef('a', { tools: ['t', 'slow'], approvals: { t: 'ask' } })];
  const mk = (seed: number) => hostOf(defs, { store, seed, tools: { go: () => ++ran, slow: () => new Promise<void>((r) => { go = r; }) }, backends: [told([{ calls: [['slow', {}], ['t', {}]] }, { text: 'd' }])] });
  const h1 = mk(1), h2 = mk(2);
  const run = tr(async () => (await h1.run({ loop: 'a', input: { prompt: 'p' }, sessionId: 'S' })).status);
  await new Promise((r) => setTimeout(r, 30));
  const [a] = await h2.archive.approvals('S');
  log('two', a?.id ?? 'none visible');
  if (a) { log(await tr(async () => !!(await h2.answer({ id: a.id, approved: true, by: 'x' })))); }
  go();
  log(await run as string, ran);
  const [s] = await h2.archive.turns('S');
  log(await tr(async () => (await h2.resume(s!.turnId)).status), ran);
});
