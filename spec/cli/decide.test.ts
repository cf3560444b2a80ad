// Approvals from the command line: listed, answered from any process, and each approved tool runs once.

import { expect } from 'vitest';
import type { EventEnvelope, TraceEvent, TurnStatus } from '../../src/protocol/index.js';
import { verifies } from '../verifies.js';
import { Agents, type AnswerReport, call, RUN_PAYER } from './agents.js';
import { attacks, HARMFUL } from './attacks.js';

verifies('cli.decide', 'a paused turn names its approval and the commands that answer it', async () => {
  const project = new Agents().payer();
  const { code, stdout, stderr } = await project.run(RUN_PAYER);
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
  expect(await project.json(['approvals', '--session', 'other'])).toEqual({ approvals: [] });
  expect((await new Agents().run(['approvals'])).stderr).toBe('There are no pending approvals.\n');
});

verifies('cli.decide', 'an approval resumes the turn, and is accepted once', async () => {
  const project = new Agents().payer();
  await project.run(RUN_PAYER);
  const id = (await project.approvals())[0]?.id ?? '';
  const yes = await project.run(['approve', id.slice(id.indexOf(':'), -4), '--as', 'ada', '--json']);
  expect(yes.code).toBe(0);
  const decided = JSON.parse(yes.stdout) as AnswerReport;
  expect(decided).toMatchObject({ approval: { id, tool: 'pay' }, approved: true, turn: { status: 'ok' } });
  expect(decided.turn.trace.length).toBeGreaterThan(0);
  expect(yes.stderr).toContain(`Approved: payer › pay (${id}).`);
  expect(yes.stderr).toMatch(/^ok after/m);
  expect(project.paid).toEqual(['5']);
  const again = await project.run(['approve', id, '--json']);
  expect(again.code).toBe(1);
  expect(JSON.parse(again.stdout)).toMatchObject({ error: { code: 'ANSWER_REFUSED' } });
  const byPrefix = await project.run(['approve', id.slice(id.indexOf(':'), -4)]);
  expect(byPrefix.stderr).toContain('it was answered before');
  expect(again.stderr).toMatch(/it was answered before \(it was approved by ada at \d{4}-\d\d-\d\dT[\d:.]+Z\)\./);
  expect(project.paid).toEqual(['5']);
});

verifies('cli.inspect', 'status, show and trace name who answered an approval, when and why', async () => {
  const project = new Agents().payer('payer', [{ text: 'Then not.' }]);
  await project.run(RUN_PAYER);
  const { id = '', turnId = '', callId } = (await project.approvals())[0] ?? {};
  const record = { id, callId, tool: 'pay' };
  expect(await project.json(['status', turnId])).toMatchObject({ approvals: [{ ...record, status: 'pending' }] });
  await project.run(['deny', id, '--reason', 'far too much', '--as', 'ada']);
  for (const verb of ['status', 'show'])
    expect((await project.run([verb, turnId])).stdout).toMatch(
      /^approval pay: denied by ada, \d{4}-\d\d-\d\d [\d:]{8} UTC \(.+\): far too much$/m,
    );
  const answer = { by: 'ada', reason: 'far too much' };
  const shown = { ...record, ...answer, status: 'denied', answeredAt: expect.stringMatching(/Z$/) };
  expect(await project.json(['show', turnId])).toMatchObject({ approvals: [shown] });
  const tree = (await project.run(['trace', turnId, '--full'])).stdout;
  expect(tree).toContain(`approval requested: ${id}`);
  expect(tree).toMatch(/denied by ada at \S+Z: far too much/);
  expect(tree).not.toMatch(/rondo\.(?:round|inbox)/);
  const events = (await project.run(['trace', turnId, '--json'])).stdout.trim().split('\n');
  expect(events.map((line) => JSON.parse(line) as TraceEvent)).toContainEqual(
    expect.objectContaining({
      ...{ callId, type: 'rondo.approval.answered' },
      payload: { id, approved: false, ...answer, at: expect.stringMatching(/Z$/) },
    }),
  );
});

