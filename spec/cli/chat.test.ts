// A chat through pipes: answers on stdout, everything else on stderr.

import { expect } from 'vitest';
import type { EventEnvelope } from '../../src/protocol/index.js';
import { verifies } from '../verifies.js';
import { Agents, call } from './agents.js';
import { attacks, HARMFUL } from './attacks.js';

verifies('cli.chat', 'a script receives exactly the answers of an agent on stdout', async () => {
  const script = [
    { text: 'Hello.' },
    { text: 'Let me see. ', toolCalls: [call('pay', { amount: 1 })] },
    { text: 'Paid.' },
  ];
  const project = new Agents().agent('helper', script, { tools: ['pay'] });
  const { code, stdout, stderr } = await project.run(['chat', 'helper', '--session', 's'], { input: 'hi\n\npay 1\n' });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Hello.\nLet me see.\nPaid.\n' });
  expect(stderr).toContain('● pay {"amount":1}\n✓ pay {"paid":1}\n');
  expect(stderr).not.toContain('\u001b');
  const empty = await project.run(['chat', 'helper'], { input: '' });
  expect(empty).toMatchObject({ code: 0, stdout: '' });
});

verifies('cli.chat', 'with --json a chat prints its events', async () => {
  const project = new Agents().agent('helper', [{ text: 'Hello.' }, { text: 'Bye.' }]);
  const args = ['chat', 'helper', '--session', 's', '--as', 'ada'];
  const { code, stdout } = await project.run([...args, '--json'], { input: 'hi\nbye' });
  expect(code).toBe(0);
  const envelopes = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as EventEnvelope);
  expect(envelopes.map(({ type }) => type)).toEqual([
    'user-message',
    'assistant-message',
    'user-message',
    'assistant-message',
  ]);
  expect(envelopes.at(-1)).toMatchObject({ sessionId: 's', content: { text: 'Bye.' } });
  const events = await project.run(['events', 's', '--json']);
  expect(events.stdout).toBe(stdout);
});

verifies('cli.chat', 'a chat in a script stops at a pending approval with exit code 2', async () => {
  const project = new Agents().payer();
  const { code, stdout, stderr } = await project.run(['chat', 'payer', '--session', 's'], {
    input: 'pay\nand then?\n',
  });
  expect({ code, stdout }).toEqual({ code: 2, stdout: 'I pay.\n' });
  const [approval] = await project.approvals();
  expect(stderr).toContain(`rondo approve ${approval?.id}`);
  expect(project.paid).toEqual([]);
  const json = await project.run(['chat', 'payer', '--json', '--session', 'other'], { input: 'pay\n' });
  expect(json.code).toBe(2);
  const last = JSON.parse(json.stdout.trimEnd().split('\n').at(-1) ?? '') as EventEnvelope;
  expect(last).toMatchObject({ type: 'tool-call', content: { approvalStatus: 'pending_approval' } });
});

verifies('cli.chat', 'a chat in which an agent failed ends with exit code 1', async () => {
  const script = [{ error: { message: 'no credit' } }, { text: 'Back again.' }];
  const project = new Agents().agent('helper', script);
  const { code, stdout, stderr } = await project.run(['chat', 'helper'], { input: 'one\ntwo\n' });
  expect(code).toBe(1);
  expect(stdout).toBe('Back again.\n');
  expect(stderr).toContain('BACKEND_FAILED: no credit');
});

verifies('cli.contract', 'a chat with a loop that is not an agent is refused', async () => {
  const project = new Agents().agent('helper', [{ text: 'Hello.' }]);
  const refused = async (args: readonly string[], code: number, reason: string): Promise<void> => {
    const ended = await project.run(['chat', ...args], { input: 'hi\n' });
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(reason);
  };
  await refused(['pay'], 64, '"pay" is not an agent. Run it with: rondo run pay');
  await refused(['helpr'], 1, 'Did you mean "helper"?');
  await refused(['helper', '--session', 'a/b'], 64, '--session must be');
  await refused(['helper', '--as', ''], 64, '--as must not be empty');
  await refused(['helper', '--stream'], 64, "Unknown option '--stream'");
  expect(project.has('.rondo')).toBe(false);
  const file = await project.run(['chat', 'loops/helper.json'], { input: 'hi\n' });
  expect(file).toMatchObject({ code: 0, stdout: 'Hello.\n' });
});

verifies('approval.display', 'an answer through a pipe contains no terminal control sequences', async () => {
  const text = attacks.filter((attack) => attack.length < 5000).join('');
  const project = new Agents().agent('helper', [
    { text, reasoning: text, toolCalls: [call(text, { [text]: text })] },
    { text },
  ]);
  const { code, stdout, stderr } = await project.run(['chat', 'helper'], { input: 'go\n' });
  expect(code).toBe(0);
  expect(stdout.length).toBeGreaterThan(text.length);
  expect(stdout + stderr).not.toMatch(HARMFUL);
});
