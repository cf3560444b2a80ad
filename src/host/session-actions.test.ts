import { expect } from 'vitest';
import { ASK, gate, onlyPending, RecordedActions } from '../../spec/support/approval-fixture.js';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { defineLoop } from '../loops/define.js';
import { type SessionActionDeps, SessionActions } from './session-actions.js';

const ANYTHING = {} as const;
const waits = defineLoop({ id: 'waits', input: ANYTHING, output: ANYTHING, body: (_, scope) => scope.wait('go') });

verifies(
  'sqlite.repeat',
  'a recorded cancel is reported as successful, even if the turn continues in another process',
  async () => {
    const host = hostOf([waits]);
    const { turnId } = await host.run({ loop: 'waits', input: {} });
    const { deps } = Reflect.get(host, 'actions') as unknown as { deps: SessionActionDeps };
    // As if another process ran the turn and had not finished it.
    const actions = new SessionActions({ ...deps, resume: async () => undefined });
    expect(await actions.cancel(turnId, 'enough')).toBe(true);
    expect((await host.archive.status(turnId))[0]?.status).not.toBe('error');
    expect(await actions.cancel(turnId, 'enough')).toBe(true);
  },
);

verifies(
  'approval.order',
  'an approval of a paused turn can be answered while another turn of its session runs',
  async () => {
    const [actions, started, blocker] = [new RecordedActions(), gate(), gate()];
    const hold = async (): Promise<null> => {
      started.open();
      await blocker.passed;
      return null;
    };
    const definitions = [tool('pay', 'builtin:act', ASK), tool('hold', 'builtin:hold')];
    const host = hostOf(definitions, { tools: { act: actions.act, hold } });
    const { turnId } = await host.run({ loop: 'pay', input: { n: 1 }, sessionId: 's' });
    const { id } = await onlyPending(host);
    const holding = host.run({ loop: 'hold', input: {}, sessionId: 's' });
    await started.passed;
    expect(await host.answer({ id, approved: true, by: 'ada' })).toMatchObject({ id });
    await expect(host.answer({ id, approved: false, by: 'bob' })).rejects.toMatchObject({ code: 'ANSWER_REFUSED' });
    blocker.open();
    expect(await holding).toMatchObject({ status: 'ok' });
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok', output: { n: 1 } });
    expect(actions.performed).toEqual([{ n: 1 }]);
  },
);