verifies('cli.decide', 'an answer is recorded even if the turn cannot resume here', async () => {
  const project = new Agents().payer();
  await project.run(RUN_PAYER);
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

verifies('cli.decide', 'a denied tool does not run, and the agent receives the reason', async () => {
  const project = new Agents().payer('payer', [{ text: 'Then not.', expect: ['far too much'] }]);
  await project.run(RUN_PAYER);
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

verifies('cli.decide', 'only an approver can answer, and only a valid answer is accepted', async () => {
  const project = new Agents().payer();
  await project.run([...RUN_PAYER, '--as', 'ada', '--approver', 'bob', '--approver', 'carol']);
  const [approval] = await project.approvals();
  expect(approval).toMatchObject({ principal: 'ada', approvers: ['bob', 'carol'] });
  const id = approval?.id ?? '';
  const refused = async (args: readonly string[], code: number, reason: string): Promise<void> => {
    const ended = await project.run(args);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(reason);
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
  await refused([...RUN_PAYER, '--approver', ''], 64, 'must not be empty');
  expect((await project.run(['approve', id, '--as', 'carol'])).code).toBe(0);
  expect(project.paid).toEqual(['5']);
});

verifies('cli.decide', 'an ambiguous id prefix answers no approval', async () => {
  const project = new Agents().deep();
  await project.run(['run', 'top', '--input', '{"prompt": "x"}', '--session', 'many']);
  const both = await project.approvals();
  const ambiguous = await project.run(['approve', 'many.']);
  expect(ambiguous).toMatchObject({ code: 64, stdout: '' });
  expect(ambiguous.stderr).toContain('matches 2 approvals');
  for (const { id } of both) expect(ambiguous.stderr).toContain(id);
  expect(project.paid).toEqual([]);
});

verifies('cli.decide', 'a standing grant covers exactly the calls of its predicate', async () => {
  const payments = [3, 4, 50].map((amount) => ({ toolCalls: [call('pay', { amount })] }));
  const project = new Agents().agent('payer', [...payments, { text: 'Done.' }], {
    tools: ['pay'],
    approvals: { pay: 'ask' },
  });
  await project.run(RUN_PAYER);
  const [first] = await project.approvals();
  const small = project.write('small.json', { properties: { amount: { maximum: 20 } } });
  const decided = await project.json<AnswerReport>(['approve', first?.id ?? '', '--when', `@${small}`]);
  expect(decided.turn).toMatchObject({ status: 'paused', pending: [{ kind: 'approval' }] });
  expect(project.paid).toEqual(['3', '4']);
  const [third] = await project.approvals();
  expect(third).toMatchObject({ arguments: { amount: 50 } });
  expect((await project.run(['deny', third?.id ?? ''])).code).toBe(0);
  expect(project.paid).toEqual(['3', '4']);
});

verifies('cli.decide', 'an expired approval is refused', async () => {
  const project = new Agents().payer();
  await project.run(RUN_PAYER);
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

verifies('cli.contract', 'a stopped agent is distinct from a finished and from a failed one', async () => {
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
});

verifies('cli.contract', 'the conversation of a session is available as text and as JSON', async () => {
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
  const plain = await project.run(['events', 'mute']);
  expect(plain.stdout).toMatch(/^\{.*"loop-triggered".*\n\{.*"tool-result".*\n/);
});

verifies('approval.display', 'the list of approvals shows arguments escaped and bounded', async () => {
  const shortAttacks = attacks.filter((attack) => attack.length < 5000);
  const calls = shortAttacks.map((attack) => call('pay', { amount: attack }));
  const huge = call('pay', { amount: 'x'.repeat(1024 * 1024) });
  const project = new Agents().agent('payer', [{ toolCalls: [...calls, huge] }], {
    tools: ['pay'],
    approvals: { pay: 'ask' },
  });
  expect((await project.run(RUN_PAYER)).code).toBe(2);
  const { code, stdout, stderr } = await project.run(['approvals']);
  expect(code).toBe(0);
  expect(stdout + stderr).not.toMatch(HARMFUL);
  expect(stdout.match(/^\? Approval /gm)).toHaveLength(calls.length + 1);
  expect(stdout).not.toMatch(/^\? Approve/m);
  expect(stdout.length).toBeLessThan(3000 * (calls.length + 1));
  expect((await project.run(['events', 's', '--text'])).stdout).not.toMatch(HARMFUL);
});
