import { expect } from 'vitest';
import { type ContextProject, contextHost, textsOf, withContext } from '../../spec/support/context-fixture.js';
import { composite, prompt, tool } from '../../spec/support/host-fixture.js';
import { testKeys } from '../../spec/support/receipt-keys.js';
import { agentDef, replyProvider } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import type { Json } from '../protocol/json.js';
import type { Host } from './host.js';

const backend = { id: 'replies' };
const FILES = { 'guide.md': 'First text.' };
const act = tool('act', 'builtin:act', { policy: { approval: 'ask' } });
const agent = agentDef('helper', { tools: ['act'], contextSkills: ['guide.md'] });
const ask = prompt('ask', 'Hello', {
  backend,
  prompt: { template: 'Hello', contextSkills: ['guide.md'] },
  policy: { approval: 'ask' },
});
const outer = composite('outer', [{ loopId: 'ask', inputMapping: '$.input' }]);

interface Paused {
  readonly host: Host;
  readonly turnId: string;
  readonly sessionId: string;
  readonly performed: Json[];
  readonly model: ReturnType<typeof replyProvider>;
}

/** Runs a turn until it waits for an approval, after it has loaded its context, and approves it. */
async function pausedTurn(project: ContextProject, loop: string): Promise<Paused> {
  const performed: Json[] = [];
  const model = replyProvider(
    loop === 'helper' ? [{ calls: [['act', { n: 1 }]] }, { text: 'done' }] : [{ text: 'ok' }],
  );
  const host = contextHost(project, [agent, act, ask, outer], {
    models: [model],
    tools: {
      act: (input) => {
        performed.push(input);
        return input;
      },
    },
  });
  const { turnId, sessionId, status } = await host.run({ loop, input: { prompt: 'x' } });
  expect(status).toBe('paused');
  for (const { id } of await host.archive.approvals(sessionId)) await host.answer({ id, approved: true, by: 'ada' });
  return { host, turnId, sessionId, performed, model };
}

const changes: readonly [name: string, change: (project: ContextProject) => void][] = [
  ['changed', (project) => project.write('guide.md', 'Second text.')],
  ['removed', (project) => project.remove()],
];

for (const loop of ['helper', 'ask', 'outer'])
  for (const [name, change] of changes)
    verifies('context.changed', `${loop}: a file that was ${name} stops the turn until it is restored`, async () => {
      await withContext(FILES, async (project) => {
        const { host, turnId, sessionId, performed, model } = await pausedTurn(project, loop);
        const before = await host.archive.entries(sessionId);
        const requests = model.requests.length;
        change(project);
        for (const attempt of [1, 2]) {
          const result = await host.resume(turnId);
          expect(result, `attempt ${attempt}`).toMatchObject({
            status: 'error',
            error: { code: 'CONTEXT_CHANGED', message: expect.stringContaining('"guide.md"') },
          });
        }
        expect(await host.archive.entries(sessionId), 'the journal was changed').toEqual(before);
        expect([performed.length, model.requests.length], 'something was performed').toEqual([0, requests]);
        project.write('guide.md', FILES['guide.md']);
        expect((await host.resume(turnId)).status).toBe('ok');
        expect(performed).toHaveLength(loop === 'helper' ? 1 : 0);
        expect(textsOf(model.requests.at(-1), 'user')[0]).toContain('First text.');
      });
    });

verifies('context.changed', 'a turn whose context has changed can be cancelled', async () => {
  await withContext(FILES, async (project) => {
    const { host, turnId, performed } = await pausedTurn(project, 'helper');
    project.write('guide.md', 'Second text.');
    await host.cancel(turnId, 'no longer needed');
    expect((await host.archive.status(turnId))[0]?.status).toBe('cancelled');
    expect(performed).toEqual([]);
  });
});

verifies(
  'context.changed',
  'a worker leaves a turn whose context has changed, and continues it once it is restored',
  async () => {
    await withContext(FILES, async (project) => {
      const { host, turnId, performed } = await pausedTurn(project, 'helper');
      project.write('guide.md', 'Second text.');
      const problems: string[] = [];
      await host.work({ once: true, onProblem: ({ code }) => problems.push(code) });
      expect([problems, performed]).toEqual([['CONTEXT_CHANGED'], []]);
      project.write('guide.md', FILES['guide.md']);
      await host.work({ once: true });
      expect((await host.archive.status(turnId))[0]?.status).toBe('ok');
      expect(performed).toHaveLength(1);
    });
  },
);

verifies('context.changed', 'the result of an ended turn does not depend on its files', async () => {
  await withContext(FILES, async (project) => {
    const { host, turnId } = await pausedTurn(project, 'helper');
    expect((await host.resume(turnId)).status).toBe('ok');
    project.write('guide.md', 'Second text.');
    expect((await host.resume(turnId)).status).toBe('ok');
  });
});

