// Signals from the command line: sent to a turn or a session, received once, in any process.

import { expect } from 'vitest';
import type { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { projectWithWaits, type SignalReport } from './signal-project.js';

async function pausedTurn(project: Project, session = 's'): Promise<string> {
  const { code, stderr } = await project.run(['run', 'order', '--session', session]);
  expect(code).toBe(2);
  const turnId = /rondo signal (\S+) paid --payload JSON/.exec(stderr)?.[1] ?? '';
  expect(stderr).toContain('Waits for the signal "paid"');
  expect(stderr).not.toContain('rondo resume');
  return turnId;
}

verifies(
  'cli.signal',
  'a waiting turn prints the command that sends its signal, and the command resumes it',
  async () => {
    const project = projectWithWaits();
    const turnId = await pausedTurn(project);
    expect((await project.run(['status', turnId])).stdout).toContain(`  rondo signal ${turnId} paid --payload JSON`);
    const sent = await project.run(['signal', turnId, 'paid', '--payload', '{"amount": 5}', '--id', 'i-1', '--json']);
    expect(sent.code).toBe(0);
    expect(JSON.parse(sent.stdout) as SignalReport).toMatchObject({
      turnId,
      name: 'paid',
      id: 'i-1',
      isNew: true,
      turn: { status: 'ok', output: { amount: 5 } },
    });
    expect(sent.stderr).toContain(`Sent "paid" to ${turnId}.`);
    const again = await project.run(['signal', turnId, 'paid', '--payload', '{"amount": 5}', '--id', 'i-1']);
    expect(again.code).toBe(0);
    expect(again.stderr).toContain('Not sent again');
  },
);

verifies(
  'cli.signal',
  'a signal that the turn does not wait for is kept, with a warning that names the wait',
  async () => {
    const project = projectWithWaits();
    const turnId = await pausedTurn(project);
    expect((await project.run(['runs'])).stdout).toContain('waits for signal paid');
    const misspelt = await project.run(['signal', turnId, 'payd']);
    expect(misspelt.code).toBe(0);
    expect(misspelt.stderr).toContain('The turn waits for "paid"; "payd" is kept until it asks for it.');
    const paid = await project.run(['signal', turnId, 'paid', '--payload', '{"amount": 5}']);
    expect(paid.stderr).not.toContain('is kept');
    for (const verb of ['show', 'trace'])
      expect((await project.run([verb, turnId])).stdout).toContain('received signal paid {"amount":5}');
  },
);

verifies('cli.signal', 'a payload is read from a file or stdin, and one that does not fit is reported', async () => {
  const project = projectWithWaits();
  const turnId = await pausedTurn(project);
  const wrong = await project.run(['signal', turnId, 'paid', '--payload', '-'], { input: '{"amount": "five"}' });
  expect(wrong.code).toBe(0);
  expect(wrong.stderr).toMatch(/was discarded: The payload of signal "paid" does not fit its schema: \/amount/);
  expect(wrong.stderr).toContain(`rondo signal ${turnId} paid`);
  project.write('payment.json', { amount: 7 });
  const right = await project.json<SignalReport>(['signal', turnId, 'paid', '--payload', '@payment.json']);
  expect(right.turn).toMatchObject({ status: 'ok', output: { amount: 7 } });
});

verifies('cli.signal', 'a signal to a session is received by the oldest turn that waits, or kept', async () => {
  const project = projectWithWaits();
  const turns = [await pausedTurn(project), await pausedTurn(project)];
  for (const turnId of turns) {
    const sent = await project.json<SignalReport>(['signal', 's', 'paid', '--payload', '{"amount": 1}']);
    expect(sent).toMatchObject({ sessionId: 's', isNew: true, turn: { turnId, status: 'ok' } });
  }
  const kept = await project.run(['signal', 's', 'paid', '--payload', '{"amount": 2}']);
  expect(kept.stderr).toContain('it is kept until one does');
  expect(await project.json(['run', 'order', '--session', 's'])).toMatchObject({ output: { amount: 2 } });
});

verifies('cli.signal', 'a signal is recorded even if the turn cannot resume here', async () => {
  const project = projectWithWaits();
  const turnId = await pausedTurn(project);
  project.trusted = false;
  const sent = await project.run(['signal', turnId, 'paid', '--payload', '{"amount": 3}', '--json']);
  expect(sent.code).toBe(0);
  expect(JSON.parse(sent.stdout) as SignalReport).toMatchObject({ isNew: true, error: { code: expect.any(String) } });
  expect(sent.stderr).toContain(`The signal is recorded. When the problem is fixed: rondo resume ${turnId}`);
  expect(sent.stderr).toContain('A worker that has the loop, in any process, continues it too.');
  project.trusted = true;
  expect(await project.json(['resume', turnId])).toMatchObject({ status: 'ok', output: { amount: 3 } });
});

verifies('cli.signal', 'what cannot be sent is refused with the reason', async () => {
  const project = projectWithWaits();
  const turnId = await pausedTurn(project);
  const refusals: readonly (readonly [args: readonly string[], code: number, reason: string])[] = [
    [['nothing', 'paid'], 1, 'There is no turn or session "nothing"'],
    [[turnId, 'steer'], 64, 'reserved for messages'],
    [[turnId, 'approval 1'], 64, 'reserved for approvals'],
    [[turnId, 'paid', '--id', ''], 64, '--id'],
    [[turnId, 'paid', '--payload', '{'], 64, '--payload cannot be read as JSON'],
    [[turnId], 64, 'name'],
  ];
  for (const [args, code, reason] of refusals) {
    const refused = await project.run(['signal', ...args]);
    expect([refused.code, refused.stderr], args.join(' ')).toEqual([code, expect.stringContaining(reason)]);
  }
  await project.run(['cancel', turnId]);
  const ended = await project.run(['signal', turnId, 'paid', '--json']);
  expect(ended.code).toBe(1);
  expect(JSON.parse(ended.stdout)).toMatchObject({ error: { code: 'TURN_ENDED' } });
});
