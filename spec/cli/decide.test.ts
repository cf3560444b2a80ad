// Approvals from the command line: listed, answered from any process, and each approved tool runs once.

import { expect } from 'vitest';
import type { Approval, EventEnvelope, TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { tool, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { Agents, call } from './agents.js';
import { attacks, HARMFUL } from './attacks.js';

const run = ['run', 'payer', '--input', '{"prompt": "pay"}', '--session', 's'];

interface Decided {
  readonly approval: Approval;
  readonly approved: boolean;
  readonly turn: TurnResult;
}

verifies('cli.decide', 'a turn that waits for a person says for what, and how to answer', async () => {
  const project = new Agents().payer();
  const { code, stdout, stderr } = await project.run(run);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  const [approval] = await project.approvals();
  expect(approval).toMatchObject({
    id: expect.stringMatching(/^s\.[0-9a-f]+:.+/),
    sessionId: 's',
    turnId: expect.stringMatching(/^s\./),
    callId: expect.stringContaining('/'),
    tool: 'pay',
    arguments: { amount: 5 },
    argumentsDigest: expect.any(String),
    description: 'Run pay?',
    requestedAt: expect.stringMatching(/Z$/),
    expiresAt: expect.stringMatching(/Z$/),
    path: ['payer', 'pay'],
  });
  const { id = '', turnId = '' } = approval ?? {};
  expect(stderr).toContain(`Waits for approval ${id}`);
  expect(stderr).toContain(`rondo approve ${id}`);
  expect(stderr).not.toContain('rondo resume');
  for (const verb of ['status', 'resume'])
    expect(Object.values(await project.run([verb, turnId])).join('\n')).toContain(`rondo approve ${id}`);
  expect((await project.run(['runs'])).stdout).toContain('waits for an approval');
  const human = await project.run(['approvals']);
  expect(human.stdout).toMatch(/^APPROVAL +TOOL +EXPIRES +PATH\n/);
  for (const part of ['payer › pay', '│ {"amount":5}', '│ Run pay?', `rondo deny ${id} --reason`])
    expect(human.stdout).toContain(part);
  expect(await project.json(['approvals', '--session', 'other'])).toEqual([]);
  expect((await new Agents().run(['approvals'])).stderr).toBe('There are no pending approvals.\n');
});

verifies('cli.decide', 'a yes goes on with the turn, and counts once', async () => {
  const project = new Agents().payer();
  await project.run(run);
  const id = (await project.approvals())[0]?.id ?? '';
  const yes = await project.run(['approve', id.slice(id.indexOf(':'), -4), '--as', 'ada', '--json']);
  expect(yes.code).toBe(0);
  const decided = JSON.parse(yes.stdout) as Decided;
  expect(decided).toMatchObject({ approval: { id, tool: 'pay' }, approved: true, turn: { status: 'ok' } });
  expect(decided.turn.trace.length).toBeGreaterThan(0);
  expect(yes.stderr).toContain(`Approved: payer › pay (${id}).`);
  expect(yes.stderr).toMatch(/^ok after/m);
  expect(project.paid).toEqual(['5']);
  const again = await project.run(['approve', id, '--json']);
  expect(again.code).toBe(1);
  expect(JSON.parse(again.stdout)).toMatchObject({ error: { code: 'ANSWER_REFUSED' } });
  expect(again.stderr).toContain('it was answered before');
  expect(project.paid).toEqual(['5']);
});

verifies('cli.decide', 'an answer is kept when the turn cannot go on here', async () => {
  const project = new Agents().payer();
  await project.run(run);
  const { id = '', turnId = '' } = (await project.approvals())[0] ?? {};
  project.trusted = false;
  const yes = await project.run(['approve', id, '--json']);
  expect(yes.code).toBe(0);
  expect(JSON.parse(yes.stdout)).toMatchObject({ approved: true, error: { code: 'DEFINITION_INVALID' } });
  expect(yes.stderr).toContain(`rondo resume ${turnId}`);
  expect(project.paid).toEqual([]);
  expect(await project.approvals()).toEqual([]);
  expect(await project.json(['resume', turnId, '--trust', 'loops'])).toMatchObject({ status: 'ok' });
  expect(project.paid).toEqual(['5']);
});

verifies('cli.decide', 'a no does not run the tool, and the agent is told why', async () => {
  const project = new Agents().payer('payer', [{ text: 'Then not.', expect: ['far too much'] }]);
  await project.run(run);
  const id = (await project.approvals())[0]?.id ?? '';
  const no = await project.run(['deny', id, '--reason', 'far too much', '--as', 'ada']);
  expect(no).toMatchObject({ code: 0, stdout: '' });
  expect(no.stderr).toContain('Denied: payer › pay');
  expect(no.stderr).toMatch(/^ok after/m);
  expect(project.paid).toEqual([]);
  const lines = (await project.run(['events', 's', '--json'])).stdout.trimEnd().split('\n');
  const events = lines.map((line) => JSON.parse(line) as EventEnvelope);
  expect(events.find(({ type }) => type === 'tool-error')).toMatchObject({ content: { isUserRejection: true } });
  expect(events.at(-1)).toMatchObject({ type: 'assistant-message', content: { text: 'Then not.' } });
});

verifies('cli.decide', 'only those who may answer do, and only what was asked', async () => {
  const project = new Agents().payer();
  await project.run([...run, '--as', 'ada', '--approver', 'bob', '--approver', 'carol']);
  const [approval] = await project.approvals();
  expect(approval).toMatchObject({ principal: 'ada', approvers: ['bob', 'carol'] });
  const id = approval?.id ?? '';
  const refused = async (args: readonly string[], code: number, why: string): Promise<void> => {
    const ended = await project.run(args);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(why);
    expect(project.paid).toEqual([]);
  };
  await refused(['approve', id, '--as', 'eve'], 1, 'eve may not answer it');
  await refused(['approve', id, '--as', 'payer'], 1, 'an agent may not answer for itself');
  await refused(['approve', 's.1:nonsense', '--as', 'bob'], 1, 'there is no such approval');
  await refused(['approve', id, '--as', ' '], 64, '--as must not be empty');
  await refused(['approve', id, '--as', 'bob', '--when', '{'], 64, '--when cannot be read as JSON');
  await refused(['approve', id, '--as', 'bob', '--when', '{}'], 1, 'needs a written predicate');
  await refused(['deny', id, '--when', '{}'], 64, "Unknown option '--when'");
  await refused(['approve'], 64, 'approval');
  await refused([...run, '--approver', ''], 64, 'must not be empty');
  expect((await project.run(['approve', id, '--as', 'carol'])).code).toBe(0);
  expect(project.paid).toEqual(['5']);
});

verifies('cli.decide', 'an id that is cut so short that it fits several approvals answers none', async () => {
  const project = new Agents().deep();
  await project.run(['run', 'top', '--input', '{"prompt": "x"}', '--session', 'many']);
  const both = await project.approvals();
  const vague = await project.run(['approve', 'many.']);
  expect(vague).toMatchObject({ code: 64, stdout: '' });
  expect(vague.stderr).toContain('matches 2 approvals');
  for (const { id } of both) expect(vague.stderr).toContain(id);
  expect(project.paid).toEqual([]);
});

verifies('cli.decide', 'a standing grant holds for what was written, and for no more', async () => {
  const pays = [3, 4, 50].map((amount) => ({ toolCalls: [call('pay', { amount })] }));
  const project = new Agents().agent('payer', [...pays, { text: 'Done.' }], {
    tools: ['pay'],
    approvals: { pay: 'ask' },
  });
  await project.run(run);
  const [first] = await project.approvals();
  const small = project.write('small.json', { properties: { amount: { maximum: 20 } } });
  const decided = await project.json<Decided>(['approve', first?.id ?? '', '--when', `@${small}`]);
  expect(decided.turn).toMatchObject({ status: 'paused', pending: [{ kind: 'approval' }] });
  expect(project.paid).toEqual(['3', '4']);
  const [third] = await project.approvals();
  expect(third).toMatchObject({ arguments: { amount: 50 } });
  expect((await project.run(['deny', third?.id ?? ''])).code).toBe(0);
  expect(project.paid).toEqual(['3', '4']);
});

verifies('cli.decide', 'an approval that has expired cannot be given any more', async () => {
  const project = new Agents().payer();
  await project.run(run);
  const [approval] = await project.approvals();
  const later = { env: { RONDO_NOW: new Date(Date.parse(approval?.expiresAt ?? '') + 1000).toISOString() } };
  const listed = await project.run(['approvals'], later);
  expect(listed.stdout).toContain('(expired)');
  expect(listed.stdout).not.toContain('rondo approve');
  const late = await project.run(['approve', approval?.id ?? ''], later);
  expect(late.code).toBe(1);
  expect(late.stderr).toContain('it expired at');
  expect(project.paid).toEqual([]);
});

verifies(
  'cli.contract',
  'an agent that stopped short is told from one that is done and from one that failed',
  async () => {
    const project = new Agents().agent('endless', [{ toolCalls: [call('pay', { amount: 1 })] }], {
      tools: ['pay'],
      maxRounds: 1,
    });
    const { code, stdout, stderr } = await project.run(['run', 'endless', '--input', '{"prompt": "x"}', '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ status: 'stopped', reason: expect.stringContaining('rounds') });
    expect(stderr).toContain('Stopped: rounds');
    const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs', '--status', 'stopped']);
    expect(runs).toMatchObject([{ status: 'stopped', reason: expect.stringContaining('rounds') }]);
    const shown = await project.run(['status', runs[0]?.turnId ?? '']);
    expect(shown.stdout).toMatch(/^status +stopped$/m);
    expect(shown.stdout).toMatch(/^reason +rounds/m);
    expect((await project.run(['runs'])).stdout).toContain('rounds');
  },
);

verifies('cli.contract', 'what was said in a session can be read by people and by programs', async () => {
  const project = new Agents().deep();
  await project.run(['run', 'top', '--input', '{"prompt": "please"}', '--session', 'talk']);
  const { code, stdout } = await project.run(['events', 'talk', '--text']);
  expect(code).toBe(0);
  expect(stdout).toContain('› please\n');
  expect(stdout).toContain('    │ I pay twice.\n    ● pay {"amount":1}\n    ? pay waits for approval\n');
  const lines = (await project.run(['events', 'talk', '--json'])).stdout.trimEnd().split('\n');
  expect((await project.run(['events', 'talk'])).stdout.trimEnd().split('\n')).toEqual(lines);
  const events = lines.map((line) => JSON.parse(line) as EventEnvelope);
  expect(events[0]).toMatchObject({ sessionId: 'talk', type: 'user-message', content: { text: 'please' } });
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  const none = await project.run(['events', 'nothing', '--json']);
  expect(none).toMatchObject({ code: 1, stdout: '' });
  await project.run(['run', 'pay', '--input', '{"amount": 1}', '--session', 'mute']);
  expect((await project.run(['events', 'mute'])).stderr).toContain('This session has no conversation');
});

verifies(
  'approval.display',
  'the list of approvals shows what a model put into the arguments, bounded and escaped',
  async () => {
    const some = attacks.filter((attack) => attack.length < 5000);
    const calls = some.map((attack) => call('pay', { amount: attack }));
    const huge = call('pay', { amount: 'x'.repeat(1024 * 1024) });
    const project = new Agents().agent('payer', [{ toolCalls: [...calls, huge] }], {
      tools: ['pay'],
      approvals: { pay: 'ask' },
    });
    expect((await project.run(run)).code).toBe(2);
    const { code, stdout, stderr } = await project.run(['approvals']);
    expect(code).toBe(0);
    expect(stdout + stderr).not.toMatch(HARMFUL);
    expect(stdout.match(/^\? Approval /gm)).toHaveLength(calls.length + 1);
    expect(stdout).not.toMatch(/^\? Approve/m);
    expect(stdout.length).toBeLessThan(3000 * (calls.length + 1));
    expect((await project.run(['events', 's', '--text'])).stdout).not.toMatch(HARMFUL);
  },
);

verifies('cli.owner', 'an approval is answered while another process has the store', async () => {
  const project = new Agents().payer();
  const owner = await project.held('go');
  const paused = await project.run(run);
  expect(paused.code).toBe(2);
  const id = (await project.approvals())[0]?.id ?? '';
  const wrong = await project.run(['approve', id, '--as', 'pay']);
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain('an agent may not answer for itself');
  const decided = await project.json<Decided>(['approve', id, '--as', 'ada']);
  expect(decided).toMatchObject({ approved: true, turn: { status: 'ok', output: { text: 'It is paid.' } } });
  expect(project.paid).toEqual(['5']);
  expect(owner.child.exitCode).toBe(null);
  project.release('go');
  expect((await owner.ended).code).toBe(0);
});

verifies('cli.owner', 'an approval reaches a turn that still runs in another process', async () => {
  const slow = [{ toolCalls: [call('wait', { ms: 300 })] }, { toolCalls: [call('hold', { until: 'go' })] }];
  const both = [call('pay', { amount: 5 }), call('slow', { prompt: 'x' })];
  const project = new Agents()
    .agent('payer', [{ toolCalls: both }, { text: 'Both.' }], { tools: ['pay', 'slow'], approvals: { pay: 'ask' } })
    .agent('slow', [...slow, { text: 'Slow.' }], { tools: ['wait', 'hold'] });
  project.write('loops/wait.json', tool('wait', 'wait'));
  const running = project.start([...run, '--json']);
  const id = await until(async () => {
    const { stdout } = await project.run(['approvals', '--json']);
    return stdout.startsWith('[') ? (JSON.parse(stdout) as readonly Approval[])[0]?.id : undefined;
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

/** Three agents deep, two approvals wait; answered in this order, each tool has run once. */
async function answered(project: Agents, order: readonly number[]): Promise<void> {
  const both = await project.approvals();
  expect(both).toMatchObject([
    { tool: 'pay', path: ['top', 'mid', 'low', 'pay'], arguments: { amount: 1 } },
    { tool: 'pay', path: ['top', 'mid', 'low', 'pay'], arguments: { amount: 2 } },
  ]);
  const ends: TurnResult[] = [];
  for (const index of order) {
    const { turn } = await project.json<Decided>(['approve', both[index]?.id ?? '', '--as', 'ada']);
    ends.push(turn);
  }
  expect(ends.map(({ status }) => status)).toEqual(['paused', 'ok']);
  expect(ends[1]).toMatchObject({ output: { text: 'All done.' } });
  expect(project.paid).toEqual(order.map((index) => String(index + 1)));
  expect(await project.approvals()).toEqual([]);
  expect(await project.json(['replay', ends[1]?.turnId ?? ''])).toMatchObject({ matches: true });
}

const top = ['run', 'top', '--input', '{"prompt": "x"}'];

verifies(
  'approval.depth',
  'what waits three agents down is answered, in any order, after its process has ended',
  async () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const project = new Agents().deep();
      expect((await project.run(top)).code).toBe(2);
      await answered(project, order);
    }
  },
);

verifies(
  'approval.depth',
  'what waits three agents down is answered, and done once, after its process was killed',
  async () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const project = new Agents().deep();
      const owner = await project.held('go');
      expect((await project.run(top)).code).toBe(2);
      owner.child.kill('SIGKILL');
      await owner.ended;
      await answered(project, order);
    }
  },
);
