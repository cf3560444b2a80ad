import { expect } from 'vitest';
import { agentDef, told } from '../../../spec/turns/agents.js';
import { hostOf, tool } from '../../../spec/turns/stage.js';
import { verifies } from '../../../spec/verifies.js';

verifies('agent.rounds', 'an agent does not run what its model chose, or does not tell it the result', async () => {
  const backend = told([{ text: 'Let me add. ', calls: [['add', { a: 1, b: 2 }]] }, { text: 'It is 3.' }]);
  const host = hostOf([agentDef('agent', { tools: ['add'] }), tool('add', 'builtin:add')], {
    backends: [backend],
    tools: { add: (input) => (input as { a: number; b: number }).a + (input as { a: number; b: number }).b },
  });
  const result = await host.run({ loop: 'agent', input: { prompt: '1 + 2?' }, sessionId: 's' });
  expect(result).toMatchObject({ status: 'ok', output: { text: 'It is 3.' } });
  expect(backend.asked[1]?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  expect((await host.archive.events('s')).map(({ type }) => type)).toEqual([
    'user-message',
    'assistant-message',
    'tool-call',
    'tool-result',
    'assistant-message',
  ]);
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});

verifies('approval.bound', 'a tool that is asked about runs before anybody said yes', async () => {
  const backend = told([{ calls: [['pay', { amount: 5 }]] }, { text: 'Paid.' }]);
  let paid = 0;
  const host = hostOf([agentDef('agent', { tools: ['pay'], approvals: { pay: 'ask' } }), tool('pay', 'builtin:pay')], {
    backends: [backend],
    tools: { pay: () => ++paid },
  });
  const paused = await host.run({ loop: 'agent', input: { prompt: 'pay' }, sessionId: 's' });
  expect(paused).toMatchObject({ status: 'paused', pending: [{ kind: 'approval' }] });
  expect(paid).toBe(0);
  const [approval] = await host.archive.approvals();
  expect(approval).toMatchObject({ tool: 'pay', arguments: { amount: 5 }, path: ['agent', 'pay'], sessionId: 's' });
  await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  const result = await host.resume(paused.turnId);
  expect(result).toMatchObject({ status: 'ok', output: { text: 'Paid.' } });
  expect(paid).toBe(1);
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});
