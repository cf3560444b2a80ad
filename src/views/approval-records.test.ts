import { expect } from 'vitest';
import { ASK, onlyPending } from '../../spec/support/approval-fixture.js';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';

const pay = tool('pay', 'builtin:echo', ASK);
const request = { loop: 'pay', input: { amount: 5 }, sessionId: 's' };

verifies(
  'approval.standing',
  'a turn records who answered its approvals, and whose grant approved its calls',
  async () => {
    const host = hostOf([pay]);
    const { turnId } = await host.run(request);
    const { id } = await onlyPending(host);
    expect(await host.archive.approvalRecords(turnId)).toEqual([
      { id, tool: 'pay', callId: turnId, status: 'pending' },
    ]);
    const standing = { properties: { amount: { maximum: 10 } } };
    await host.answer({ id, approved: true, by: 'ada', standing });
    await host.resume(turnId);
    const answered = { id, tool: 'pay', by: 'ada', answeredAt: expect.stringMatching(/Z$/), standing };
    const first = { ...answered, callId: turnId, status: 'approved' };
    expect(await host.archive.approvalRecords(turnId)).toEqual([first]);
    const second = await host.run(request);
    expect(second.status).toBe('ok');
    const granted = { ...answered, callId: second.turnId, status: 'granted' };
    expect(await host.archive.approvalRecords(second.turnId)).toEqual([granted]);
  },
);

verifies('approval.once', 'a second answer is told who answered first, and when', async () => {
  const host = hostOf([pay]);
  const { turnId } = await host.run(request);
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: false, by: 'ada', reason: 'too much' });
  const second = host.answer({ id, approved: true, by: 'bob' });
  await expect(second).rejects.toThrow(/it was answered before \(it was denied by ada at \S+Z\)\.$/);
  expect(await host.archive.approvalRecords(turnId)).toMatchObject([
    { status: 'denied', by: 'ada', reason: 'too much' },
  ]);
});
