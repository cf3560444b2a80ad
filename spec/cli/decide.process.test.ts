// Approvals between processes: answered while another one owns the store, and after the process that asked has ended.

import { expect } from 'vitest';
import type { Approval, TurnResult } from '../../src/protocol/index.js';
import { tool, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { Agents, type AnswerReport, call, RUN_PAYER } from './agents.js';

verifies('cli.owner', 'an approval can be answered while another process owns the store', async () => {
  const project = new Agents().payer();
  const owner = await project.startHeld('go');
  const paused = await project.run(RUN_PAYER);
  expect(paused.code).toBe(2);
  const id = (await project.approvals())[0]?.id ?? '';
  const wrong = await project.run(['approve', id, '--as', 'pay']);
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain('an agent may not answer for itself');
  const decided = await project.json<AnswerReport>(['approve', id, '--as', 'ada']);
  expect(decided).toMatchObject({ approved: true, turn: { status: 'ok', output: { text: 'It is paid.' } } });
  expect(project.paid).toEqual(['5']);
  expect(owner.child.exitCode).toBe(null);
  project.release('go');
  expect((await owner.ended).code).toBe(0);
});

verifies('cli.owner', 'an approval reaches a turn that runs in another process', async () => {
  const slow = [{ toolCalls: [call('wait', { ms: 300 })] }, { toolCalls: [call('hold', { until: 'go' })] }];
  const both = [call('pay', { amount: 5 }), call('slow', { prompt: 'x' })];
  const project = new Agents()
    .agent('payer', [{ toolCalls: both }, { text: 'Both.' }], { tools: ['pay', 'slow'], approvals: { pay: 'ask' } })
    .agent('slow', [...slow, { text: 'Slow.' }], { tools: ['wait', 'hold'] });
  project.write('loops/wait.json', tool('wait', 'wait'));
  const running = project.start([...RUN_PAYER, '--json']);
  const id = await until(async () => {
    const { stdout } = await project.run(['approvals', '--json']);
    return stdout.includes('"id"') ? (JSON.parse(stdout) as { approvals: Approval[] }).approvals[0]?.id : undefined;
  });
  const approving = project.start(['approve', id, '--json']);
  await until(() => project.paid.length > 0);
  expect(running.child.exitCode).toBe(null);
  project.release('go');
  const [first, second] = await Promise.all([running.ended, approving.ended]);
  expect(JSON.parse(first.stdout)).toMatchObject({ status: 'ok', output: { text: 'Both.' } });
  expect(second.code).toBe(0);
  expect(JSON.parse(second.stdout)).toMatchObject({ approved: true, turn: { status: 'ok' } });
  expect(project.paid).toEqual(['5']);
});

/** Answers the two approvals three agents deep in this order, and asserts that each tool ran once. */
async function answerInOrder(project: Agents, order: readonly number[]): Promise<void> {
  const both = await project.approvals();
  expect(both).toMatchObject([
    { tool: 'pay', path: ['top', 'mid', 'low', 'pay'], arguments: { amount: 1 } },
    { tool: 'pay', path: ['top', 'mid', 'low', 'pay'], arguments: { amount: 2 } },
  ]);
  const results: TurnResult[] = [];
  for (const index of order) {
    const { turn } = await project.json<AnswerReport>(['approve', both[index]?.id ?? '', '--as', 'ada']);
    results.push(turn);
  }
  expect(results.map(({ status }) => status)).toEqual(['paused', 'ok']);
  expect(results[1]).toMatchObject({ output: { text: 'All done.' } });
  expect(project.paid).toEqual(order.map((index) => String(index + 1)));
  expect(await project.approvals()).toEqual([]);
  expect(await project.json(['replay', results[1]?.turnId ?? ''])).toMatchObject({ matches: true });
}

const top = ['run', 'top', '--input', '{"prompt": "x"}'];

verifies(
  'approval.depth',
  'approvals three agents deep are answered in any order after their process ended',
  async () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const project = new Agents().deep();
      expect((await project.runProcess(top)).code).toBe(2);
      await answerInOrder(project, order);
    }
  },
);

verifies('approval.depth', 'tools three agents deep run once after their process was killed', async () => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const project = new Agents().deep();
    const owner = await project.startHeld('go');
    expect((await project.run(top)).code).toBe(2);
    owner.child.kill('SIGKILL');
    await owner.ended;
    await answerInOrder(project, order);
  }
});