verifies('context.changed', 'a call that has ended does not stop the turn when its file changes', async () => {
  await withContext(FILES, async (project) => {
    const first = prompt('first', 'Hello', { backend, prompt: { template: 'Hello', contextSkills: ['guide.md'] } });
    const steps = [
      { loopId: 'first', inputMapping: '$.input' },
      { loopId: 'act', inputMapping: '$.input' },
    ];
    const host = contextHost(project, [first, act, composite('both', steps)], {
      models: [replyProvider([{ text: 'ok' }])],
      tools: { act: (input) => input },
    });
    const { turnId, status } = await host.run({ loop: 'both', input: { prompt: 'x' } });
    expect(status).toBe('paused');
    project.write('guide.md', 'Second text.');
    for (const { id } of await host.archive.approvals()) await host.answer({ id, approved: true, by: 'ada' });
    expect((await host.resume(turnId)).status).toBe('ok');
  });
});

verifies(
  'context.changed',
  'a recorded definition from a directory that is neither loaded nor trusted reads nothing there',
  async () => {
    await withContext(FILES, async (project) => {
      const store = memoryStore();
      const models = () => [replyProvider([{ calls: [['act', { n: 1 }]] }, { text: 'done' }])];
      const tools = { act: (input: Json) => input };
      const first = contextHost(project, [agent, act], { models: models(), tools, store });
      const { turnId } = await first.run({ loop: 'helper', input: { prompt: 'x' } });
      for (const { id } of await first.archive.approvals()) await first.answer({ id, approved: true, by: 'ada' });
      await withContext({}, async (elsewhere) => {
        const options = { models: models(), tools, store, ids: seededIds(2) };
        const refused = await contextHost(elsewhere, [], options).resume(turnId);
        expect(refused).toMatchObject({
          error: { code: 'CONTEXT_CHANGED', message: expect.stringContaining('not trusted') },
        });
        const trusting = contextHost(elsewhere, [], {
          ...options,
          trusts: (directory) => directory === project.directory,
        });
        expect((await trusting.resume(turnId)).status).toBe('ok');
      });
    });
  },
);

verifies(
  'context.receipts',
  'a host with keys summarizes receipts itself, and a changed summary stops the turn',
  async () => {
    await withContext({}, async (project) => {
      const store = memoryStore();
      const fails = composite('fails', [{ loopId: 'broken', inputMapping: '$.input' }]);
      let isBroken = true;
      const broken = (input: Json): Json => {
        if (isBroken) throw new Error('down');
        return input;
      };
      const model = replyProvider([{ calls: [['act', { n: 1 }]] }, { text: 'done' }]);
      const hostWith = (definitions: readonly unknown[], seed: number): Host =>
        contextHost(project, [act, fails, tool('broken', 'builtin:broken'), ...definitions], {
          ...{ store, ids: seededIds(seed), models: [model], receiptKeys: testKeys() },
          tools: { act: (input) => input, broken },
        });
      const first = hostWith([], 1);
      const failed = await first.run({ loop: 'fails', input: {} });
      const reader = agentDef('reader', { tools: ['act'], contextSkills: [`receipt:${failed.turnId}`] });
      const host = hostWith([reader], 2);
      const { turnId, sessionId, status } = await host.run({ loop: 'reader', input: { prompt: 'x' } });
      expect(status).toBe('paused');
      expect(textsOf(model.requests[0], 'user')[0]).toContain('"state":"error"');
      for (const { id } of await host.archive.approvals(sessionId))
        await host.answer({ id, approved: true, by: 'ada' });
      isBroken = false;
      expect((await first.retry(failed.turnId)).status).toBe('ok');
      const stopped = await host.resume(turnId);
      expect(stopped).toMatchObject({ status: 'error', error: { code: 'CONTEXT_CHANGED' } });
      expect(JSON.stringify(stopped)).toContain('Start a new turn');
      expect(model.requests, 'the model was asked with a changed context').toHaveLength(1);
    });
  },
);

verifies('context.receipts', 'an unchanged summary lets the turn continue', async () => {
  await withContext({}, async (project) => {
    const model = replyProvider([{ calls: [['act', { n: 1 }]] }, { text: 'done' }]);
    const definitions = [act, tool('echo'), agentDef('reader', { tools: ['act'], contextSkills: ['receipt:s.k'] })];
    const receipts = new Map([['s.k', 'ended ok']]);
    const host = contextHost(project, definitions, {
      ...{ models: [model], tools: { act: (input) => input } },
      summarizeReceipts: async (id) => receipts.get(id),
    });
    const { turnId, sessionId } = await host.run({ loop: 'reader', input: { prompt: 'x' } });
    for (const { id } of await host.archive.approvals(sessionId)) await host.answer({ id, approved: true, by: 'ada' });
    receipts.delete('s.k');
    expect(await host.resume(turnId)).toMatchObject({ error: { code: 'CONTEXT_CHANGED' } });
    receipts.set('s.k', 'ended ok');
    expect((await host.resume(turnId)).status).toBe('ok');
  });
});
