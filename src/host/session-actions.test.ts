import { expect } from 'vitest';
import { ASK, gate, onlyPending, RecordedActions } from '../../spec/support/approval-fixture.js';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import { defineLoop } from '../loops/define.js';
import { type SessionActionDeps, SessionActions } from './session-actions.js';

const ANYTHING = {} as const;
const waits = defineLoop({ id: 'waits', input: ANYTHING, output: ANYTHING, run: (_, scope) => scope.wait('go') });

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

/** Returns a tool that runs until it is released. */
function holdTool(): { readonly hold: () => Promise<null>; readonly started: Promise<void>; release(): void } {
  const [started, blocker] = [gate(), gate()];
  const hold = async (): Promise<null> => {
    started.open();
    await blocker.passed;
    return null;
  };
  return { hold, started: started.passed, release: blocker.open };
}

verifies(
  'approval.order',
  'an approval of a paused turn can be answered while another turn of its session runs',
  async () => {
    const actions = new RecordedActions();
    const { hold, started, release } = holdTool();
    const definitions = [tool('pay', 'builtin:act', ASK), tool('hold', 'builtin:hold')];
    const host = hostOf(definitions, { tools: { act: actions.act, hold } });
    const { turnId } = await host.run({ loop: 'pay', input: { n: 1 }, sessionId: 's' });
    const { id } = await onlyPending(host);
    const holding = host.run({ loop: 'hold', input: {}, sessionId: 's' });
    await started;
    expect(await host.answer({ id, approved: true, by: 'ada' })).toMatchObject({ id });
    await expect(host.answer({ id, approved: false, by: 'bob' })).rejects.toMatchObject({ code: 'ANSWER_REFUSED' });
    release();
    expect(await holding).toMatchObject({ status: 'ok' });
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok', output: { n: 1 } });
    expect(actions.performed).toEqual([{ n: 1 }]);
  },
);

verifies(
  'agent.reconnect',
  'a client that follows a session during a turn without agents gets the earlier events',
  async () => {
    const { hold, started, release } = holdTool();
    const providers = [replyProvider([{ text: 'Hello.' }])];
    const host = hostOf([agentDef('greet'), tool('hold', 'builtin:hold')], { tools: { hold }, providers });
    await host.run({ loop: 'greet', input: { prompt: 'hi' }, sessionId: 's' });
    const holding = host.run({ loop: 'hold', input: {}, sessionId: 's' });
    await started;
    const types: string[] = [];
    const unsubscribe = await host.follow('s', { envelope: ({ type }) => void types.push(type) });
    expect(types).toEqual(expect.arrayContaining(['user-message', 'assistant-message']));
    unsubscribe();
    release();
    await holding;
  },
);
